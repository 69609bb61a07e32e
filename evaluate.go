package tessera

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/attack"
	"tessera/data"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
	"tessera/posthoc"
)

// Evaluate is like [Run.EvaluateOn], for the test images of the data set, or for all images if there is no test split.
func (r *Run) Evaluate(ctx context.Context, chosen metrics.Selection) (*metrics.Result, error) {
	return r.EvaluateOn(ctx, data.TestSplit, chosen)
}

// EvaluateOn measures the run on one split of its data set: the test images, the validation images or the fitted images.
// Without a selection it measures the metrics that `tessera eval` shows, see [metrics.Default]. It returns a [*data.Error] if
// data are missing or do not match the model, if they lack labels that a chosen metric needs, or if the model has no
// validation images.
func (r *Run) EvaluateOn(ctx context.Context, split data.Split, chosen metrics.Selection) (*metrics.Result, error) {
	sample, err := r.Sample(ctx, split, metrics.ColumnsOf(chosen)...)
	if err != nil {
		return nil, err
	}
	return r.EvaluateSample(ctx, sample, chosen)
}

// EvaluateSample is like [Run.EvaluateOn], for images returned by [Run.Sample].
func (r *Run) EvaluateSample(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection) (result *metrics.Result, err error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	return r.measured(ctx, sample, chosen, r.fitted())
}

// measured measures the run with the given calibrations and thresholds of its heads, whatever those of the run are.
func (r *Run) measured(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection, heads map[string]posthoc.Head) (result *metrics.Result, err error) {
	err = r.computing(func(c metrics.Coder) error {
		if sample != nil && sample.Range == [2]float32{} {
			of := *sample
			of.Range, sample = r.span, &of
		}
		result, err = evaluation.Measure(ctx, r.Model, withPostHoc(c, heads), sample, chosen)
		return err
	})
	if err == nil {
		result.PostHoc = posthoc.Describe(heads)
	}
	return result, err
}

// Report measures the run on images to which it was not fitted: the test images, or else the validation images. It also
// measures the metrics of [evaluation.OnFitted] on at most [evaluation.MostFitted] evenly spaced fitted images. If no images
// are held out, it measures the fitted images only, and the report says so. Missing fitted images are not an error. The errors
// are the errors of [Run.EvaluateOn].
func (r *Run) Report(ctx context.Context, chosen metrics.Selection) (*evaluation.Report, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	plan := evaluation.PlanOf(r.Model)
	columns := metrics.ColumnsOf(chosen)
	set, err := r.load(ctx, plan.First, columns...)
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
	report := &evaluation.Report{Result: first, HeldOut: plan.Fitted != "", Note: plan.Note}
	both := evaluation.OnFitted(chosen)
	if !report.HeldOut || len(both) == 0 {
		return report, nil
	}
	if set.Train == nil { // test images do not bring the fitted ones with them
		set, report.Unread = r.load(ctx, plan.Fitted, columns...)
	}
	if report.Unread == nil {
		sample, report.Unread = evaluation.Take(set, r.Model, r.Shape(), plan.Fitted)
	}
	if report.Unread != nil {
		return report, ctx.Err()
	}
	report.FittedImages = sample.Images.Len()
	sample.Images = evaluation.Spread(sample.Images, evaluation.MostFitted)
	report.Fitted, err = r.EvaluateSample(ctx, sample, both)
	return report, err
}

// EvaluateImages measures the run on given images, scaled as in the training. The result contains the images' name instead of
// the data set's.
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
	images = images.Scaled(r.scaling)
	if drawn := r.Model.Dataset.Drawn; drawn != nil {
		var err error
		if images, err = images.WithDrawn(r.Model.Train.Seed, *drawn...); err != nil {
			return nil, &data.Error{Path: name, Err: err}
		}
	}
	return r.EvaluateSample(ctx, &evaluation.Sample{Split: evaluation.Given, Name: name, Images: images}, chosen)
}

// Attack measures the effect of attacks on the run. Adversarial examples are computed from the first limit images (0: all) on
// which the run is evaluated. Equal seeds of the attacks give equal reports. If the data set has a `scale`, perturbations and errors
// are those of scaled values. If an attack has no range, perturbed values stay within [0,1] or, if it is larger, within the range of the
// fitted samples ([Run.Range]); with a `scale`, within that of the measured samples. It returns [ErrNoGradients] for a baseline.
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
	if images.Holed() {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "entries of its images are missing or hidden, and attacks compare all of them"}
	}
	low, high := r.Range()
	if r.scaling != nil {
		low, high = images.Range()
	}
	attacks = slices.Clone(attacks)
	for i := range attacks {
		if attacks[i].Range == [2]float32{} && (low < 0 || high > 1) {
			attacks[i].Range = [2]float32{low, high}
		}
	}
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

// ErrNoGradients is the error for an attack on a baseline, which has no gradients.
var ErrNoGradients = errors.New("it has no gradients to attack it with")

// Images returns the test images of the data set, or all images if there is no test split, before scaling. It returns a
// [*data.Error] for missing or unsuitable data.
func (r *Run) Images(ctx context.Context) (*data.Images, error) {
	s, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	return s.Images.Scaled(nil), nil
}

// Sample reads the images of a split of the run's data set with their labels, as [Run.EvaluateOn] does, and also the columns
// that the model does not read. The errors are the errors of EvaluateOn.
func (r *Run) Sample(ctx context.Context, split data.Split, columns ...string) (*evaluation.Sample, error) {
	set, err := r.load(ctx, split, columns...)
	if err != nil {
		return nil, err
	}
	return evaluation.Take(set, r.Model, r.Shape(), split)
}

// FoundPart is a true part of a data set and the atom that is most similar to it.
type FoundPart struct {
	Kind string // kind of the part: "limb"
	metrics.Part
}

// Parts compares the true parts of the run's data set with its atoms and its bias: a part is found if the cosine similarity
// is at least [metrics.PartCosine]. It returns nil if the true parts are unknown or the decoder has no atoms.
func (r *Run) Parts(ctx context.Context) ([]FoundPart, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	atoms := r.Atoms()
	if atoms == nil {
		return nil, nil
	}
	if source := r.Model.Dataset.Source; data.HasTest(source) || data.IsOwn(source) { // published images and files: nobody knows their parts
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
func (r *Run) load(ctx context.Context, split data.Split, columns ...string) (*data.Set, error) {
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
	need := r.Model.Dataset.NeedOf(split)
	need.Columns = slices.Clone(need.Columns)
	for _, name := range columns {
		if !slices.Contains(need.Columns, name) {
			need.Columns = append(need.Columns, name)
		}
	}
	set, err := data.Load(ctx, r.origin.Placed(source), r.origin.Dirs(r.dirs), need)
	if err != nil || set == nil {
		return set, err
	}
	return set.Scaled(r.scaling), r.origin.Changed(set.Name, set.Files)
}
