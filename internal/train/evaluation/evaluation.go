// Package evaluation measures a trained model on the images of its data set, for `eval`, sweeps and Go programs.
package evaluation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/metrics"
)

// Given is the split name of images that belong to no data set.
const Given data.Split = "given"

// Sample contains the images on which a model is measured.
type Sample struct {
	Split   data.Split
	Name    string // name of the data set; "" for the data set of the model
	Images  *data.Images
	Rows    []float32  // the values of Images, row-major; computed if nil
	Classes []string   // names of the labels; nil if unknown
	Range   [2]float32 // range of the fitted samples before scaling; zeros mean 0 and 1
}

// Take returns the images of one of a model's splits. shape is the shape of the model's inputs. Take returns a [*data.Error]
// for images of another shape, and for a split that the model does not have.
func Take(set *data.Set, m *config.Model, shape []int, split data.Split) (*Sample, error) {
	if set == nil || m == nil {
		return nil, errors.New("evaluation: no data set, or no model to measure on it")
	}
	images, split, err := set.Measured(m.Dataset.Selection, m.Train.Seed, split)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(set.Shape, shape) {
		return nil, &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("its samples do not have the shape of the training samples (got %v, want %v)", set.Shape, shape)}
	}
	if err := m.Unusable(set.Name, set.Shape, images); err != nil {
		return nil, err
	}
	return &Sample{Split: split, Images: images, Classes: set.Classes}, nil
}

// Measure measures a trained model on a sample, with the seed and the KL target of the model. It returns a [*data.Error] if a
// chosen metric needs labels that the images lack, and the errors of [metrics.Evaluate]. Of a sparse matrix it measures at
// most 2^21 entries, including missing ones, in evenly spaced rows; of samples on disk, at most 10,000 and 2^23 values.
func Measure(ctx context.Context, m *config.Model, coder metrics.Coder, s *Sample, chosen metrics.Selection) (r *metrics.Result, err error) {
	if m == nil || s == nil || s.Images == nil {
		return nil, errors.New("evaluation: no model, or no samples to measure it on")
	}
	rows, images := s.Rows, s.Images
	if rows == nil {
		images = measured(images)
	}
	if images.OnDisk() && rows == nil {
		images = Spread(images, min(MostFitted, max(1, mostOnDisk/images.Pixels())))
	}
	if rows == nil {
		rows = images.Float32()
	}
	sample := metrics.Sample{Images: rows, Columns: images.All(), Labels: images.Labels(), Names: names(s), Seed: m.Train.Seed, Parts: images.Parts, Downstream: images.Following(), Known: Known(m), Scaling: images.Scaling(), Unscaled: images.Scaled(nil), Range: s.Range}
	unchosen := chosen.HasDefault()
	if chosen, err = judging(m, chosen, s.Split == data.TrainSplit || PlanOf(m).Fitted == ""); err != nil {
		return nil, err
	}
	if images.Holed() {
		chosen = metrics.WithHoles(chosen)
	}
	r, err = metrics.Evaluate(ctx, coder, sample, chosen)
	if bad, ok := errors.AsType[*data.Error](err); ok { // package metrics does not know the data set
		named := *bad
		if named.Dataset = m.Dataset.Name; s.Name != "" {
			named.Dataset = s.Name
		}
		if s.Split == Given && named.Hint == "" {
			named.Hint = "give the labels in the file of the samples, under the name that they have in the training or as labels, or name metrics that need none"
		}
		return nil, &named
	} else if err != nil {
		return nil, err
	}
	r.Model, r.Dataset, r.Split = m.Name, m.Dataset.Name, string(s.Split)
	if s.Name != "" {
		r.Dataset = s.Name
	}
	if first := m.FirstMeasures(); unchosen {
		r.Values.Lead(first)
	}
	return r, nil
}

// judging adds the metrics by which the model is judged to a selection that nobody has chosen: those of fitted samples if these are measured.
func judging(m *config.Model, chosen metrics.Selection, fitted bool) (metrics.Selection, error) {
	if !chosen.HasDefault() {
		return chosen, nil
	}
	if chosen == nil {
		chosen = metrics.Default()
	}
	first, err := metrics.Select(lists.Only(m.FirstMeasures(), func(name string) bool { return fitted || !ofFitted(name) })...)
	for i := range first {
		first[i].Optional = true
	}
	return chosen.Add(first), err
}

// ofFitted reports whether a measure is one of the samples that a model was fitted to.
func ofFitted(name string) bool {
	m, ok := metrics.MeasureOf(name)
	return ok && m.Fitted
}

// measured returns the rows of a sparse matrix that are measured; other samples as they are.
func measured(images *data.Images) *data.Images {
	if !images.Sparse() {
		return images
	}
	return Spread(images, max(1, mostDense/images.Pixels()))
}

// Lighten leaves only the samples that are measured in memory.
func (s *Sample) Lighten() { s.Images = measured(s.Images).Compact() }

// mostOnDisk is the maximum number of values that are measured of samples that do not fit into memory.
const mostOnDisk = 1 << 23

// mostDense is the maximum number of values, including missing ones, that are measured of a sparse matrix.
const mostDense = 1 << 21

// names returns the class names of the labels and of other columns.
func names(s *Sample) map[string][]string {
	all := map[string][]string{data.LabelsColumn: s.Classes}
	for _, c := range s.Images.Columns() {
		all[c.Name] = c.Names
	}
	return all
}

// Known returns the settings of a model's losses that metrics need, such as the target of the kl term; see [metrics.Sample].
func Known(m *config.Model) map[string]float64 {
	target, _, ok := m.KL()
	if !ok {
		return nil
	}
	return map[string]float64{"kl.target": target}
}

// MostFitted is the maximum number of fitted images that an evaluation measures: enough for every metric.
const MostFitted = 10000

// Plan names the splits that an evaluation measures: first the held-out images, then fitted images for comparison.
type Plan struct {
	First  data.Split
	Fitted data.Split // "" if no images are held out: First is then the fitted images
	Note   string     // a caveat about First, "" if there is none
}

// chosen is the note for validation images that early stopping has used to select the epoch.
const chosen = "they also chose the epoch"

// PlanOf returns the plan for a model. First is the test images if there are any, else the validation images, else the fitted
// images. The note says where labels are predictions.
func PlanOf(m *config.Model) Plan {
	if m == nil {
		return Plan{First: data.TestSplit}
	}
	p := splitsOf(m)
	p.Note = withPredictor(p.Note, m)
	return p
}

// withPredictor adds to a note that the labels of the data set are predictions.
func withPredictor(note string, m *config.Model) string {
	run := data.PredictorOf(m.Dataset.Source)
	if run == "" {
		return note
	}
	if note != "" {
		note += "; "
	}
	return note + "labels are the predictions of " + run + ": accuracy is agreement with them"
}

// splitsOf is [PlanOf] without what the note says of the labels.
func splitsOf(m *config.Model) Plan {
	sel := m.Dataset.Selection
	onTest, note := sel.Fit == "test", ""
	if m.SelectsOnValidation() {
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
		return Plan{data.TestSplit, "", "fitted to these samples, none are held out"}
	}
	return Plan{data.TrainSplit, "", "fitted to these samples, none are held out"}
}

// Spread returns at most n of the images, evenly spaced.
func Spread(images *data.Images, n int) *data.Images {
	if images == nil || images.Len() <= n {
		return images
	}
	all := images.Len()
	indices := lists.Of(n, func(i int) int { return i * all / n })
	return images.Subset(indices)
}

// OnFitted returns the metrics of a selection that an evaluation also measures on fitted images: metrics that depend on
// samples, not only on the model, except those that are measured only on request. A nil selection means [metrics.Default]. If nobody has chosen,
// these are also the ones by which the model is judged on fitted images; m may be nil.
func OnFitted(m *config.Model, chosen metrics.Selection) (both metrics.Selection) {
	if m != nil && chosen.HasDefault() {
		both, _ = metrics.Select(lists.Only(m.FirstMeasures(), ofFitted)...) // without unknown names, which the other images report
	}
	if chosen == nil {
		chosen = metrics.Default()
	}
	const model = metrics.ReadsSums | metrics.ReadsAtoms | metrics.ReadsWeights | metrics.ReadsEncoder | metrics.ReadsPictures | metrics.ReadsParts
	for _, c := range chosen {
		if c.Metric == nil {
			continue
		}
		if d := c.Metric.Describe(); ofFitted(d.Measures[0].Name) || !d.OnRequest && d.Reads&^model != 0 {
			c.Optional = true
			both = append(both, c)
		}
	}
	return both
}

// OnHeldOut returns a selection without metrics of fitted images, unless there are no others.
func OnHeldOut(chosen metrics.Selection) metrics.Selection {
	others := lists.Only(chosen, func(c metrics.Choice) bool { return c.Metric == nil || !ofFitted(c.Metric.Describe().Measures[0].Name) })
	if len(others) == 0 {
		return chosen
	}
	return others
}

// Report contains the metrics of a model on held-out images and, for comparison, on fitted images.
type Report struct {
	*metrics.Result                 // metrics on held-out images; on fitted images if no images are held out
	HeldOut         bool            // the model was not fitted to the images of Result
	Note            string          // caveat; see [Plan]
	Fitted          *metrics.Result // metrics on fitted images; nil if Result is already on fitted images, or if they could not be read
	FittedImages    int             // number of all fitted images; fewer, evenly spaced, may be measured
	Unread          error           // why the fitted images could not be read; nil if they were
}

// CountFitted returns the number of samples to which the measured model was fitted, 0 if unknown.
func (r *Report) CountFitted() int {
	switch {
	case data.Split(r.Split) == Given:
		return 0
	case r.HeldOut || r.FittedImages > 0:
		return r.FittedImages
	}
	return r.Images
}

// amongThem is the note for a split that contains some of the fitted images.
const amongThem = "the fitted samples among them"

// ReportOf returns the report of one measured split. It notes whether the model was fitted to these samples.
func ReportOf(m *config.Model, measured *metrics.Result) *Report {
	r := &Report{Result: measured}
	if m == nil || measured == nil {
		return r
	}
	switch plan := splitsOf(m); data.Split(measured.Split) {
	case Given:
		r.Note = "not of the data set"
		return r
	case data.ValidationSplit:
		r.HeldOut = true
		if m.SelectsOnValidation() {
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
		r.Note = "fitted to these samples"
	default:
		r.Note = amongThem
	}
	r.Note = withPredictor(r.Note, m)
	return r
}

// MarshalJSON writes the members of the result, then "held_out", "note" and "fitted", which is another result with the
// additional member "of", the number of fitted images.
func (r *Report) MarshalJSON() ([]byte, error) {
	if r == nil || r.Result == nil {
		return []byte("null"), nil
	}
	first, err := json.Marshal(r.Result)
	if err != nil {
		return nil, err
	}
	text := bytes.TrimSuffix(first, []byte("}"))
	if r.Split != string(Given) { // unknown for given images
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
