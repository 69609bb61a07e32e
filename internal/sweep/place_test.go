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

func TestASweepIsPutIntoAFolderOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		err   error // expected error; nil if a sweep may resume in the folder
	}{
		"nothing":              {nil, nil},
		"an old sweep":         {[]string{"notes.md", ResultsFile}, nil},
		"trials":               {[]string{"trials/a/config.toml"}, nil},
		"killed at once":       {[]string{ResultsFile + ".new"}, nil},
		"killed a bit later":   {[]string{SummaryFile + ".new"}, nil},
		"a run":                {[]string{folder.Config, folder.State}, folder.ErrForeign},
		"a run, mixed":         {[]string{folder.Config, ResultsFile, "trials/a/config.toml"}, folder.ErrForeign},
		"somebody's files":     {[]string{"notes.md", "results.csv"}, folder.ErrForeign},
		"a file of that name":  {[]string{"trials"}, folder.ErrForeign},
		"a folder of somebody": {[]string{"photos/1.png"}, folder.ErrForeign},
	} {
		out := t.TempDir()
		for _, file := range c.files {
			path := filepath.Join(out, file)
			fatal.If(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o600)))
		}
		before := files(t, out)
		if _, err := New(context.Background(), spec(t, declared, "s"), Options{Out: out}); !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), out) {
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
		same(t, name, files(t, out), before)
		for _, file := range c.files {
			below := filepath.Join(out, file)
			if _, err := New(context.Background(), spec(t, declared, "s"), Options{Out: below}); strings.Contains(file, ".") && !errors.Is(err, folder.ErrNotFolder) {
				t.Errorf("%s: got %v, want ErrNotFolder", below, err)
			}
		}
	}
}

func TestTwoProcessesDoNotWorkOnOneSweep(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	held, err := folder.Hold(out, folder.OS{})
	fatal.If(t, err)
	defer held.Close()
	expect.Is(t, expect.Err(open(t, spec(t, declared, "s"), Options{Out: out}).Run(context.Background())), folder.ErrLocked)
}
