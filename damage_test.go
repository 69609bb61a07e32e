package tessera_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/train"
	"tessera/train/folder"
)

// cancelled trains a small model with early stopping, momentum and shuffling, and stops within its third epoch.
func cancelled(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "models.toml")
	text := "[model.m]\ndataset = { name = \"bars\", count = 60, validation = 0.2 }\nencoder = [{ kind = \"dense\", units = 4, activation = \"sigmoid\" }]\n" +
		"optimizer = { kind = \"adam\", learning_rate = 0.01 }\ntrain = { epochs = 4, batch = 16, checkpoint_seconds = 0 }\nhook.early_stopping.patience = 3\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	models, err := tessera.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := models.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = tessera.Train(ctx, m, tessera.Options{Out: filepath.Join(dir, "run"), Threads: 1, Report: func(p train.Progress) {
		if p.Epoch == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, train.ErrInterrupted) {
		t.Fatalf("got %v, want ErrInterrupted", err)
	}
	return filepath.Join(dir, "run")
}

// numbers is what a user of a run reads from it: what it computes, the history of its training, and the parameters of the
// resumed run. What is warned of is an error.
func numbers(run string) (string, error) {
	var all strings.Builder
	opened, err := tessera.Open(run, tessera.Options{Threads: 1})
	if err != nil {
		return "", err
	}
	measured, err := opened.Evaluate(context.Background(), nil)
	if err := errors.Join(err, opened.Close()); err != nil {
		return "", err
	}
	fmt.Fprintln(&all, opened.Epoch, opened.Step, measured.Values)
	history, err := train.ReadHistory(run)
	if err != nil {
		return "", err
	}
	warned := ""
	resumed, err := tessera.Resume(context.Background(), run, tessera.Options{Warn: func(text string) { warned += text }})
	if err != nil {
		return "", err
	}
	if warned != "" {
		err = errors.New(warned)
	}
	fmt.Fprintln(&all, history, resumed.Epoch)
	for _, name := range []string{folder.Model, folder.Best} {
		b, unread := os.ReadFile(filepath.Join(run, name))
		err = errors.Join(err, unread)
		all.Write(b)
	}
	return all.String(), errors.Join(err, resumed.Close())
}

// Every file of an unfinished run is damaged: its numbers are the same, or an error or warning is reported.
func TestNoDamageOfARunChangesANumberInSilence(t *testing.T) {
	flips, cuts := 500, 150
	if testing.Short() {
		flips, cuts = 50, 15
	}
	run := cancelled(t)
	whole := map[string][]byte{}
	entries, err := os.ReadDir(run)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if whole[e.Name()], err = os.ReadFile(filepath.Join(run, e.Name())); err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name())
	}
	for _, name := range []string{folder.Config, folder.Environment, folder.Metrics, folder.Model, folder.Best, folder.State} {
		if !slices.Contains(names, name) {
			t.Errorf("the run has no %s to damage: %q", name, names)
		}
	}
	restore := func() {
		for name, b := range whole {
			if err := os.WriteFile(filepath.Join(run, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := numbers(run)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 12
	r := rand.New(rand.NewPCG(seed, 1))
	refused, silent := 0, 0
	for i := range flips + cuts {
		restore()
		name := names[i%len(names)]
		b := bytes.Clone(whole[name])
		if i < flips {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		} else {
			b = b[:r.IntN(len(b))]
		}
		if err := os.WriteFile(filepath.Join(run, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := numbers(run)
		if err != nil {
			refused++
		} else if got != want {
			silent++
			t.Errorf("damage %d of %s changed a number in silence", i, name)
			if testing.Verbose() {
				t.Logf("%.400q", b)
			}
		}
	}
	t.Logf("seed %d: %d flips and %d truncations of %d files: %d refused or warned of, %d without effect, %d silent", seed, flips, cuts, len(names), refused,
		flips+cuts-refused-silent, silent)
	if refused == 0 {
		t.Error("no damage was found")
	}
}
