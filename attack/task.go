package attack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// Classifier is a model whose head predicts classes. All slices are row-major.
type Classifier interface {
	// Shape returns the shape of one image.
	Shape() []int
	// Classes returns the number of classes, which is the number of logits of an image.
	Classes() int
	// Logits returns the logits of images. They are valid until the next call of a method.
	Logits(images []float32) ([]float32, error)
}

// WhiteBox is a classifier whose gradients are available.
type WhiteBox interface {
	Classifier
	// Gradient returns the gradient of an objective with respect to the images, and the logits of the images. Both are
	// valid until the next call of a method. The objective is summed over the images. targets are the classes of the
	// images as one-hot rows, (n, classes).
	Gradient(objective Objective, images, targets []float32) (gradient, logits []float32, err error)
}

// Target is a model whose reconstructions can be attacked. All slices are row-major: n images with the number of values of Shape(), or n
// codes with Units() values each.
type Target interface {
	// Shape returns the shape of one image.
	Shape() []int
	// Units returns the number of units of a code.
	Units() int
	// Encode returns the codes of images.
	Encode(images []float32) (codes []float32, err error)
	// Decode returns the images of codes.
	Decode(codes []float32) (images []float32, err error)
	// InputGradient returns the gradient of the reconstruction error between the outputs for images and the clean
	// images, with respect to images. The scale of the gradient may differ between images.
	InputGradient(images, clean []float32) (gradient []float32, err error)
}

var errNoTarget = errors.New("attack: nothing to attack: give a target")

// Task is what an attack works on: clean samples with a ball around each, and a model that answers. The argument `of` of its methods lists,
// for each row of x, the index of the sample that the row is a version of.
type Task struct {
	Ball
	Objective       Objective // that attacks on a head maximise; on reconstructions it is the squared error
	Seed            uint64
	Clean           []float32 // clean samples, row-major; not to be changed
	Labels          []int     // classes of the samples; nil for reconstructions
	Shape           []int     // of one sample
	Pixels, Samples int       // number of values of a sample; number of samples

	ctx    context.Context
	name   string // of the attack
	victim victim
	pieces bool  // few samples are asked at once, as by queries
	aims   bool  // the objective was used
	spent  []int // number of queries after which a sample was misclassified, -1 for never; nil without queries
}

// victim is the model of a task.
type victim interface {
	outcomes(x []float32, of []int) (Outcomes, error)
	gradient(x []float32, of []int) ([]float32, Outcomes, error) // the outcomes are those of x, or empty
}

// Outcomes contains the results for samples under attack, one element for each. For reconstructions no sample is wrong, and margin and loss are the
// squared error from the clean sample.
type Outcomes struct {
	Wrong  []bool
	Margin []float64 // max_{j != c} z_j - z_c
	Loss   []float64 // -log p_c
}

func newOutcomes(n int) Outcomes {
	return Outcomes{make([]bool, n), make([]float64, n), make([]float64, n)}
}

// NewTask returns the task of a trial on a classifier. It returns an error if the images or their classes are invalid.
func NewTask(ctx context.Context, t Trial, model Classifier, images []float32, labels []int) (*Task, error) {
	switch {
	case ctx == nil:
		return nil, errors.New("attack: no context: give context.Background()")
	case model == nil:
		return nil, errNoTarget
	case len(labels) == 0:
		return nil, errors.New("attack: no samples whose class is known")
	}
	task := t.task(ctx, model.Shape(), images)
	task.Labels, task.victim = labels, &head{model, labels, task.Objective}
	if task.Samples != len(labels) || len(images) != task.Samples*task.Pixels {
		return nil, fmt.Errorf("attack: got %d values of samples, want %d for %d classes", len(images), len(labels)*task.Pixels, len(labels))
	}
	for i, c := range labels {
		if c < 0 || c >= model.Classes() {
			return nil, fmt.Errorf("attack: sample %d has the class %d, but the head has %d logits", i, c, model.Classes())
		}
	}
	_, task.pieces = t.Attack.(BlackBox)
	return task, nil
}

func (t *Trial) reconstruction(ctx context.Context, target Target, images []float32) (*Task, error) {
	if ctx == nil {
		return nil, errors.New("attack: no context: give context.Background()")
	}
	if target == nil {
		return nil, errNoTarget
	}
	task := t.task(ctx, target.Shape(), images)
	task.victim = &output{target, task}
	if task.Samples == 0 || len(images) != task.Samples*task.Pixels {
		return nil, fmt.Errorf("attack: %d values are not one or more samples of %d", len(images), task.Pixels)
	}
	return task, nil
}

func (t *Trial) task(ctx context.Context, shape []int, images []float32) *Task {
	task := &Task{Ball: t.Ball, Objective: t.Objective, Seed: t.Seed, Clean: images, Shape: shape, Pixels: volume.Of(shape), ctx: ctx, name: t.Name()}
	if task.Objective == "" {
		task.Objective = CrossEntropy
	}
	if task.Pixels > 0 {
		task.Samples = len(images) / task.Pixels
	}
	return task
}

// Sample returns sample i of values.
func (t *Task) Sample(values []float32, i int) []float32 { return values[i*t.Pixels : (i+1)*t.Pixels] }

// Random returns the random numbers of a sample for a purpose of the attack.
func (t *Task) Random(purpose string, sample int) *rand.Rand {
	return random.Stream(t.Seed, "attack/"+purpose, uint64(sample))
}

// gathered returns copies of the samples with the given indices.
func (t *Task) gathered(values []float32, indices []int) []float32 {
	x := make([]float32, len(indices)*t.Pixels)
	for k, i := range indices {
		copy(t.Sample(x, k), t.Sample(values, i))
	}
	return x
}

// atOnce is the maximum number of images that a model computes together.
const atOnce = 500

// pieces lists the batch sizes of queries, largest first. A program is compiled once for each.
var pieces = []int{atOnce, 50, 5, 1}

// batches calls f with x and its samples in batches of equal size, so that one compiled program suffices. The last batch is padded with its
// first rows. Only the first n rows of a batch count; the first of them is row from of x.
func (t *Task) batches(x []float32, of []int, f func(x []float32, of []int, from, n int) error) error {
	size := min(atOnce, t.Samples)
	for from := 0; from < len(of); {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		if t.pieces {
			size = pieces[slices.IndexFunc(pieces, func(size int) bool { return size <= len(of)-from })]
		}
		n := min(size, len(of)-from)
		rows, samples := x[from*t.Pixels:(from+n)*t.Pixels], of[from:from+n]
		if n < size {
			rows, samples = slices.Clone(rows), slices.Clone(samples)
			for k := n; k < size; k++ {
				rows, samples = append(rows, t.Sample(rows, k%n)...), append(samples, samples[k%n])
			}
		}
		if err := f(rows, samples, from, n); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// Outcomes returns the results for x.
func (t *Task) Outcomes(x []float32, of []int) (all Outcomes, err error) {
	err = t.batches(x, of, func(x []float32, of []int, _, n int) error {
		o, err := t.victim.outcomes(x, of)
		if err == nil {
			all.Wrong, all.Margin, all.Loss = append(all.Wrong, o.Wrong[:n]...), append(all.Margin, o.Margin[:n]...), append(all.Loss, o.Loss[:n]...)
		}
		return err
	})
	return all, err
}

// Gradient returns the gradient with respect to x of what the attack maximises, summed over the samples. The scale of the gradients of
// reconstructions may differ between samples.
func (t *Task) Gradient(x []float32, of []int) ([]float32, error) {
	t.aims = true
	all := make([]float32, 0, len(x))
	err := t.batches(x, of, func(x []float32, of []int, _, n int) error {
		g, _, err := t.victim.gradient(x, of)
		if err == nil {
			all = append(all, g[:n*t.Pixels]...)
		}
		return err
	})
	return all, err
}

// Value returns what the attack maximises, for element k of the outcomes.
func (t *Task) Value(o Outcomes, k int) float64 {
	if t.aims = true; t.Objective == Margin {
		return o.Margin[k]
	}
	return o.Loss[k]
}

// worse reports whether element k of a is worse for the model than element i of b.
func (t *Task) worse(a Outcomes, k int, b Outcomes, i int) bool {
	if a.Wrong[k] != b.Wrong[i] {
		return a.Wrong[k]
	}
	return t.Value(a, k) > t.Value(b, i)
}

// EachRight calls f for every sample that is classified correctly without an attack, with its index, its row of x, and its random numbers. f
// returns the number of queries after which the sample was misclassified, or -1.
func (t *Task) EachRight(x []float32, f func(i int, x []float32, r *rand.Rand) (spent int, err error)) error {
	clean, err := t.Outcomes(t.Clean, lists.Range(0, t.Samples))
	if err != nil {
		return err
	}
	t.spent = make([]int, t.Samples)
	for i := range t.Samples {
		if clean.Wrong[i] {
			continue
		}
		if t.spent[i], err = f(i, t.Sample(x, i), t.Random(t.name, i)); err != nil {
			return err
		}
	}
	return nil
}

// head is a classifier under attack.
type head struct {
	model     Classifier
	labels    []int
	objective Objective
}

func (h *head) outcomes(x []float32, of []int) (Outcomes, error) {
	logits, err := h.model.Logits(x)
	if err != nil {
		return Outcomes{}, err
	}
	return h.judged(logits, of)
}

// gradient implements victim. A sample of index -1 has the gradient 0.
func (h *head) gradient(x []float32, of []int) ([]float32, Outcomes, error) {
	model, ok := h.model.(WhiteBox)
	if !ok {
		return nil, Outcomes{}, errors.New("it needs gradients, which the model does not give")
	}
	classes := model.Classes()
	targets := make([]float32, len(of)*classes)
	for k, i := range of {
		if i >= 0 {
			targets[k*classes+h.labels[i]] = 1
		}
	}
	g, logits, err := model.Gradient(h.objective, x, targets)
	if err != nil {
		return nil, Outcomes{}, err
	}
	o := newOutcomes(len(of))
	for k, i := range of {
		z := logits[k*classes : (k+1)*classes]
		o.Wrong[k] = i >= 0 && slices.Index(z, slices.Max(z)) != h.labels[i]
	}
	return g, o, nil
}

func (h *head) judged(logits []float32, of []int) (Outcomes, error) {
	o, classes := newOutcomes(len(of)), h.model.Classes()
	for k, i := range of {
		z, c := logits[k*classes:(k+1)*classes], h.labels[i]
		best, err := vectors.Class(z)
		if err != nil {
			return o, fmt.Errorf("a sample has %w", err)
		}
		o.Margin[k], o.Loss[k], o.Wrong[k] = margin(z, c), logLoss(z, c), best != c
	}
	return o, nil
}

// margin returns max_{j != c} z_j - z_c.
func margin(z []float32, c int) float64 {
	most := math.Inf(-1)
	for j, v := range z {
		if j != c {
			most = max(most, float64(v))
		}
	}
	return most - float64(z[c])
}

// logLoss returns -log softmax(z)_c.
func logLoss(z []float32, c int) float64 {
	most, sum := float64(slices.Max(z)), 0.0
	for _, v := range z {
		sum += math.Exp(float64(v) - most)
	}
	return most + math.Log(sum) - float64(z[c])
}

// output is a model whose reconstructions are under attack.
type output struct {
	Target
	task *Task
}

func (v *output) outcomes(x []float32, of []int) (Outcomes, error) {
	o := newOutcomes(len(of))
	codes, err := v.Encode(x)
	if err != nil {
		return o, err
	}
	outputs, err := v.Decode(codes)
	if err != nil {
		return o, err
	}
	for k, i := range of {
		d := distance(v.task.Sample(outputs, k), v.task.Sample(v.task.Clean, i))
		o.Margin[k], o.Loss[k] = d*d, d*d
	}
	return o, nil
}

func (v *output) gradient(x []float32, of []int) ([]float32, Outcomes, error) {
	g, err := v.InputGradient(x, v.task.gathered(v.task.Clean, of))
	return g, newOutcomes(len(of)), err
}
