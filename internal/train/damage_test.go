package train

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// resumed resumes a run and returns the warnings.
func resumed(run string) (warnings string, err error) {
	_, err = Resume(context.Background(), run, Options{Backend: tape.Backend{}, Warn: func(text string) { warnings += text + "\n" }})
	return warnings, err
}

// rewrite replaces the contents of a file of a run by change(contents).
func rewrite(t *testing.T, run, name string, change func([]byte) []byte) {
	t.Helper()
	fatal.If(t, os.WriteFile(filepath.Join(run, name), change(read(t, run, name)), 0o600))
}

func TestADamagedHistoryIsReported(t *testing.T) {
	for want, change := range map[string]func([]byte) []byte{
		"line 1 is damaged": func(b []byte) []byte { return bytes.Replace(b, []byte(`"loss":0.`), []byte(`"loss":0.9`), 1) },
		"lines, want":       func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] },
		"has 0 lines":       func([]byte) []byte { return nil },
	} {
		run := trained(t, model(t, everything), Options{}).Run
		if warned, err := resumed(run); warned != "" || err != nil {
			t.Fatalf("of a whole run: %q, %v", warned, err)
		}
		rewrite(t, run, folder.Metrics, change)
		if warned, err := resumed(run); err != nil || !strings.Contains(warned, want) || !strings.Contains(warned, folder.Metrics) {
			t.Errorf("got %q, %v, want %q", warned, err, want)
		}
	}
}

func TestAShortenedOrEditedDeclarationIsNotTakenInSilence(t *testing.T) {
	run := trained(t, model(t, everything), Options{}).Run
	whole := read(t, run, folder.Config)
	rewrite(t, run, folder.Config, func(b []byte) []byte { return regexp.MustCompile(`(?m)^epochs = .*\n`).ReplaceAll(b, nil) })
	var damaged *checkpoint.Error
	if _, err := resumed(run); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "train.epochs is missing") {
		t.Errorf("without epochs: got %v", err)
	}
	rewrite(t, run, folder.Config, func([]byte) []byte {
		return regexp.MustCompile(`(?m)^epochs = .*`).ReplaceAll(whole, []byte("epochs = 17"))
	})
	if warned, err := resumed(run); !strings.Contains(warned, "was edited: train.epochs: got 17") {
		t.Errorf("other epochs: warned %q (%v)", warned, err)
	}
	rewrite(t, run, folder.Config, func([]byte) []byte { return regexp.MustCompile(`count = \d+`).ReplaceAll(whole, []byte("count = 77")) })
	if _, err := Open(run); !errors.As(err, &damaged) || !damaged.Mismatch || !strings.Contains(err.Error(), "dataset.count: got 77") {
		t.Errorf("other images: got %v", err)
	}
}

func TestAShortenedDeclarationOfABaselineIsNotTakenInSilence(t *testing.T) {
	run := trained(t, baseline(t, "nmf"), Options{}).Run
	rewrite(t, run, folder.Config, func(b []byte) []byte { return regexp.MustCompile(`(?m)^iterations = .*\n`).ReplaceAll(b, nil) })
	expect.As[*checkpoint.Error](t, expect.Err(resumed(run)), "iterations is missing", "without iterations")
}
