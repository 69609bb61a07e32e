package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/panics"
	"tessera/internal/train/checkpoint"
)

// hookList contains the hooks of one training in their order.
type hookList []*attached

// attached is one hook in a training. The functions that every hook may have are not nil.
type attached struct {
	hooks.Active
	name     string
	stepwise bool // has functions that are called only in mini-batch training
}

// partPanic is the panic of a part, which may be user-defined.
type partPanic struct {
	part  string
	cause *panics.Panic
}

// namePart adds the name of a part to a panic of the part. Calls of the part defer it; it allocates only after a panic.
func namePart(kind, name string) {
	if cause := recover(); cause != nil {
		panic(partPanic{kind + " " + name, panics.Of(cause)})
	}
}

// guard turns a panic into an error that names the part, or the activity if the part is unknown.
func guard(activity string, call func() error) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		p := panics.Of(cause)
		if unread, ok := errors.AsType[*data.Error](p); ok { // samples that cannot be read any more
			err = unread
			return
		}
		if of, ok := p.Value.(partPanic); ok {
			activity, p = of.part, of.cause
		}
		err = fmt.Errorf("%s: panicked: %w", activity, p)
	}()
	return call()
}

// call calls f with the hook; errors and panics get the hook's name.
func (a *attached) call(f func(a *attached) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panicked: %w", panics.Of(cause))
		}
		if err != nil {
			err = fmt.Errorf("hook %s: %w", a.name, err)
		}
	}()
	return f(a)
}

// each calls every hook until the first error.
func (h hookList) each(f func(a *attached) error) error {
	for _, a := range h {
		if err := a.call(f); err != nil {
			return err
		}
	}
	return nil
}

func attach(name string, h hooks.Hook, t hooks.Training) (*attached, error) {
	a := &attached{name: name}
	err := a.call(func(*attached) error {
		active, err := h.Attach(t)
		if active != nil {
			a.Active, a.stepwise = *active, active.Stepwise()
		}
		return err
	})
	nothing := func() error { return nil }
	for _, f := range []*func() error{&a.Initialise, &a.Begin, &a.BeginEpoch, &a.AfterStep, &a.Close} {
		if *f == nil {
			*f = nothing
		}
	}
	if a.BeforeStep == nil {
		a.BeforeStep = func(*hooks.Step) error { return nil }
	}
	if a.EndEpoch == nil {
		a.EndEpoch = func(*hooks.Epoch) error { return nil }
	}
	if a.Rate == nil {
		a.Rate = func() float64 { return 1 }
	}
	if a.Average == nil {
		a.Average = func(*hooks.Parameter) []float32 { return nil }
	}
	return a, err
}

// check returns an error for hooks that exclude each other, and for hooks with functions of steps in full-batch training.
func (h hookList) check(search bool, optimizer string) error {
	for i, a := range h {
		if search && a.stepwise {
			return fmt.Errorf("hook %s: needs a mini-batch optimizer (got %s)", a.name, optimizer)
		}
		for _, b := range h[:i] {
			if a.Substitute != nil && b.Substitute != nil || a.Best != nil && b.Best != nil || a.Prepare != nil && b.Prepare != nil {
				return fmt.Errorf("hook %s: has the same function as %s; remove one of them", a.name, b.name)
			}
		}
	}
	return nil
}

// prepares reports whether one of the hooks prepares images for the first layer.
func (h hookList) prepares() bool {
	return slices.ContainsFunc(h, func(a *attached) bool { return a.Prepare != nil })
}

// prepare returns the images as prepared by a hook; nil if none of these programs reads prepared images.
func (h hookList) prepare(images *data.Images, programs ...compiled) (p hooks.Prepared, err error) {
	wants := func(in graph.Input) bool { return in.Preparation != nil }
	wanted := false
	for _, all := range programs {
		for _, one := range all {
			wanted = wanted || slices.ContainsFunc(one.Inputs, wants)
		}
	}
	if !wanted {
		return nil, nil
	}
	err = h.each(func(a *attached) (err error) {
		if a.Prepare != nil {
			p, err = a.Prepare(images)
		}
		return err
	})
	return p, err
}

// kept returns the epoch that replaces the last one, as selected by a hook; nil if no hook selects one.
func (h hookList) kept() (k *hooks.BestEpoch, err error) {
	err = h.each(func(a *attached) error {
		if a.Best != nil {
			k = a.Best()
		}
		return nil
	})
	return k, err
}

// lent lists the parameters that hooks provide to the programs of a training.
func (h hookList) lent() (list []*graph.Parameter, err error) {
	err = h.each(func(a *attached) error {
		if a.Lend == nil {
			return nil
		}
		for _, p := range a.Lend() {
			list = append(list, &graph.Parameter{Path: a.name + "." + p.Path, Shape: p.Shape, Data: p.Data, Frozen: true})
		}
		return nil
	})
	return list, err
}

// hookPrefix is the prefix of a hook's record in the metadata, "hook/NAME", and of its tensors, "hook/NAME/...".
const hookPrefix = "hook/"

func (h hookList) save(state *checkpoint.File) error {
	return h.each(func(a *attached) error {
		if a.Save == nil {
			return nil
		}
		var s hooks.State
		a.Save(&s)
		if s.Record != nil {
			state.Metadata[hookPrefix+a.name] = string(s.Record)
		}
		for _, t := range s.Tensors {
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: hookPrefix + a.name + "/" + t.Name, Shape: t.Shape, Data: t.Values})
		}
		return nil
	})
}

func (h hookList) restore(from *stored) error {
	err := h.each(func(a *attached) error {
		if a.Restore == nil {
			return nil
		}
		s := &hooks.State{}
		if record, ok := from.file.Metadata[hookPrefix+a.name]; ok {
			s.Record = json.RawMessage(record)
		}
		for _, t := range from.file.Tensors {
			if rest, ok := strings.CutPrefix(t.Name, hookPrefix+a.name+"/"); ok {
				s.Put(rest, t.Shape, t.Data)
			}
		}
		return a.Restore(s)
	})
	if err != nil {
		return checkpoint.Mismatchf(from.path, "does not match its model: %v", err)
	}
	return nil
}

func (h hookList) close() (err error) {
	for _, a := range h {
		err = errors.Join(err, a.call(func(a *attached) error { return a.Close() }))
	}
	return err
}
