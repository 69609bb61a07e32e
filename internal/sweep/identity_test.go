package sweep

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
)

// A trial that starts from the parameters of another run gets another identity when these parameters change. Its
// earlier results are not used.
func TestATrialIsAnotherOneWhenItsStartIs(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	start := func(seed string) {
		m := spec(t, declared, "s", "train.epochs=1", "train.seed="+seed).Trials[0].Model
		o := train.Options{Backend: engine.Backend{Team: team.New(1)}, Out: source, Force: true}
		fatal.If(t, expect.Err(train.Run(context.Background(), m, o)))
	}
	id := func() string {
		return open(t, spec(t, declared, "s", `start={run="`+source+`"}`), Options{Out: t.TempDir()}).Trials[0].ID
	}
	start("1")
	first, again := id(), id()
	start("2")
	if second := id(); again != first || second == first {
		t.Errorf("got %s, again %s, then %s with other parameters", first, again, second)
	}
}

func TestIdentityIsOfTheValuesAndTheData(t *testing.T) {
	ids := func(text string, sets ...string) []string {
		all := lists.Map(open(t, spec(t, text, "s", sets...), Options{Out: "x"}).Trials, func(trial *Trial) string { return trial.ID })
		return all
	}
	plain := ids(declared)
	for text, equal := range map[string]bool{
		strings.Replace(declared, "a line for people", "another", 1):                        true,
		strings.Replace(declared, "weight = 0.001, target = 0.2", "weight = 0.001", 1):      true, // the sweep sets this key
		strings.Replace(declared, "nonneg\" }", "nonneg\", on = \"decoder.*.weight\" }", 1): true,
		strings.Replace(declared, "batch = 32", "batch = 33", 1):                            false,
		strings.Replace(declared, "count = 100", "count = 101", 1):                          false,
		strings.Replace(declared, "model.small", "model.other", 1):                          false,
	} {
		text = strings.Replace(text, `model = "small"`, `model = "`+map[bool]string{true: "other", false: "small"}[strings.Contains(text, "model.other")]+`"`, 1)
		expect.Equal(t, slices.Equal(ids(text), plain), equal, plain, text)
	}
	expect.Slice(t, ids(declared, "loss.1.target=0.1"), plain[:2], "the value alone")
	expect.Slice(t, ids(strings.Replace(declared, "[0.1, 0.3]", "[0.1, 0.3]\nset.optimizer.clip_norm = [0, 0.0]", 1)), plain, "a value written in two ways")
	one := identity(open(t, spec(t, declared, "s"), Options{}).Trials[0].Model, []data.File{{Path: "a", SHA256: "1"}})
	two := identity(open(t, spec(t, declared, "s"), Options{}).Trials[0].Model, []data.File{{Path: "b", SHA256: "2"}})
	if one == two {
		t.Error("other data, same identity")
	}
}
