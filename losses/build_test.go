package losses_test

import (
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/expect"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// reading declares one input and requests another.
type reading struct {
	reads losses.Reads
	ask   func(v losses.Values) (any, error)
}

func (reading) On() string            { return losses.Code }
func (r reading) Reads() losses.Reads { return r.reads }

func (r reading) Build(v losses.Values) (*gorgonia.Node, error) {
	_, err := r.ask(v)
	return nil, err
}

func TestATermReadsOnlyWhatItDeclares(t *testing.T) {
	asks := map[string]func(v losses.Values) (any, error){
		"the value that `on` names":  func(v losses.Values) (any, error) { return v.On() },
		`the value "head"`:           func(v losses.Values) (any, error) { return v.Value("head") },
		"the clean samples' value":   func(v losses.Values) (any, error) { return v.Clean() },
		"the teacher":                func(v losses.Values) (any, error) { return v.Teacher() },
		"what `against` names":       func(v losses.Values) (any, error) { return v.Against() },
		"`mask` and `sample_weight`": func(v losses.Values) (any, error) { return v.Counts() },
		"parameters":                 func(v losses.Values) (any, error) { return v.Weights() },
		"the atoms":                  func(v losses.Values) (any, error) { return v.Dictionary() },
		"derivatives":                func(v losses.Values) (any, error) { return v.Encoding() },
	}
	declared := map[string]losses.Reads{
		"the value that `on` names":  {On: true},
		`the value "head"`:           {Values: []string{"head"}},
		"the teacher":                {Teacher: true},
		"what `against` names":       {Against: losses.Images},
		"`mask` and `sample_weight`": {Counts: true},
		"parameters":                 {Per: losses.Parameter},
		"the atoms":                  {Atoms: true},
		"derivatives":                {Jacobian: true},
	}
	for what, ask := range asks {
		for other, reads := range declared {
			want := "it does not declare that it reads " + what
			if other == what {
				want = "its Build returns no node"
			}
			_, err := gradcheck.Build(gradcheck.Loss[float64](reading{reads, ask}, make([]float64, 4), make([]float64, 4), 2, 2), false)
			expect.Error(t, err, want, "a term that reads", other, "asks for", what)
		}
	}
}

// A panic of a term is its error, which the graph names by the term.
func TestATermThatPanicsIsAnError(t *testing.T) {
	_, err := losses.Build(reading{ask: func(losses.Values) (any, error) { panic("boom") }}, losses.Code, nil)
	expect.Error(t, err, "boom")
}
