package metrics

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// Sample is what a coder is measured on.
type Sample struct {
	Images []float32 // n x pixels, row-major
	Labels []int     // one class per image, negative where it is unknown; nil where none is known
	Seed   uint64    // of metrics that draw numbers

	// Parts are the true parts of the images, one image each; nil where they are not known.
	Parts [][]float32

	// Known holds settings of the model's losses that metrics compare with: "kl.target" is the target of its first KL term.
	Known map[string]float64
}

// Evaluate measures what is chosen of a coder on a sample, [Default] where nothing is: every image is encoded once, and
// decoded once, in batches. Sums are in float64 and in a fixed order: the number of processors changes no bit. It fails
// when the coder does, when ctx is done, when a number is not finite, and, with a [*data.Error], when a choice that is not
// optional lacks labels.
func Evaluate(ctx context.Context, coder Coder, s Sample, chosen Selection) (r *Result, err error) {
	if ctx == nil {
		return nil, errors.New("metrics: no context: give context.Background()")
	}
	if coder == nil {
		return nil, errors.New("metrics: no coder to evaluate")
	}
	if chosen == nil {
		chosen = Default()
	}
	n, err := imageCount(coder, s.Images)
	if err != nil {
		return nil, err
	}
	if s.Labels != nil && len(s.Labels) != n {
		return nil, fmt.Errorf("metrics: got %d labels, want one for each of %d images", len(s.Labels), n)
	}
	subject := Subject{Coder: coder, Shape: coder.Shape(), Units: coder.Units(), Images: n, Seed: s.Seed, Known: s.Known, Parts: s.Parts,
		Atoms: coder.Atoms(), Weight: LastWeight(coder)}
	if subject.Atoms != nil {
		if err := subject.Atoms.check(); err != nil {
			return nil, err
		}
	}
	heads := classHeads(coder)
	e := evaluation{coder: coder, sample: s, heads: heads, pixels: len(s.Images) / n}
	if e.meters, err = Start(subject, e.has(subject), heads, chosen); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.meters.Close()) }()
	if err := e.measure(ctx, n); err != nil {
		return nil, err
	}
	values, err := e.meters.Values(ctx)
	if err != nil {
		return nil, err
	}
	if err := finite(values); err != nil {
		return nil, err
	}
	return &Result{Images: n, Vectors: len(coder.Shape()) == 1, Values: values, given: e.meters.given()}, nil
}

// evaluation is one run of Evaluate.
type evaluation struct {
	coder  Coder
	sample Sample
	pixels int
	heads  []string // with one logit per class
	meters *Meters
}

// has is what there is of a model and its sample.
func (e *evaluation) has(s Subject) Reads {
	has := ReadsImages | ReadsCodes
	for part, there := range map[Reads]bool{
		ReadsOutputs: hasOutput(e.coder), ReadsAtoms: s.Atoms != nil, ReadsWeights: s.Weight != nil,
		ReadsLabels: e.sample.Labels != nil, ReadsLogits: len(e.heads) > 0, ReadsPictures: len(s.Shape) > 1, ReadsParts: len(e.sample.Parts) > 0,
	} {
		if there {
			has |= part
		}
	}
	return has
}

// measure gives every batch to the meters, where one of them reads images or what is made of them.
func (e *evaluation) measure(ctx context.Context, n int) error {
	if e.meters.Reads()&(ReadsImages|ReadsCodes|ReadsOutputs|ReadsLabels|ReadsLogits) == 0 {
		return nil
	}
	for from, to := range batches(n) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.batch(from, to); err != nil {
			return err
		}
	}
	return nil
}

// batch computes what is read of the images of one range, and adds it to the meters.
func (e *evaluation) batch(from, to int) (err error) {
	b, reads := Batch{Images: e.sample.Images[from*e.pixels : to*e.pixels]}, e.meters.Reads()
	if e.sample.Labels != nil {
		b.Labels = e.sample.Labels[from:to]
	}
	if reads&(ReadsCodes|ReadsOutputs) != 0 {
		if b.Codes, err = encode(e.coder, b.Images); err != nil {
			return err
		}
	}
	if reads.Has(ReadsOutputs) {
		if b.Outputs, err = decode(e.coder, b.Codes); err != nil {
			return err
		}
	}
	logits := map[string][]float32{}
	if reads.Has(ReadsLogits) {
		for _, head := range e.heads {
			if logits[head], err = headValue(e.coder, head, b.Images, to-from); err != nil {
				return err
			}
		}
	}
	return e.meters.Add(b, logits)
}

// NotFinite says that a metric of a coder is NaN or infinite, as after a training that diverged.
type NotFinite struct {
	Metric string
	Number float64
}

// Error implements error.
func (e *NotFinite) Error() string {
	return fmt.Sprintf("metrics: %s is %g: the coder's codes, images or atoms are not finite; train the model again with other settings or images", e.Metric, e.Number)
}

// finite names the first number that is NaN or infinite: JSON cannot say it, and no one should compare it.
func finite(values Values) error {
	for _, v := range values {
		if v.Missing == "" && (math.IsNaN(v.Number) || math.IsInf(v.Number, 0)) {
			return &NotFinite{Metric: v.Name, Number: v.Number}
		}
	}
	return nil
}
