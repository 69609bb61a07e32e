package evaluation

import (
	"bytes"
	"encoding/json"
	"fmt"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// MostFitted is the number of fitted images that [Spread] keeps: enough for every metric, whatever the size of the set.
const MostFitted = 10000

// Plan says which images an evaluation measures: held-out ones first, and fitted ones beside them.
type Plan struct {
	First  data.Split
	Beside data.Split // "" where no images are held out: those of First are the fitted ones
	Note   string     // what a reader must know of First, "" where nothing
}

// chosen is the note of validation images on which early stopping chose the epoch.
const chosen = "they also chose the epoch"

// PlanOf returns the plan of a model: its test images, else the images that it holds out for validation, else the fitted ones.
func PlanOf(m *config.Model) Plan {
	if m == nil {
		return Plan{First: data.TestSplit}
	}
	sel := m.Dataset.Selection
	onTest, note := sel.Fit == "test", ""
	if m.EarlyStops() {
		note = chosen
	}
	switch {
	case data.HasTest(m.Dataset.Source) && !onTest && sel.Validation.Test:
		return Plan{data.TestSplit, data.TrainSplit, note}
	case data.HasTest(m.Dataset.Source) && !onTest:
		return Plan{data.TestSplit, data.TrainSplit, ""}
	case !sel.Validation.Test && sel.Validation.Fraction > 0:
		return Plan{data.ValidationSplit, data.TrainSplit, note}
	case onTest && sel.Limit == 0:
		return Plan{data.TestSplit, "", "fitted to these images, none are held out"}
	}
	return Plan{data.TrainSplit, "", "fitted to these images, none are held out"}
}

// Spread returns at most n images, evenly spaced over all of them.
func Spread(images *data.Images, n int) *data.Images {
	if images == nil || images.Len() <= n {
		return images
	}
	all := images.Len()
	indices := make([]int, n)
	for i := range indices {
		indices[i] = i * all / n
	}
	return images.Subset(indices)
}

// Beside returns the metrics of a selection that are also measured on fitted images: those that depend on images and are not
// on request. nil stands for [metrics.Default].
func Beside(chosen metrics.Selection) (both metrics.Selection) {
	if chosen == nil {
		chosen = metrics.Default()
	}
	const samples = metrics.ReadsImages | metrics.ReadsCodes | metrics.ReadsOutputs | metrics.ReadsLogits
	for _, c := range chosen {
		if c.Metric == nil {
			continue
		}
		if d := c.Metric.Describe(); !d.OnRequest && d.Reads&samples != 0 {
			c.Optional = true
			both = append(both, c)
		}
	}
	return both
}

// Report is a model measured on held-out images and, beside them, on fitted ones.
type Report struct {
	*metrics.Result                 // on held-out images; on fitted ones where none are held out
	HeldOut         bool            // whether the model has never been fitted to these images
	Note            string          // of [Plan]
	Fitted          *metrics.Result // on fitted images; nil where Result is, and where they could not be read
	FittedImages    int             // how many there are; Fitted may be of fewer, evenly spaced
	Unread          error           // why the fitted images could not be read; nil where they were
}

// amongThem is the note of a split that has fitted images among others.
const amongThem = "the fitted images among them"

// ReportOf returns the report of one measured split: whether the model was fitted to its images.
func ReportOf(m *config.Model, measured *metrics.Result) *Report {
	r := &Report{Result: measured}
	if m == nil || measured == nil {
		return r
	}
	switch plan := PlanOf(m); data.Split(measured.Split) {
	case Given:
		r.Note = "not of the data set"
	case data.ValidationSplit:
		r.HeldOut = true
		if m.EarlyStops() {
			r.Note = chosen
		}
	case data.TestSplit:
		r.HeldOut = m.Dataset.Fit != "test"
		if plan.First == data.TestSplit {
			r.Note = plan.Note
		} else if !r.HeldOut {
			r.Note = amongThem
		}
	case data.TrainSplit:
		r.Note = "fitted to these images"
	default:
		r.Note = amongThem
	}
	return r
}

// MarshalJSON writes the members of the result, then "held_out", "note" and "fitted": a result with the further member "of", the number of fitted
// images.
func (r *Report) MarshalJSON() ([]byte, error) {
	if r == nil || r.Result == nil {
		return []byte("null"), nil
	}
	first, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(first, []byte("}"))
	if r.Split != string(Given) { // of those nobody knows it
		text = fmt.Appendf(text, `,"held_out":%t`, r.HeldOut)
	}
	if r.Note != "" {
		note, err := json.Marshal(r.Note)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, `,"note":%s`, note)
	}
	if r.Fitted != nil {
		fitted, err := json.Marshal(r.Fitted)
		if err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, `,"fitted":{"of":%d,%s`, r.FittedImages, bytes.TrimPrefix(fitted, []byte("{")))
	}
	return append(text, '}'), nil
}
