package metrics

import (
	"strconv"
	"strings"

	"tessera/data"
)

func init() {
	for _, m := range []struct{ name, of, about, doc string }{
		{"mse_observed", data.ImagesColumn, "mean squared error of the entries that are there",
			"mean of (x - y)² over the entries that are neither missing (`missing` of the data set) nor hidden (`hide`). Not applicable to data without such entries"},
		{"mse_held_out", data.CompleteColumn, "mean squared error of the entries that were hidden",
			"mean of (x - y)² over the entries that were hidden from the model on purpose (`hide` of the data set). Not applicable to data without such entries"},
	} {
		mask := data.ObservedColumn
		if m.of == data.CompleteColumn {
			mask = data.HeldOutColumn
		}
		register(m.name, m.about, Description{
			Measures: []Measure{{Name: m.name, Better: Lower, Doc: m.doc}},
			Reads:    ReadsImages | ReadsOutputs, ScaleFree: true, Partial: true, OnRequest: true, Masked: true,
		}, func(s *Subject) (Meter, error) { return maskedMSE(mask, m.of, s.Shape), nil })
	}
}

// WithHoles adds mse_observed and mse_held_out, as optional metrics, to a selection that contains mse. A nil selection means
// [Default].
func WithHoles(chosen Selection) Selection {
	if chosen == nil {
		chosen = Default()
	}
	for _, c := range chosen {
		if c.first() != "mse" {
			continue
		}
		more, err := Select("mse_observed", "mse_held_out")
		if err != nil { // they are registered above
			panic(err)
		}
		for i := range more {
			more[i].Optional = true
		}
		return chosen.Add(more)
	}
	return chosen
}

// maskedMSE returns the meter for the mean of (x - y)^2 over the entries where a mask is 1. mask and of are the names of the
// columns that contain the mask and x.
func maskedMSE(mask, of string, shape []int) Meter {
	sum, count := 0.0, 0.0
	var each []errorsOf // one per value of a vector
	if len(shape) == 1 && of == data.CompleteColumn {
		each = make([]errorsOf, shape[0])
	}
	return meter{func(b *Batch) error {
		m, x := b.Columns[mask], b.Columns[of]
		if of == data.ImagesColumn {
			x = b.Images
		}
		if x == nil {
			return nil
		}
		for i, counts := range m {
			if counts != 0 {
				if each != nil {
					each[i%len(each)].add(float64(b.Outputs[i]), float64(x[i]))
				}
				d := float64(x[i]) - float64(b.Outputs[i])
				sum += d * d
				count++
			}
		}
		return nil
	}, func() []Value {
		if count == 0 {
			return []Value{NotApplicable("there are no such entries")}
		}
		v := Number(sum / count)
		const least = 20 // entries
		for k, e := range each {
			if e.n >= least && e.squared > e.deviation {
				v.Worse = strings.TrimSpace(v.Worse + " " + strconv.Itoa(k))
			}
		}
		return []Value{v}
	}}
}
