package laws

import (
	"errors"
	"fmt"
	"math/rand/v2"

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

// drawTrial is a data set of n samples of three values, with a further column of two whole numbers. A column is drawn for its last
// sample.
type drawTrial struct {
	writing[data.Draw]
	samples int
	column  data.Column // of a new part
}

func (t drawTrial) String() string { return fmt.Sprintf("a set of %d samples", t.samples) }

func eachDrawTrial(fresh func() data.Draw, try func(t drawTrial)) error {
	for _, n := range []int{1, 2, 7} {
		var images *data.Images
		if err := guarded(func() (err error) { images, err = drawnSamples(n, fresh()); return err }); err != nil {
			return err
		}
		t := drawTrial{samples: n}
		t.column, _ = images.Column("drawn")
		t.writing = writing[data.Draw]{fresh, images.DrawnSize("drawn"), func(d data.Draw, dst []float32) error {
			images, err := drawnSamples(n, d)
			if err == nil {
				images.DrawInto(dst, "drawn", []int{n - 1}, rand.New(rand.NewPCG(1, 2)))
			}
			return err
		}}
		try(t)
	}
	return nil
}

// drawnSamples returns the data set with d as the column "drawn".
func drawnSamples(n int, d data.Draw) (*data.Images, error) {
	images, err := data.NewFloats([]int{3}, normal(source(), 3*n, 1), make([]int, n))
	if err == nil {
		images, err = images.WithColumns(data.WholeColumn("pair", []int{2}, make([]int32, 2*n)))
	}
	if err == nil {
		images, err = images.WithDrawn(1, data.Drawn{Name: "drawn", Draw: d})
	}
	return images, err
}

func (t drawTrial) describes() error {
	if t.column.Type == "" || t.column.Size() < 1 {
		return fmt.Errorf("it describes the shape %v and the type %q", t.column.Shape, t.column.Type)
	}
	return nil
}

func (t drawTrial) typed() error {
	values, err := t.written()
	for i, v := range values {
		switch {
		case t.column.Type == data.Whole && v != float32(int(v)):
			return fmt.Errorf("value %d is %v, but the type is %s", i, v, t.column.Type)
		case t.column.Type == data.Bytes && (v < 0 || v > 1):
			return fmt.Errorf("value %d is %v, but the type is %s, which is read as values in [0,1]", i, v, t.column.Type)
		}
	}
	return errors.Join(err, t.finite())
}
