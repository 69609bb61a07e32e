package laws

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// writing is a trial of a part that writes n values. Its methods are the laws of all such parts: initialisations, drawn columns and
// augmentations.
type writing[T any] struct {
	fresh func() T
	n     int
	write func(part T, dst []float32) error // writes all values of dst, from the same random stream in every call
}

// over returns what a part writes over values of before, with surrounding guards (all) and without them (inner).
func (w writing[T]) over(before float32, part T) (all, inner []float32, err error) {
	all, inner = padded(slices.Repeat([]float32{before}, w.n))
	return all, inner, w.write(part, inner)
}

// written returns what a new part writes.
func (w writing[T]) written() ([]float32, error) {
	_, values, err := w.over(0, w.fresh())
	return values, err
}

func (w writing[T]) everyValue() error {
	want, err := w.written()
	for _, before := range []float32{1, -5, float32(math.NaN())} {
		_, got, failed := w.over(before, w.fresh())
		if err = errors.Join(err, failed, differ(fmt.Sprintf("over values of %v, compared with 0", before), got, want)); err != nil {
			return err
		}
	}
	return nil
}

func (w writing[T]) inside() error {
	all, _, err := w.over(0, w.fresh())
	return errors.Join(err, outside(all))
}

func (w writing[T]) finite() error {
	values, err := w.written()
	if i := slices.IndexFunc(values, notFinite); i >= 0 {
		return fmt.Errorf("value %d is %v", i, values[i])
	}
	return err
}

// repeatable uses one part twice, because the second use must not depend on the first.
func (w writing[T]) repeatable() error {
	part := w.fresh()
	_, first, err := w.over(0, part)
	_, second, again := w.over(0, part)
	return errors.Join(err, again, differ("a second time, compared with the first", second, first))
}

func (w writing[T]) keepsSettings() error {
	return keepsSettings(w.fresh, func(part T) error { _, _, err := w.over(0, part); return err })
}

// keepsSettings returns an error if the use of a part changes its settings, which several goroutines share.
func keepsSettings[T any](fresh func() T, use func(part T) error) error {
	part := fresh()
	err := use(part)
	if !reflect.DeepEqual(part, fresh()) {
		return errors.Join(err, errors.New("its settings are others afterwards"))
	}
	return err
}
