package metrics

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"tessera/data"
	"tessera/part"
)

// Metric computes one or more numbers of a model. Its settings are tagged fields, like those of every part. A metric is one
// file: the struct, its meter and one call of Registry.Register in init.
//
// Start does not change a metric: several goroutines may call it at once.
type Metric interface {
	// Describe returns the measures and the inputs. It does not depend on the settings.
	Describe() Description
	// Start returns a meter for one model. It is called only if all inputs that the metric reads are available. A meter that is
	// an io.Closer is closed at the end.
	Start(s *Subject) (Meter, error)
}

// Registry holds the metrics by name.
var Registry = part.New[Metric]("metric")

// plain is a metric without settings.
type plain struct {
	description Description
	start       func(*Subject) (Meter, error)
}

// register registers a metric without settings.
func register(name, about string, d Description, start func(*Subject) (Meter, error)) {
	m := &plain{d, start}
	Registry.Register(name, about, func() Metric { return m })
}

// Describe implements [Metric].
func (m *plain) Describe() Description { return m.description }

// Start implements [Metric].
func (m *plain) Start(s *Subject) (Meter, error) { return m.start(s) }

// meter is a [Meter] made of two functions.
type meter struct {
	add    func(b *Batch) error
	values func() []Value
}

// Add implements [Meter].
func (m meter) Add(b *Batch) error { return m.add(b) }

// Values implements [Meter].
func (m meter) Values(context.Context) ([]Value, error) { return m.values(), nil }

// Description describes a metric.
type Description struct {
	Measures  []Measure // the numbers, in the order of output
	Reads     Reads     // the inputs; if a model or the images lack one, no number is applicable
	ScaleFree bool      // multiplying a unit's code by a factor > 0 and dividing its atom by it changes nothing
	Ordered   bool      // the numbers depend on the order of the images, for example by random splits
	Partial   bool      // a number may be not applicable even if all inputs are available
	OnRequest bool      // measured only if it is selected by name, because it is slow
}

// Measure is one number of a metric.
type Measure struct {
	Name   string // the key in results
	Doc    string // its formula and source, as Markdown; the first sentence is the [Measure.Summary]
	Unit   string // "units", "nats"; "" for none
	Better Better
	Count  bool // always a whole number
}

// Summary returns the first sentence of Doc without Markdown.
func (m Measure) Summary() string {
	first, _, _ := strings.Cut(m.Doc, ". ")
	return strings.NewReplacer(`\|`, "|", "`", "").Replace(first)
}

// Better is the direction in which a number improves.
type Better string

// The directions.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "-"
)

// Reads is a set of inputs of a metric.
type Reads uint

// The inputs.
const (
	ReadsImages    Reads = 1 << iota // the original images
	ReadsCodes                       // their codes
	ReadsOutputs                     // their reconstructions
	ReadsAtoms                       // the dictionary of the decoder's last layer
	ReadsWeights                     // the weight of the decoder's last layer that has one
	ReadsLabels                      // the classes of the images
	ReadsLogits                      // a head with one logit per class; each such head is measured on its own
	ReadsPictures                    // rows and columns of the images: vectors have none
	ReadsParts                       // the true parts of the images
	ReadsObjective                   // the objective of the training, of each batch

	ReadsSums = 1<<iota | ReadsAtoms // the atoms, where the values of a code weigh them: y = s(sum_j h_j w_j + b)
)

// Has reports whether the set contains all of the others.
func (r Reads) Has(others Reads) bool { return r&others == others }

// missing returns the reason why a metric that reads these inputs is not applicable to a model that lacks them.
func (r Reads) missing(s *Subject) string {
	for _, input := range []struct {
		reads  Reads
		reason string
	}{
		{ReadsOutputs, "the model has no decoder"},
		{ReadsAtoms, "the decoder's last layer has no atoms"},
		{ReadsWeights, "the decoder has no weight"},
		{ReadsPictures, "the images have no rows and columns"},
		{ReadsParts, "the true parts of the images are not known"},
		{ReadsLogits, "the model has no head that is compared with labels"},
		{ReadsLabels, "the images have no labels"},
		{ReadsObjective, "the model has no objective that can be computed outside of its training"},
	} {
		if r.Has(input.reads) {
			return input.reason
		}
	}
	if r&ReadsSums != 0 {
		return s.Atoms.otherWeights(s.Units)
	}
	return notKnown
}

// Subject is a model with the values that are known before the first batch.
type Subject struct {
	Coder  Coder
	Shape  []int // of one image
	Units  int   // of one code
	Images int   // number of images that will be added
	Seed   uint64
	Known  map[string]float64 // see Sample

	Parts  [][]float32 // the true parts, one image each; nil unless the metric reads them
	Atoms  *Atoms      // nil unless the metric reads atoms
	Weight []float32   // nil unless the metric reads weights; not to be changed
	Head   string      // the head whose logits are measured; "" unless the metric reads logits
}

// Batch contains consecutive images with their codes, reconstructions and logits, row-major. Inputs that the metric does not read may be nil.
// A meter must not change the slices or keep them after the call of Add.
type Batch struct {
	Images  []float32 // n x pixels
	Codes   []float32 // n x units
	Outputs []float32 // n x pixels
	Logits  []float32 // n x classes, of the head that is measured; a class is the index of its logit
	Labels  []int     // n; negative if the class of the image is unknown

	Columns map[string][]float32 // further columns of the samples, by name; a metric reads those that are there

	Objective float64 // of these images; see [ObjectiveCoder]

	coder Coder
}

// ColumnCoder is a [Coder] whose values may be computed from further columns.
type ColumnCoder interface {
	Coder
	// ValueOf returns a value by its name: code, output, a head, the output of a layer by its path or what a layer publishes. The values
	// of columns, images among them, are given by name.
	ValueOf(name string, columns map[string][]float32) ([]float32, error)
}

// Value returns any value of the model for the images of the batch, row-major, by its name: code, output, a head, the output of a layer
// by its path, or what a layer publishes.
func (b *Batch) Value(name string) ([]float32, error) {
	c, ok := b.coder.(ColumnCoder)
	if !ok {
		return nil, fmt.Errorf("the model has no value %q by name", name)
	}
	given := map[string][]float32{data.ImagesColumn: b.Images}
	maps.Copy(given, b.Columns)
	return c.ValueOf(name, given)
}

// Meter measures one model, batch after batch.
type Meter interface {
	// Add takes the next images.
	Add(b *Batch) error
	// Values returns one value for each Measure of the description, in that order; their names are filled in by the caller.
	Values(ctx context.Context) ([]Value, error)
}

// Fixed returns a meter of values that do not depend on the images, such as those of a decoder's weights.
func Fixed(values ...Value) Meter { return fixed(values) }

type fixed []Value

func (fixed) Add(*Batch) error                          { return nil }
func (f fixed) Values(context.Context) ([]Value, error) { return f, nil }
