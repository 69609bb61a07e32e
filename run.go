package tessera

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/losses"
	"tessera/metrics"
	"tessera/posthoc"
)

// Run is a trained model in memory: a [Coder], with the data set of its training. [Train], [Resume] and [Open] return it; the caller closes
// it. In a process other than rank 0 of a group a Run has a Result and no model: its methods return an error.
//
// Packages work with runs: [tessera/classical/generate] draws images, [tessera/posthoc/refit] fits calibrations and thresholds, and
// [tessera/attack/runs] attacks.
type Run struct {
	*Coder
	Model  *config.Model // declaration of the training, with all defaults
	Path   string        // folder of the run, or name of the file from which the run was read
	Epoch  int           // epoch of the parameters, with early stopping the best one; for a baseline, iterations
	Step   int           // number of optimizer steps of the parameters
	Result *train.Result // result of the training; nil for a run that was read from a file

	images *data.Memory // images of the training in memory; nil for none
	dirs   data.Dirs
}

// Coder computes with a trained model, for any number of goroutines, of which one at a time computes. It is a [metrics.Coder] (Shape,
// Units, Encode, Decode, Atoms, WithAtoms) and a [metrics.ValueCoder] of samples before scaling:
//
//   - Value(name, images) and ValueOf(name, columns) compute any value that Values or Named lists, ShapeOf its shape, Columns(name) the
//     columns that it is computed from; Given returns these of samples that were read from a file with the columns InFile;
//   - Predict(head, images) and PredictFrom(head, columns) return a [Prediction] of one of ClassHeads; PredictionOf one of logits;
//   - Encoder(options) returns an [Encoder] for goroutines that compute at the same time;
//   - Complete fills missing entries; PredictEntries predicts those of a matrix_factorisation, if PredictsEntries;
//   - Components returns those of a mixture, Range the range of the fitted samples, ValueNames the names of the values of a sample;
//   - Calibration, Thresholds and PostHoc return what was fitted to the heads, Refit changes it;
//   - Decodes and Reconstructs return the reason why the model does not;
//   - Do calls a function with the coder of scaled samples, whose capabilities [metrics.As] finds, while nobody else computes;
//   - Close frees it: afterwards every method that returns an error returns [ErrClosed].
type Coder = coder.Coder

// Encoder computes the code, or another value, of samples with the parameters of a run; any number of goroutines may use it at the same
// time. Its methods are Encode(ctx, dst, images), Stream, Columns, Units, Programs and Close.
type Encoder = coder.Encoder

// EncoderOptions are the options of an [Encoder]: Sizes of batches, Workers, and the name of the Value.
type EncoderOptions = coder.EncoderOptions

// Prediction is the prediction of a head of a classifier for samples: Classes, Labels and Probabilities.
type Prediction = coder.Prediction

// Answers is the data set `run`: samples of another data set, with values that a run computes.
type Answers = coder.Answers

// Errors of runs.
var (
	ErrClosed     = coder.ErrClosed      // a run or an encoder was closed
	ErrNoClasses  = coder.ErrNoClasses   // no head of the model predicts classes
	ErrNoOutput   = coder.ErrNoOutput    // the model does not reconstruct images
	ErrNoWords    = train.ErrNoWords     // the model was not fitted to texts
	ErrNoTexts    = coder.ErrNoTexts     // the model compares nothing with texts
	ErrNoLanguage = coder.ErrNoLanguage  // the model does not predict the next token
	ErrNoMatrix   = coder.ErrNoMatrix    // the model does not predict entries of a matrix
	ErrNoSampler  = metrics.ErrNoSampler // no images can be drawn from the model
)

var errNoContext = errors.New("tessera: no context: give context.Background()")

func (o Options) newRun(c *Coder, t *train.Trained, path string) *Run {
	r := &Run{Coder: c, Path: path, images: o.Images, dirs: data.SearchDirs(o.Data)}
	if t != nil {
		r.Model, r.Epoch, r.Step = t.Spec, t.Epoch, t.Step
	}
	return r
}

// Close waits until no goroutine computes and frees the compiled programs and goroutines. Afterwards every method that returns an error
// returns [ErrClosed]; a second Close, and that of a nil Run, does nothing. Encoders remain open.
func (r *Run) Close() error {
	if r == nil {
		return nil
	}
	return r.Coder.Close()
}

// Codes returns the codes of samples, row by row, computed from all columns that the code depends on. Encode does the same for images alone.
func (r *Run) Codes(ctx context.Context, samples *data.Images) ([]float32, error) {
	if samples != nil {
		samples = samples.Scaled(nil)
	}
	return r.ValuesOf(ctx, losses.Code, samples)
}

// Evaluate is like [Run.EvaluateOn], for the test images of the data set, or for all images if there is no test split.
func (r *Run) Evaluate(ctx context.Context, chosen metrics.Selection) (*metrics.Result, error) {
	return r.EvaluateOn(ctx, data.TestSplit, chosen)
}

// EvaluateOn measures the run on one split of its data set: the test images, the validation images or the fitted images.
// Without a selection it measures the metrics that `tessera eval` shows, see [metrics.Default]. It returns a [*data.Error] if
// data are missing or do not match the model, if they lack labels that a chosen metric needs, or if the model has no
// validation images.
func (r *Run) EvaluateOn(ctx context.Context, split data.Split, chosen metrics.Selection) (*metrics.Result, error) {
	sample, err := r.Sample(ctx, split, r.columnsOf(chosen)...)
	if err != nil {
		return nil, err
	}
	return r.EvaluateSample(ctx, sample, chosen)
}

// columnsOf lists the further columns that metrics read; of a run without a model none.
func (r *Run) columnsOf(chosen metrics.Selection) []string {
	if r == nil || r.Model == nil {
		return nil
	}
	return metrics.ColumnsOf(chosen, r.Model.Dataset.Source)
}

// EvaluateSample is like [Run.EvaluateOn], for images returned by [Run.Sample].
func (r *Run) EvaluateSample(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection) (result *metrics.Result, err error) {
	if err := r.Ready(); err != nil {
		return nil, err
	}
	return r.EvaluateWith(ctx, sample, chosen, r.Heads())
}

// EvaluateWith measures the run with the given calibrations and thresholds of its heads, whatever those of the run are.
func (r *Run) EvaluateWith(ctx context.Context, sample *evaluation.Sample, chosen metrics.Selection, heads map[string]posthoc.Head) (result *metrics.Result, err error) {
	err = r.DoWith(heads, func(c metrics.Coder) error {
		if sample != nil && sample.Range == [2]float32{} {
			of := *sample
			of.Range[0], of.Range[1] = r.Range()
			sample = &of
		}
		result, err = evaluation.Measure(ctx, r.Model, c, sample, chosen)
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
	if err := r.Ready(); err != nil {
		return nil, err
	}
	plan := evaluation.PlanOf(r.Model)
	columns := r.columnsOf(chosen)
	set, err := r.load(ctx, plan.First, columns...)
	if err != nil {
		return nil, err
	}
	sample, err := evaluation.Take(set, r.Model, r.Shape(), plan.First)
	if err != nil {
		return nil, err
	}
	report := &evaluation.Report{HeldOut: plan.Fitted != "", Note: plan.Note}
	if !report.HeldOut {
		report.FittedImages = sample.Images.Len()
		set = nil
		sample.Lighten()
	}
	both := evaluation.OnFitted(r.Model, chosen)
	if report.HeldOut {
		chosen = evaluation.OnHeldOut(chosen)
	}
	if report.Result, err = r.EvaluateSample(ctx, sample, chosen); err != nil {
		return nil, err
	}
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
	if err := r.Ready(); err != nil {
		return nil, err
	}
	if images == nil || images.Len() == 0 {
		return nil, &data.Error{Path: name, Problem: "there are no samples to measure"}
	}
	if !slices.Equal(images.Shape, r.Shape()) {
		return nil, &data.Error{Path: name, Problem: fmt.Sprintf("its samples do not have the shape of the training samples (got %v, want %v)", images.Shape, r.Shape())}
	}
	images = images.WithMeans(r.Seen().Means).Scaled(r.Scaling())
	if drawn := r.Model.Dataset.Drawn; drawn != nil {
		var err error
		if images, err = images.WithDrawn(r.Model.Train.Seed, *drawn...); err != nil {
			return nil, &data.Error{Path: name, Err: err}
		}
	}
	return r.EvaluateSample(ctx, &evaluation.Sample{Split: evaluation.Given, Name: name, Images: images, Classes: r.Measured()[0].Names}, chosen)
}

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
	if err := r.Ready(); err != nil {
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
	if err := r.Ready(); err != nil {
		return nil, err
	}
	source := r.Model.Dataset.Source
	if source == nil {
		return nil, errors.New("tessera: the model has no data set")
	}
	if r.images != nil {
		var err error
		if source, err = r.images.For(source); err != nil {
			return nil, err
		}
	}
	need := r.Model.Dataset.NeedOf(split)
	need.Columns = slices.Clone(need.Columns)
	need.Columns = lists.Add(need.Columns, columns...)
	set, err := data.Load(ctx, r.Origin.Placed(source), r.Origin.Dirs(r.dirs), need)
	if err != nil || set == nil {
		return set, err
	}
	if err := r.SameClasses(set); err != nil {
		return nil, err
	}
	return set.WithMeans(r.Seen().Means).Scaled(r.Scaling()), r.Origin.Changed(set.Name, set.Files)
}
