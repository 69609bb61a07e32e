package tessera

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/attack"
	"tessera/data"
	"tessera/metrics"
	"tessera/train/evaluation"
)

// Evaluate is [Run.EvaluateOn] the test images of the data set, or all images where the set has no test split.
func (r *Run) Evaluate(ctx context.Context, chosen metrics.Selection) (*metrics.Result, error) {
	return r.EvaluateOn(ctx, data.TestSplit, chosen)
}

// EvaluateOn measures the run on one split of its data set: the test images, the images that were held out for validation, or
// the fitted ones. Without a selection it measures what `tessera eval` shows, see [metrics.Default]. Data that are missing, do
// not fit or lack labels that a chosen metric needs, and a validation split of a model that holds no images out, are a
// [*data.Error].
func (r *Run) EvaluateOn(ctx context.Context, split data.Split, chosen metrics.Selection) (*metrics.Result, error) {
	sample, err := r.Sample(ctx, split)
	if err != nil {
		return nil, err
	}
	return r.EvaluateSample(ctx, sample, chosen)
}

// EvaluateSample is [Run.EvaluateOn] for images that [Run.Sample] returned.
func (r *Run) EvaluateSample(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection) (result *metrics.Result, err error) {
	err = r.computing(func(c metrics.Coder) error {
		result, err = evaluation.Measure(ctx, r.Model, c, sample, chosen)
		return err
	})
	return result, err
}

// Report measures the run on images that it was not fitted to, the test images or else those that were held out for validation,
// and beside them on fitted images, at most [evaluation.MostFitted] evenly spaced ones. Where no images are held out it
// measures the fitted ones alone, and says so. On fitted images only the metrics of [evaluation.Beside] are measured. Fitted
// images that cannot be read are not an error. The errors are those of [Run.EvaluateOn].
func (r *Run) Report(ctx context.Context, chosen metrics.Selection) (*evaluation.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	plan := evaluation.PlanOf(r.Model)
	set, err := r.load(ctx, plan.First)
	if err != nil {
		return nil, err
	}
	sample, err := evaluation.Take(set, r.Model, r.Shape(), plan.First)
	if err != nil {
		return nil, err
	}
	first, err := r.EvaluateSample(ctx, sample, chosen)
	if err != nil {
		return nil, err
	}
	report := &evaluation.Report{Result: first, HeldOut: plan.Beside != "", Note: plan.Note}
	both := evaluation.Beside(chosen)
	if !report.HeldOut || len(both) == 0 {
		return report, nil
	}
	if set.Train == nil { // test images do not bring the fitted ones with them
		set, report.Unread = r.load(ctx, plan.Beside)
	}
	if report.Unread == nil {
		sample, report.Unread = evaluation.Take(set, r.Model, r.Shape(), plan.Beside)
	}
	if report.Unread != nil {
		return report, ctx.Err()
	}
	report.FittedImages = sample.Images.Len()
	sample.Images = evaluation.Spread(sample.Images, evaluation.MostFitted)
	report.Fitted, err = r.EvaluateSample(ctx, sample, both)
	return report, err
}

// EvaluateImages measures the run on images of any origin, scaled as in the training. The result has their name in place of that of
// the data set.
func (r *Run) EvaluateImages(ctx context.Context, name string, images *data.Images, chosen metrics.Selection) (*metrics.Result, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if images == nil || images.Len() == 0 {
		return nil, &data.Error{Path: name, Problem: "there are no images to measure"}
	}
	if !slices.Equal(images.Shape, r.Shape()) {
		return nil, &data.Error{Path: name, Problem: fmt.Sprintf("its images do not have the shape of the training images (got %v, want %v)", images.Shape, r.Shape())}
	}
	return r.EvaluateSample(ctx, &evaluation.Sample{Split: evaluation.Given, Name: name, Images: images.Scaled(r.scaling)}, chosen)
}

// Attack measures what attacks do to the run: adversarial examples are computed from the images that it is evaluated on, the first
// limit of them (0: all). Equal seeds of the attacks give equal reports. A baseline, which has no gradients, gives [ErrNoGradients].
func (r *Run) Attack(ctx context.Context, attacks []attack.Attack, limit int) (*attack.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.attacked(func(attack.Target) error { return nil }); err != nil { // before images are read
		return nil, err
	}
	s, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	images := s.Images
	if limit > 0 {
		images = images.First(limit)
	}
	var report *attack.Report
	err = r.attacked(func(target attack.Target) error {
		report, err = attack.Measure(ctx, target, images.Float32(), attacks)
		return err
	})
	if err != nil {
		return nil, err
	}
	report.Model, report.Dataset = r.Model.Name, r.Model.Dataset.Name
	return report, nil
}

// ErrNoGradients says that a model cannot be attacked: it is a baseline.
var ErrNoGradients = errors.New("it has no gradients to attack it with")

// Images returns the test images of the data set, or all images where the set has no test split, before they are scaled. Data
// that are missing or do not fit are a [*data.Error].
func (r *Run) Images(ctx context.Context) (*data.Images, error) {
	s, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	return s.Images.Scaled(nil), nil
}

// Sample reads the images of a split of the run's data set with their labels: what [Run.EvaluateOn] measures. The errors are
// those of EvaluateOn.
func (r *Run) Sample(ctx context.Context, split data.Split) (*evaluation.Sample, error) {
	set, err := r.load(ctx, split)
	if err != nil {
		return nil, err
	}
	return evaluation.Take(set, r.Model, r.Shape(), split)
}

// FoundPart is a true part of a data set and the atom that is most like it.
type FoundPart struct {
	Kind string // what the part is: "limb"
	metrics.Part
}

// Parts looks for the true parts of the run's data set among its atoms and its bias: found is a cosine similarity of
// at least [metrics.PartCosine]. It returns nil where the true parts are not known or the decoder has no atoms.
func (r *Run) Parts(ctx context.Context) ([]FoundPart, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	atoms := r.Atoms()
	if atoms == nil {
		return nil, nil
	}
	if data.HasTest(r.Model.Dataset.Source) { // published images: nobody knows their parts
		return nil, nil
	}
	set, err := r.load(ctx, data.TestSplit)
	if err != nil || len(set.Parts) == 0 {
		return nil, err
	}
	table, err := metrics.PartsRecovered(set.Parts, atoms, metrics.PartCosine)
	if err != nil {
		return nil, err
	}
	found := make([]FoundPart, len(table))
	for i, p := range table {
		found[i] = FoundPart{Kind: set.Kinds[i], Part: p}
	}
	return found, nil
}

// load reads the images of a split.
func (r *Run) load(ctx context.Context, split data.Split) (*data.Set, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	source := r.Model.Dataset.Source
	if source == nil {
		return nil, errors.New("tessera: the model has no data set")
	}
	if r.options.Images != nil {
		var err error
		if source, err = r.options.Images.For(source); err != nil {
			return nil, err
		}
	}
	set, err := data.Load(ctx, r.origin.Placed(source), r.origin.Dirs(r.dirs), data.NeedOf(source, r.Model.Dataset.Selection, split))
	if err != nil || set == nil {
		return set, err
	}
	return set.Scaled(r.scaling), r.origin.Changed(set.Name, set.Files)
}
