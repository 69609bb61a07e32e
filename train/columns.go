package train

import (
	"encoding/json"
	"fmt"

	"tessera/config"
	"tessera/data"
	"tessera/losses"
)

// columnsText is the metadata of the columns that a model reads, "" if there are none.
func columnsText(spec *config.Model) string {
	list := spec.Columns()
	if len(list) == 0 {
		return ""
	}
	text, _ := json.Marshal(list) // texts and numbers cannot fail
	return string(text)
}

// sound returns an error for values of columns that a term cannot take: a mask that is not 0 or 1, a weight below 0, a class that its value
// has no unit for, a target outside of the term's domain.
func sound(spec *config.Model, set *data.Set, splits data.Splits) error {
	if len(spec.Columns()) == 0 {
		return nil
	}
	layout, err := spec.Layout(set.Shape)
	if err != nil {
		return err
	}
	for i, l := range spec.Losses {
		reads := l.Reads()
		units := float32(layout.Size(l.On))
		for _, check := range []struct {
			key, column string
			wanted      func(float32) bool
			want        string
		}{
			{"mask", l.Mask, func(v float32) bool { return v == 0 || v == 1 }, "0 or 1; save masks as whole numbers, bool or floats, because bytes are divided by 255"},
			{"sample_weight", l.SampleWeight, func(v float32) bool { return v >= 0 }, "a number >= 0"},
			{"against", reads.Against, func(v float32) bool { return !reads.Unit || v >= 0 && v <= 1 }, "a number in [0,1]"},
			{"against", reads.Against, func(v float32) bool { return !reads.Classes || v < units }, fmt.Sprintf("a class less than %g, the number of values of %q", units, l.On)},
		} {
			if check.column == losses.Images || check.column == losses.Labels {
				continue // checked on their own
			}
			for _, images := range []*data.Images{splits.Fit, splits.Validation} {
				if images == nil {
					continue
				}
				if place, v := images.FirstOutside(check.column, check.wanted); place != "" {
					return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("%s: got %v, but loss[%d] (%s) reads the column as %s and wants %s", place, v, i, l.Kind, check.key, check.want)}
				}
			}
		}
	}
	return nil
}
