package config

import (
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Every seed of a sweep has its own data set: the seeds of data set and run change together, after the other keys of the data set.
const bySeed = `
[model.m]
dataset = { name = "bars", count = 50 }
encoder = [{ kind = "dense", units = 4 }]

[sweep.s]
model = "m"
seeds = [1, 2, 3]
by_seed.dataset.seed = [101, 102, 103]
set.dataset = [{ name = "bars", count = 60 }, { name = "bars", count = 70 }]
`

func TestKeysChangeWithTheSeed(t *testing.T) {
	f := load(t, bySeed)
	fatal.If(t, f.Check())
	trials := func(want int, sets ...Set) {
		t.Helper()
		s, err := f.Sweep("s", sets...)
		fatal.If(t, err)
		expect.Slice(t, s.Keys, []string{"dataset"}, "the keys")
		expect.Equal(t, len(s.Trials), want, "the keys")
		for _, trial := range s.Trials {
			expect.Contains(t, string(trial.Model.Text()), fmt.Sprint(100+trial.Model.Train.Seed), "the trial with seed", trial.Model.Train.Seed, "has another data set")
		}
	}
	trials(6)
	some, err := Seeds([]uint64{3, 1})
	fatal.If(t, err)
	trials(4, some)
}

func TestMistakesInKeysOfSeedsAreReported(t *testing.T) {
	other, err := Seeds([]uint64{1, 9})
	fatal.If(t, err)
	one, err := ParseSet("train.seed=2")
	fatal.If(t, err)
	for _, c := range []struct {
		old, new, says string
		sets           []Set
	}{
		{"[101, 102, 103]", "[101, 102]", "dataset.seed: got 2 values for 3 seeds", nil},
		{"seeds = [1, 2, 3]\n", "", "by_seed: the sweep has no seeds", nil},
		{"set.dataset = ", "for.m.seeds = [1]\nset.dataset = ", "by_seed: a model of the sweep has other seeds", nil},
		{"set.dataset = ", "set.dataset.seed = 5 #", "dataset.seed is given twice", nil},
		{"by_seed.dataset.seed", "by_seed.train.seed", `the seed is set by the sweep's key "seeds"`, nil},
		{"by_seed.dataset.seed = [101, 102, 103]", "by_seed = 3", "by_seed: want a table", nil},
		{"101", "\"x\"", "dataset", nil},
		{"", "", "by_seed: dataset.seed has no value for the seed 9 of the option seeds", []Set{other}},
		{"", "", "by_seed: train.seed sets one seed", []Set{one}},
	} {
		text := bySeed
		if c.old != "" {
			text = strings.Replace(bySeed, c.old, c.new, 1)
		}
		_, err := load(t, text).Sweep("s", c.sets...)
		expect.Error(t, err, c.says, c.new, "for", c.old)
	}
}
