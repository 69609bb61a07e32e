package laws

import (
	"fmt"
	"maps"
	"sync"

	"tessera/engine/ir"
)

// runs is the number of runs of a compiled program per law, each with other inputs, noise and parameters.
const runs = 2

// bench is a rig with its data.
type bench[T ir.Float] struct {
	*rig[T]
	data func(i int) tensors[T] // of the i-th run
}

// given draws the inputs of the i-th run.
func (b bench[T]) given(i int) tensors[T] {
	given := b.rig.given(i)
	maps.Copy(given, b.data(i))
	return given
}

// eachRun checks the results of every run.
func (b bench[T]) eachRun(judge func(given, got tensors[T]) error) error {
	for i := range runs {
		given := b.given(i)
		got, err := b.run(given)
		if err == nil {
			err = judge(given, got)
		}
		if err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

// agree runs two benches and compares their results up to a tolerance.
func agree[T, U ir.Float](b bench[T], want bench[U], tolerance float64) error {
	return b.eachRun(func(given, got tensors[T]) error {
		other, err := want.run(of[U](given))
		if err != nil {
			return err
		}
		return got.near(of[T](other), tolerance)
	})
}

// stand is a part on a back end.
type stand struct {
	on     backend
	fresh  func(on backend) (bench[float64], error) // compiles a new part with the same settings
	double func() (bench[float64], error)           // compiled once, for all laws of a trial
	single func() (bench[float32], error)           // the same in float32
}

func newStand(on backend, double func(on backend) (bench[float64], error), single func(on backend) (bench[float32], error)) stand {
	return stand{on, double,
		sync.OnceValues(func() (bench[float64], error) { return double(on) }),
		sync.OnceValues(func() (bench[float32], error) { return single(on) })}
}

// eachRun checks the results of every run in float64.
func (s stand) eachRun(judge func(given, got tensors[float64]) error) error {
	b, err := s.double()
	if err != nil {
		return err
	}
	return b.eachRun(judge)
}

// forgets tests that repeated runs of a compiled program give the same results as separate runs. Only the state of a layer
// persists between runs, and each run gets it as an input.
func (s stand) forgets() error {
	used, err := s.double()
	if err != nil {
		return err
	}
	alone, err := s.fresh(s.on)
	if err != nil {
		return err
	}
	want, err := alone.run(alone.given(1))
	if err != nil {
		return err
	}
	first, err := used.run(used.given(0))
	if err != nil {
		return err
	}
	for run, expected := range []tensors[float64]{want, first} { // the second run, and the first once more
		got, err := used.run(used.given(1 - run))
		if err != nil {
			return err
		}
		if err := got.near(expected, 0); err != nil {
			return fmt.Errorf("run %d, and the same run as the first: %w", run+2, err)
		}
	}
	return nil
}

// likeTape compares the engine with the tape machine.
func (s stand) likeTape() error {
	if s.on == onTape {
		return nil
	}
	b, err := s.double()
	if err != nil {
		return err
	}
	tape, err := s.fresh(onTape)
	if err != nil {
		return err
	}
	return agree(b, tape, 1e-12)
}

// rounds compares float32 with float64, with a tolerance for divisions of values that nearly cancel.
func (s stand) rounds() error {
	single, err := s.single()
	if err != nil {
		return err
	}
	double, err := s.double()
	if err != nil {
		return err
	}
	return agree(single, double, 1e-4)
}
