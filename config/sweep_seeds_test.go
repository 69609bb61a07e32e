package config

import (
	"math"
	"slices"
	"testing"
)

func TestSeedsReplaceThoseOfASweep(t *testing.T) {
	f := load(t, string(shipped(t))+"[sweep.one]\nmodel = \"shallow\"\nset.loss.0.weight = [1.0, 2.0]\n"+
		"[sweep.own]\nmodel = \"shallow\"\nseeds = [7, 8]\nset.loss.0.weight = [1.0, 2.0]\n")
	set, err := Seeds([]uint64{1, 2, math.MaxInt64})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "own"} {
		s, err := f.Sweep(name, set)
		if err != nil {
			t.Fatal(err)
		}
		var seeds []uint64
		for _, trial := range s.Trials {
			seeds = append(seeds, trial.Model.Train.Seed)
		}
		if want := []uint64{1, 2, math.MaxInt64, 1, 2, math.MaxInt64}; !slices.Equal(seeds, want) || !slices.Equal(s.Keys, []string{"loss.0.weight"}) {
			t.Errorf("%s: seeds %d of keys %q, want %d", name, seeds, s.Keys, want)
		}
		if !slices.Equal(s.Changes, []string{"--seeds 1,2,9223372036854775807"}) {
			t.Errorf("%s: changes %q", name, s.Changes)
		}
	}
	declared, err := f.Sweep("own")
	if err != nil {
		t.Fatal(err)
	}
	if set, err = Seeds([]uint64{7, 8}); err != nil {
		t.Fatal(err)
	}
	given, err := f.Sweep("own", set)
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range declared.Trials {
		if got, want := string(Fill(given.Trials[i].Model)), string(Fill(trial.Model)); got != want || len(given.Trials) != len(declared.Trials) {
			t.Errorf("the declared seeds give another trial:\n%s\nwant\n%s", got, want)
		}
	}
}

func TestSeedsAreDifferent(t *testing.T) {
	for _, list := range [][]uint64{nil, {1, 2, 1}, {1 << 63}} {
		if _, err := Seeds(list); err == nil {
			t.Errorf("%d are no error", list)
		}
	}
}
