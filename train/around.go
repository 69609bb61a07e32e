package train

import (
	"errors"
	"fmt"

	"tessera/graph"
	"tessera/hooks"
)

// around are the hooks of one training in their declared order; it calls each function of all that have it. What a hook
// returns as an error is named after it, and so is a panic: a hook may be a user's own.
type around []*attached

// attached is one running hook.
type attached struct {
	*hooks.Active
	name string
}

// named gives an error of the hook its name.
func (a *attached) named(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("panicked: %v", cause)
	}
	if *err != nil {
		*err = fmt.Errorf("hook %s: %w", a.name, *err)
	}
}

func (a *attached) call(f func() error) (err error) {
	defer a.named(&err)
	if f == nil {
		return nil
	}
	return f()
}

func (a *attached) beforeStep(s *hooks.Step) (err error) {
	defer a.named(&err)
	if a.BeforeStep == nil {
		return nil
	}
	return a.BeforeStep(s)
}

func (a *attached) rate() (factor float64, err error) {
	defer a.named(&err)
	if a.Active.Rate == nil {
		return 1, nil
	}
	return a.Active.Rate(), nil
}

// each calls one function of every hook; without a function nothing is called.
func (h around) each(of func(a *hooks.Active) func() error) error {
	for _, a := range h {
		if err := a.call(of(a.Active)); err != nil {
			return err
		}
	}
	return nil
}

// First says that a new training begins.
func (h around) First() error {
	return h.each(func(a *hooks.Active) func() error {
		return func() error {
			if a.First != nil {
				a.First()
			}
			return nil
		}
	})
}

// Begin says that images and programs are there.
func (h around) Begin() error {
	return h.each(func(a *hooks.Active) func() error { return a.Begin })
}

// BeginEpoch comes before the first step of an epoch.
func (h around) BeginEpoch() error {
	return h.each(func(a *hooks.Active) func() error { return a.BeginEpoch })
}

// BeforeStep comes before the model is computed.
func (h around) BeforeStep(s *hooks.Step) error {
	for _, a := range h {
		if err := a.beforeStep(s); err != nil {
			return err
		}
	}
	return nil
}

// AfterStep comes when the parameters have moved.
func (h around) AfterStep() error {
	return h.each(func(a *hooks.Active) func() error { return a.AfterStep })
}

// EndEpoch tells what was measured.
func (h around) EndEpoch(e *hooks.Epoch) error {
	return h.each(func(a *hooks.Active) func() error {
		return func() error {
			if a.EndEpoch == nil {
				return nil
			}
			return a.EndEpoch(e)
		}
	})
}

// Close ends all hooks.
func (h around) Close() (err error) {
	for _, a := range h {
		err = errors.Join(err, a.call(a.Active.Close))
	}
	return err
}

// Rate is what multiplies the learning rate.
func (h around) Rate() (float64, error) {
	factor := 1.0
	for _, a := range h {
		one, err := a.rate()
		if err != nil {
			return 0, err
		}
		factor *= one
	}
	return factor, nil
}

// Kept is the epoch that a hook keeps, nil where none does.
func (h around) Kept() *hooks.Kept {
	for _, a := range h {
		if a.Active.Kept != nil {
			return a.Active.Kept()
		}
	}
	return nil
}

// lent lists what hooks lend to the programs of a training.
func (h around) lent() (list []*graph.Parameter) {
	for _, a := range h {
		if a.Lends == nil {
			continue
		}
		for _, p := range a.Lends() {
			list = append(list, &graph.Parameter{Path: a.name + "." + p.Path, Shape: p.Shape, Data: p.Data, Frozen: true})
		}
	}
	return list
}

// shows returns the hook that shows other values than those of the parameters, nil where none does.
func (h around) shows() *attached {
	for _, a := range h {
		if a.Shown != nil {
			return a
		}
	}
	return nil
}

// check refuses hooks that cannot be together, and those of steps in a training that has none.
func (h around) check(search bool, optimizer string) error {
	shown, kept := "", ""
	for _, a := range h {
		if search && a.Stepwise() {
			return fmt.Errorf("hook %s: needs a mini-batch optimizer (got %s)", a.name, optimizer)
		}
		for which, claims := range map[*string]bool{&shown: a.Shown != nil, &kept: a.Active.Kept != nil} {
			if claims && *which != "" {
				return fmt.Errorf("hook %s: %s declares this hook already; leave one of them out", a.name, *which)
			} else if claims {
				*which = a.name
			}
		}
	}
	return nil
}
