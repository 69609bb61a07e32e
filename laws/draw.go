package laws

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"

	"tessera/data"
)

// Draw contains the laws of drawn columns, tested for samples of sets of one, two and seven samples.
var Draw = inTrials(eachDrawTrial, []law[drawTrial]{
	{"describes a shape and a type", drawTrial.describes},
	{"sets every value, whatever it was", drawTrial.everyValue},
	{"writes inside the values of its sample only", drawTrial.inside},
	{"is finite and of its type", drawTrial.typed},
	{"gives the same bits for the same stream", drawTrial.repeatable},
	{"never changes its settings", drawTrial.keepsSettings},
})

// drawTrial is a data set of n samples of three values, with a further column of two whole numbers, for which a column is
// drawn.
type drawTrial struct {
	fresh func() data.Draw
	n     int
}

func (t drawTrial) String() string { return fmt.Sprintf("a set of %d samples", t.n) }

func eachDrawTrial(fresh func() data.Draw, try func(t drawTrial)) error {
	for _, n := range []int{1, 2, 7} {
		try(drawTrial{fresh, n})
	}
	return nil
}

// samples returns the data set with d as the column "drawn".
func (t drawTrial) samples(d data.Draw) (*data.Images, error) {
	images, err := data.NewFloats([]int{3}, normal(source(), 3*t.n, 1), make([]int, t.n))
	if err == nil {
		images, err = images.WithColumns(data.WholeColumn("pair", []int{2}, make([]int32, 2*t.n)))
	}
	if err == nil {
		images, err = images.WithDrawn(1, data.Drawn{Name: "drawn", Draw: d})
	}
	return images, err
}

// drawn returns the values for the last sample, drawn from the same stream in every call, with surrounding guards (all) and
// without them (inner). The memory initially contains the value before.
func (t drawTrial) drawn(d data.Draw, before float32) (all, inner []float32, err error) {
	images, err := t.samples(d)
	if err != nil {
		return nil, nil, err
	}
	values := make([]float32, images.DrawnSize("drawn"))
	for i := range values {
		values[i] = before
	}
	all, inner = padded(values)
	images.DrawInto(inner, "drawn", []int{t.n - 1}, rand.New(rand.NewPCG(1, 2)))
	return all, inner, nil
}

func (t drawTrial) describes() error {
	images, err := t.samples(t.fresh())
	if err != nil {
		return err
	}
	if c, _ := images.Column("drawn"); c.Type == "" || c.Size() < 1 {
		return fmt.Errorf("it describes the shape %v and the type %q", c.Shape, c.Type)
	}
	return nil
}

func (t drawTrial) everyValue() error {
	_, first, err := t.drawn(t.fresh(), 3)
	if err != nil {
		return err
	}
	_, second, err := t.drawn(t.fresh(), -5)
	return errors.Join(err, differ("values of -5 before, compared with values of 3", second, first))
}

func (t drawTrial) inside() error {
	all, _, err := t.drawn(t.fresh(), 0)
	if err != nil {
		return err
	}
	return outside(all)
}

func (t drawTrial) typed() error {
	images, err := t.samples(t.fresh())
	if err != nil {
		return err
	}
	_, values, err := t.drawn(t.fresh(), 0)
	if err != nil {
		return err
	}
	c, _ := images.Column("drawn")
	for i, v := range values {
		switch {
		case notFinite(v):
			return fmt.Errorf("value %d is %v", i, v)
		case c.Type == data.Whole && v != float32(int(v)):
			return fmt.Errorf("value %d is %v, but the type is %s", i, v, c.Type)
		case c.Type == data.Bytes && (v < 0 || v > 1):
			return fmt.Errorf("value %d is %v, but the type is %s, which is read as values in [0,1]", i, v, c.Type)
		}
	}
	return nil
}

// repeatable also uses one part for two draws, because the second one must not depend on the first.
func (t drawTrial) repeatable() error {
	d := t.fresh()
	_, first, err := t.drawn(d, 0)
	if err != nil {
		return err
	}
	_, second, err := t.drawn(d, 0)
	return errors.Join(err, differ("a second draw, compared with the first", second, first))
}

func (t drawTrial) keepsSettings() error {
	d := t.fresh()
	if _, _, err := t.drawn(d, 0); err != nil {
		return err
	}
	if !reflect.DeepEqual(d, t.fresh()) {
		return errors.New("its settings are others afterwards")
	}
	return nil
}
