package config

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestSeedsReplaceThoseOfASweep(t *testing.T) {
	f := load(t, string(shipped(t))+"[sweep.one]\nmodel = \"shallow\"\nset.loss.0.weight = [1.0, 2.0]\n"+
		"[sweep.own]\nmodel = \"shallow\"\nseeds = [7, 8]\nset.loss.0.weight = [1.0, 2.0]\n")
	set, err := Seeds([]uint64{1, 2, math.MaxInt64})
	fatal.If(t, err)
	for _, name := range []string{"one", "own"} {
		s, err := f.Sweep(name, set)
		fatal.If(t, err)
		seeds := lists.Map(s.Trials, func(trial Trial) uint64 { return trial.Model.Train.Seed })
		if want := []uint64{1, 2, math.MaxInt64, 1, 2, math.MaxInt64}; !slices.Equal(seeds, want) || !slices.Equal(s.Keys, []string{"loss.0.weight"}) {
			t.Errorf("%s: seeds %d of keys %q, want %d", name, seeds, s.Keys, want)
		}
		expect.Slice(t, s.Changes, []string{"--seeds 1,2,9223372036854775807"}, name, "changes")
	}
	declared, err := f.Sweep("own")
	fatal.If(t, err)
	if set, err = Seeds([]uint64{7, 8}); err != nil {
		t.Fatal(err)
	}
	given, err := f.Sweep("own", set)
	fatal.If(t, err)
	for i, trial := range declared.Trials {
		if got, want := string(given.Trials[i].Model.Text()), string(trial.Model.Text()); got != want || len(given.Trials) != len(declared.Trials) {
			t.Errorf("the declared seeds give another trial:\n%s\nwant\n%s", got, want)
		}
	}
}

// for.MODEL.seeds replaces the seeds of the sweep for one model. Seeds and --set train.seed replace both.
func TestSeedsOfOneModelReplaceThoseOfTheSweep(t *testing.T) {
	text := string(shipped(t)) + "[sweep.s]\nmodel = [\"shallow\", \"nmf\", \"linear\"]\nseeds = [1, 2, 3]\nfor.nmf.seeds = [4]\nfor.nmf.set.iterations = [5, 6]\n"
	f := load(t, text)
	seeds := func(sets ...Set) (all []uint64) {
		t.Helper()
		s, err := f.Sweep("s", sets...)
		fatal.If(t, err)
		expect.Slice(t, s.Keys, []string{"iterations"}, "the keys")
		for _, trial := range s.Trials {
			all = append(all, trial.Model.Train.Seed)
		}
		return all
	}
	given, err := Seeds([]uint64{7, 8})
	fatal.If(t, err)
	set, err := ParseSet("train.seed=9")
	fatal.If(t, err)
	for _, c := range []struct {
		sets []Set
		want []uint64
	}{
		{nil, []uint64{1, 2, 3, 4, 4, 1, 2, 3}},
		{[]Set{given}, []uint64{7, 8, 7, 8, 7, 8, 7, 8}},
		{[]Set{set}, []uint64{9, 9, 9, 9}},
	} {
		expect.Slice(t, seeds(c.sets...), c.want, c.sets)
	}
	for list, problem := range map[string]string{"[]": "seeds: got an empty list, want at least one seed", "[1, 1]": "is given before, as seeds[0]", "\"a\"": "seeds: got"} {
		_, err := load(t, strings.Replace(text, "[4]", list, 1)).Sweep("s")
		expect.Error(t, err, problem, list)
		expect.Error(t, err, "for.nmf", list)
	}
}

func TestSeedsAreDifferent(t *testing.T) {
	for _, list := range [][]uint64{nil, {1, 2, 1}, {1 << 63}} {
		expect.AnyError(t, expect.Err(Seeds(list)), list)
	}
}
