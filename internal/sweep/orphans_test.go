package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/folder"
)

// A sweep that is changed by --set or --epochs does not replace the results of the sweep as declared.
func TestResultsOfOtherChangesAreNotReplaced(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	before := files(t, out)
	refused := func(what string, s *Sweep, parts ...string) {
		t.Helper()
		_, err := s.Run(context.Background())
		expect.Is(t, err, folder.ErrForeign, what)
		expect.As[*Dropping](t, err, "", what)
		for _, part := range append(parts, out) {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q in it", what, err, part)
			}
		}
		same(t, what, files(t, out), before)
	}
	refused("--set", open(t, spec(t, declared, "s", "train.epochs=2"), Options{Out: out}), "4 finished trials", "--set train.epochs=2")
	refused("fewer values", open(t, spec(t, declared, "s", "loss.1.target=0.1"), Options{Out: out}), "2 finished trials")
	refused("another sweep", open(t, spec(t, declared+diverging, "d"), Options{Out: out}), `of sweep "s"`, `sweep "d"`)

	// Added values drop no results, whoever adds them. A declaration replaces its own results.
	part := filepath.Join(t.TempDir(), "part")
	run(t, declared, Options{Out: part}, "loss.1.target=0.1")
	run(t, declared, Options{Out: part})
	same(t, "added values", files(t, part), before)
	s := open(t, spec(t, strings.Replace(declared, "[0.1, 0.3]", "0.1", 1), "s"), Options{Out: out})
	expect.NoError(t, expect.Err(s.Run(context.Background())), "an edited declaration")
	expect.Equal(t, len(s.Orphans()), 2, "orphans")
}

func TestASweepOfAnEarlierVersionIsRefused(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	path := filepath.Join(out, ResultsFile)
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	put(t, path, []byte(strings.Replace(string(text), "  \"format\": 2,\n", "", 1)))
	before := files(t, out)
	_, read := Read(out)
	_, ran := open(t, spec(t, declared, "s"), Options{Out: out}).Run(context.Background())
	_, _, collected := open(t, spec(t, declared, "s"), Options{Out: out}).Collect(context.Background())
	for _, err := range []error{read, ran, collected} {
		if _, ok := errors.AsType[*EarlierVersion](err); !ok || !errors.Is(err, folder.ErrForeign) || !strings.Contains(err.Error(), "tessera 0.1.0 reads it") {
			t.Errorf("got %v, want an error that names the version that reads it", err)
		}
	}
	same(t, "a refused sweep", files(t, out), before)
}

func TestCleanRemovesOrphansOnly(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	kept := spec(t, declared, "s", "loss.1.target=0.1")
	orphans := open(t, spec(t, declared, "s", "loss.1.target=0.3"), Options{Out: out}).Trials
	orphan := TrialPath(out, orphans[0].ID)
	put(t, filepath.Join(TrialPath(out, orphans[1].ID), testFile), []byte("{}")) // the metrics of a selected setting on the test images
	put(t, filepath.Join(orphan, "mine.txt"), []byte("of somebody"))
	fatal.If(t, os.Mkdir(filepath.Join(out, trialsDir, "notes"), 0o700))
	put(t, filepath.Join(out, trialsDir, "notes", "a.txt"), []byte("of somebody"))
	s := open(t, kept, Options{Out: out, Clean: true})
	expect.Equal(t, len(s.Orphans()), 1, "orphans")
	fatal.If(t, expect.Err(s.Run(context.Background())))
	expect.Equal(t, len(s.Orphans()), 0, "orphans")
	whole := filepath.Join(t.TempDir(), "whole")
	run(t, declared, Options{Out: whole}, "loss.1.target=0.1")
	got := files(t, out)
	for name := range got {
		if strings.Contains(name, filepath.Base(orphan)) || strings.Contains(name, "notes") {
			delete(got, name)
		}
	}
	same(t, "what is left", got, files(t, whole))
	for _, path := range []string{filepath.Join(orphan, "mine.txt"), filepath.Join(out, trialsDir, "notes", "a.txt")} {
		expect.NoError(t, expect.Err(os.Stat(path)))
	}
}
