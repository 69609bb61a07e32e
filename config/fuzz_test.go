package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"tessera/config/part/table"
)

// FuzzLoad checks that no text makes the package panic, that every error has a position, and that a valid model can be
// filled and read again.
func FuzzLoad(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.golden")
	for _, file := range files {
		for _, g := range readGolden(f, file) {
			f.Add(g.input, strings.Join(g.sets, "\x00"))
		}
	}
	f.Add(string(shipped(f)), "train.batch=3")
	f.Add("\ufeff[model.m]\r\nencoder = [{kind='dense',units=1}]", "encoder.0.units=2\x00dataset=bars\x00dataset.seed=3")
	f.Add("", "00\n0")
	f.Fuzz(func(t *testing.T, text, arguments string) {
		if len(text) > 1<<16 {
			return
		}
		file, err := Load("models.toml", []byte(text))
		if err != nil {
			checkPlaces(t, err)
			return
		}
		var sets []Set
		for argument := range strings.SplitSeq(arguments, "\x00") {
			s, err := ParseSet(argument)
			if err != nil {
				checkPlaces(t, err)
				continue
			}
			sets = append(sets, s)
		}
		checkPlaces(t, file.Check())
		for _, name := range file.SweepNames() {
			if s, err := file.Sweep(name, sets...); err != nil {
				checkPlaces(t, err)
			} else if len(s.Trials) == 0 {
				t.Errorf("sweep %q has no trials", name)
			}
		}
		for _, name := range file.Names() {
			for _, with := range [][]Set{nil, sets} {
				m, err := file.Model(name, with...)
				if err != nil {
					checkPlaces(t, err)
				} else if m.Train.Seed < 1<<63 {
					checkFillRoundTrip(t, m)
				}
			}
		}
	})
}

// checkPlaces checks that every diagnostic prints as three lines and marks a position within its line.
func checkPlaces(t *testing.T, err error) {
	t.Helper()
	var all *table.Diagnostics
	if err == nil {
		return
	}
	if !errors.As(err, &all) || len(all.List) == 0 {
		t.Fatalf("got a %T: %v", err, err)
	}
	for _, d := range all.List {
		if at := d.At.Place(); at.Line < 1 || at.Column < 1 || d.Problem == "" {
			t.Errorf("no place or no problem: %+v", d)
		}
		if n := strings.Count(d.String(), "\n"); n != 2 && !strings.Contains(d.Suggestion, "; write\n") {
			t.Errorf("%d lines: %q", n+1, d.String())
		}
	}
}
