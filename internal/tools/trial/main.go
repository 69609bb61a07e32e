// Command trial attacks classifiers:
//
//	trial victims OUT
//	trial parts OUT
//
// victims prints the tables of docs/robustness.md: shipped classifiers under white-box attacks, black-box attacks and
// transfer. parts prints the tables of docs/reproduction/robust-parts.md, with heads on pixels, principal components and
// codes, and writes its figures to OUT. Both commands train missing models, resume interrupted runs and store every result in
// OUT, so that a second call continues. TESSERA_DATA is the folder that contains mnist/ and fashion-mnist/.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"tessera"
	"tessera/attack"
	"tessera/config"
)

//go:embed models.toml
var models []byte

const seeds = 3

var datasets = []string{"mnist", "fashion-mnist"}

func main() {
	studies := map[string]func(*study) error{"victims": (*study).victims, "parts": (*study).parts}
	if len(os.Args) != 3 || studies[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: trial victims|parts OUT")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := newStudy(ctx, os.Args[2])
	if err == nil {
		err = studies[os.Args[1]](s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
		os.Exit(1)
	}
}

// study stores runs and results in a folder.
type study struct {
	ctx    context.Context
	out    string
	file   *config.File
	opened map[string]*tessera.Run
}

func newStudy(ctx context.Context, out string) (*study, error) {
	file, err := config.Load("models.toml", models)
	if err != nil {
		return nil, err
	}
	file.Extend(tessera.Shipped())
	return &study{ctx, out, file, map[string]*tessera.Run{}}, os.MkdirAll(filepath.Join(out, "cells"), 0o777)
}

// folder returns the folder of a run.
func (s *study) folder(name, dataset string, seed int) string {
	return filepath.Join(s.out, "runs", fmt.Sprintf("%s-%s-%d", name, dataset, seed))
}

// run returns the run of a model in a folder. It trains the model if necessary.
func (s *study) run(folder, name, dataset string, seed int, sets ...string) (*tessera.Run, error) {
	var changes []config.Set
	for _, text := range append(sets, "dataset.name="+dataset, fmt.Sprintf("train.seed=%d", seed)) {
		set, err := config.ParseSet(text)
		if err != nil {
			return nil, err
		}
		changes = append(changes, set)
	}
	model, err := s.file.Model(name, changes...)
	if err != nil {
		return nil, err
	}
	return s.trained(folder, model, tessera.Options{})
}

// trained opens the run of a model in a folder, or trains the model if there is no run.
func (s *study) trained(folder string, model *config.Model, o tessera.Options) (*tessera.Run, error) {
	if run := s.opened[folder]; run != nil {
		return run, nil
	}
	o.Threads = runtime.GOMAXPROCS(0)
	var run *tessera.Run
	_, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(os.Stderr, "train", folder)
		o.Out = folder
		run, err = tessera.Train(s.ctx, model, o)
	case err == nil:
		run, err = tessera.Resume(s.ctx, folder, o)
	}
	if err != nil {
		return nil, err
	}
	s.opened[folder] = run
	return run, nil
}

// close frees all runs.
func (s *study) close() error {
	var all error
	for folder, run := range s.opened {
		all = errors.Join(all, run.Close())
		delete(s.opened, folder)
	}
	return all
}

// cell returns a stored result, or computes and stores it.
func cell[T any](s *study, key string, compute func() (T, error)) (value T, err error) {
	path := filepath.Join(s.out, "cells", key+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(text, &value); err != nil {
			err = fmt.Errorf("%s: %w; delete it", path, err)
		}
		return value, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return value, err
	}
	fmt.Fprintln(os.Stderr, "attack", key)
	if value, err = compute(); err != nil {
		return value, fmt.Errorf("%s: %w", key, err)
	}
	if text, err = json.Marshal(value); err != nil {
		return value, err
	}
	if err = os.WriteFile(path+".part", text, 0o666); err != nil {
		return value, err
	}
	return value, os.Rename(path+".part", path)
}

// pgd returns an attack of 40 steps that stops, for each image, at the first misclassification.
func pgd(norm attack.Norm, epsilon float64, restarts int, objective attack.Objective) attack.Trial {
	return attack.Trial{Attack: attack.Attack{Method: attack.PGD, Norm: norm, Epsilon: epsilon, Steps: 40, Restarts: restarts, Seed: 1}, Objective: objective, Early: true}
}

// blackBox returns an attack by queries.
func blackBox(method attack.Method, norm attack.Norm, epsilon float64, queries int) attack.Trial {
	return attack.Trial{Attack: attack.Attack{Method: method, Norm: norm, Epsilon: epsilon, Seed: 1}, Queries: queries}
}

// spread formats the mean over the seeds with its range.
func spread(values []float64, digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, mean(values), digits, slices.Min(values), digits, slices.Max(values))
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}

// row prints a row of a Markdown table.
func row(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

// header prints the head of a Markdown table.
func header(cells ...string) {
	row(cells...)
	row(slices.Repeat([]string{"---"}, len(cells))...)
}
