package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// exitFailedTrials is the exit code of a sweep with failed trials; its tables are complete.
const exitFailedTrials = 8

// exitRefused is the largest exit code of decode for a model without a decoder, or with one that reads more than the code: it was 1.
const exitRefused = 2

// values contains results by name: hashes, numbers in the form that the program printed, settings.
type values map[string]string

// Names of the folder that train writes, and of results.
const (
	runFolder  = "run"
	codes      = "codes"
	outputs    = "outputs"
	ofBase     = " of the run of base" // suffix of results computed from the run that base trained
	sweepTable = "results.csv"
)

// measure trains a subject in an empty folder and returns its results.
func (p program) measure(ctx context.Context, s subject, folder, images string) (values, error) {
	if s.kind == kindSweep {
		return p.measureSweep(ctx, s, folder)
	}
	for _, f := range s.first {
		args := append([]string{"train", f.model, "--out", "runs/" + f.model}, f.args...)
		if _, err := p.command(ctx, folder, p.parallel(args...)...); err != nil {
			return nil, err
		}
	}
	args := append([]string{"train", s.model, "--out", runFolder}, s.args...)
	if _, err := p.command(ctx, folder, p.parallel(args...)...); err != nil {
		return nil, err
	}
	v := values{}
	if s.kind == kindModel {
		settings, err := p.settings(ctx, folder, s.model)
		if err != nil {
			return nil, err
		}
		for key, value := range settings {
			v["setting "+key] = value
		}
	}
	if err := v.addRun(filepath.Join(folder, runFolder)); err != nil {
		return nil, err
	}
	evaluated, err := p.command(ctx, folder, p.parallel("eval", runFolder, "--json")...)
	if err != nil {
		return nil, err
	}
	if err := addJSON(v, "eval", evaluated); err != nil {
		return nil, err
	}
	return v, p.addCodes(ctx, v, folder, runFolder, images, "")
}

// addRun adds the parameters and metrics in the folder of a run.
func (v values) addRun(run string) error {
	for _, file := range []struct {
		name, prefix string
		add          func(map[string]string, string, []byte) error
		optional     bool
	}{
		{"model.safetensors", "parameter", addTensors, false},
		{"best.safetensors", "best parameter", addTensors, true}, // with early stopping
		{"metrics.jsonl", "metrics", addLines, false},
	} {
		text, err := os.ReadFile(filepath.Join(run, file.name))
		if file.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := file.add(v, file.prefix, text); err != nil {
			return err
		}
	}
	return nil
}

// addCodes encodes images with a run, decodes the codes if the decoder reads nothing else, and adds the hashes of both. suffix is
// appended to their names.
func (p program) addCodes(ctx context.Context, v values, folder, run, images, suffix string) error {
	in := images
	for _, step := range []struct{ command, result string }{{"encode", codes}, {"decode", outputs}} {
		out := filepath.Join(folder, step.result+suffix+".npy")
		_, err := p.command(ctx, folder, p.parallel(step.command, run, "--in", in, "--out", out)...)
		var failed *failure
		if step.command == "decode" && errors.As(err, &failed) && failed.code <= exitRefused {
			v[step.result+suffix] = "refused"
			continue
		}
		if err != nil {
			return err
		}
		file, err := os.ReadFile(out)
		if err != nil {
			return err
		}
		v[step.result+suffix] = fmt.Sprintf("%d bytes %s", len(file), digest(file))
		in = out
	}
	return nil
}

// measureSweep trains every trial of a sweep.
func (p program) measureSweep(ctx context.Context, s subject, folder string) (values, error) {
	args := append([]string{"sweep", s.name, "--out", runFolder, "--jobs", strconv.Itoa(runtime.NumCPU())}, s.args...)
	_, err := p.command(ctx, folder, args...)
	var failed *failure
	if err != nil && !(errors.As(err, &failed) && failed.code == exitFailedTrials) {
		return nil, err
	}
	v := values{}
	for _, name := range []string{sweepTable, "summary.csv"} {
		text, err := os.ReadFile(filepath.Join(folder, runFolder, name))
		if err != nil {
			return nil, err
		}
		if err := addTable(v, name, text); err != nil {
			return nil, err
		}
	}
	return v, nil
}
