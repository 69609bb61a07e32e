package laws_test

import (
	"math"
	"testing"

	"tessera/hooks"
	"tessera/laws"
)

// meddler is a hook with one fault. It adds a value to a parameter in every step.
type meddler struct {
	Mistake string `toml:"mistake" doc:"what is wrong"`
	Calls   int    `toml:"calls" doc:"changed by mistake"`
}

func init() {
	hooks.Registry.Register("zz_meddler", "is wrong", func() hooks.Hook { return &meddler{} })
	hooks.Registry.Register("zz_replicated", "is wrong on several processes", func() hooks.Hook { return &replicatedMeddler{} })
}

func (m *meddler) Attach(t hooks.Training) (*hooks.Active, error) {
	if m.Mistake == "settings" {
		m.Calls++
	}
	weight, steps, seen := t.Parameters("encoder.*.weight")[0], 0, float32(0)
	return &hooks.Active{
		BeforeStep: func(s *hooks.Step) error { seen = s.Images[len(s.Images)-1]; return nil },
		AfterStep: func() error {
			steps++
			by := float32(0.01)
			switch m.Mistake {
			case "nan":
				by = float32(math.NaN())
			case "threads":
				by *= float32(t.Threads())
			case "forgets":
				by *= float32(steps)
			case "images":
				by *= seen
			}
			t.Rewrite(weight, func(values []float32) { values[0] += by })
			return nil
		},
	}, nil
}

func (m *meddler) NeedsSteps() (problem, hint string) { return "%s has no steps", "remove the hook" }

// replicatedMeddler is a hook that incorrectly declares that it runs identically in every process, although it reads images.
// It also does not declare that it needs steps.
type replicatedMeddler struct{}

func (*replicatedMeddler) Replicated() bool { return false }

func (*replicatedMeddler) Attach(t hooks.Training) (*hooks.Active, error) {
	return (&meddler{Mistake: "images"}).Attach(t)
}

func TestWrongHooksBreakTheirLaws(t *testing.T) {
	wrong := map[string]func() hooks.Hook{}
	for law, mistake := range map[string]string{
		"trains a model, whose parameters stay finite":                "nan",
		"never changes its settings, and trains the same bytes again": "settings",
		"gives the same bytes on any number of threads":               "threads",
		"resumes to the same bytes after every step":                  "forgets",
	} {
		wrong[law] = func() hooks.Hook { return &meddler{Mistake: mistake} }
	}
	for _, law := range []string{"gives on two processes what it gives on one, if it is Replicated", "suits a full-batch optimizer, or says that it needs steps"} {
		wrong[law] = func() hooks.Hook { return &replicatedMeddler{} }
	}
	mustBreak(t, laws.Hook, wrong)
	if broken := laws.Broken(laws.Hook, func() hooks.Hook { return &meddler{} }); len(broken) > 0 {
		t.Errorf("a hook without a mistake breaks %q", broken)
	}
}
