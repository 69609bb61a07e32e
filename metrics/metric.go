package metrics

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/data"
)

// Metric computes one or more numbers for a model. Its settings are tagged fields, like those of every part. A metric is one
// file: the struct, its meter and one call of Registry.Register in init.
//
// Start must not change the metric, because several goroutines may call it at once.
type Metric interface {
	// Describe returns the measures and the inputs, which do not depend on the settings.
	Describe() Description
	// Start returns a meter for one model. It is called only if all inputs that the metric reads are available. If the meter
	// is an io.Closer, the caller closes it.
	Start(s *Subject) (Meter, error)
}

// Registry contains the metrics by name.
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

func (m *plain) Describe() Description           { return m.description }
func (m *plain) Start(s *Subject) (Meter, error) { return m.start(s) }

// meter is a [Meter] that consists of two functions.
type meter struct {
	add    func(b *Batch) error
	values func() []Value
}

func (m meter) Add(b *Batch) error                      { return m.add(b) }
func (m meter) Values(context.Context) ([]Value, error) { return m.values(), nil }

// Description describes a metric.
type Description struct {
	Measures  []Measure // the numbers, in order of output
	Reads     Reads     // the inputs; if a model or the images lack one, no number is applicable
	ScaleFree bool      // the numbers do not change if a unit's code is multiplied and its atom divided by the same factor > 0
	Ordered   bool      // the numbers depend on the order of the images, for example because of random splits
	Partial   bool      // a number may be not applicable even if all inputs are available
	OnRequest bool      // slow: measured only if selected by name
	Masked    bool      // ignores missing or hidden entries of images; other metrics that read images are not applicable if entries are missing or hidden
	Values    []string  // names of the values of the model that the meter reads by [Batch.Value]; check refuses train.metrics of a model without them
	InPlaceOf Reads     // if > 0, the metric is measured by default only for models that have none of these inputs
}

// Measure is one number of a metric.
type Measure struct {
	Name   string // key in results
	Doc    string // formula and source, as Markdown; the first sentence is the [Measure.Summary]
	Unit   string // "units", "nats"; "" for none
	Better Better
	Count  bool // always a whole number
	Fitted bool // by default measured on the samples that the model was fitted to alone

	Rounding float64 // values up to this are 0 up to rounding; a comparison takes them for 0
}

// Compared returns a number as comparisons take it: 0 if it is 0 up to the rounding of the measure.
func (m Measure) Compared(v float64) float64 {
	if math.Abs(v) <= m.Rounding {
		return 0
	}
	return v
}

// Summary returns the first sentence of Doc without Markdown.
func (m Measure) Summary() string {
	const others = "et al. " // ends no sentence
	first, _, _ := strings.Cut(strings.ReplaceAll(m.Doc, others, "et al\x00"), ". ")
	first = strings.ReplaceAll(first, "et al\x00", others)
	return strings.NewReplacer(`\|`, "|", "`", "").Replace(first)
}

// Better is the direction in which a number improves.
type Better string

// The possible directions.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "-"
)

// Reads is a set of inputs of a metric.
type Reads uint

// The possible inputs.
const (
	ReadsImages     Reads = 1 << iota // the original images
	ReadsCodes                        // the codes
	ReadsOutputs                      // the reconstructions
	ReadsAtoms                        // the dictionary of the decoder's last layer
	ReadsWeights                      // weight of the decoder's last layer with weights
	ReadsLabels                       // the classes of the images
	ReadsLogits                       // a head with one logit per class; the metric is computed for each such head separately
	ReadsPictures                     // rows and columns of the images, which vectors do not have
	ReadsParts                        // the true parts of the images
	ReadsObjective                    // the training objective for each batch
	ReadsEncoder                      // the weights of the encoder, of a coder that is [Normed]
	ReadsTargets                      // a value that is compared with a column of numbers, in [Batch.Logits]; the metric is computed for each such value separately
	ReadsTokens                       // a value that predicts the tokens of a sequence, of a coder that is a [LanguageModel]
	ReadsDownstream                   // the network of classes inside of which the samples are values
	ReadsPair                         // two values of a sample that are trained to be alike, of a coder that is a [PairModel]

	ReadsSums = 1<<iota | ReadsAtoms // atoms that are weighted by the code: y = s(sum_j h_j w_j + b)
)

// Has reports whether the set contains all of others.
func (r Reads) Has(others Reads) bool { return r&others == others }

// missing returns the reason why a metric with these inputs is not applicable to a model that lacks them.
func (r Reads) missing(s *Subject) string {
	lacks := func(of func(c Coder) string, otherwise string) string {
		if s.Coder != nil {
			return cmp.Or(of(s.Coder), otherwise)
		}
		return otherwise
	}
	for _, input := range []struct {
		reads  Reads
		reason string
	}{
		{ReadsOutputs, lacks(func(c Coder) string { return lacksOutput(c, nil) }, "the model has no decoder")},
		{ReadsAtoms, lacks(lacksAtoms, "the decoder's last layer has no atoms")},
		{ReadsWeights, "the decoder has no weight"},
		{ReadsEncoder, "the model has no weights of an encoder"},
		{ReadsPictures, "the samples have no rows and columns"},
		{ReadsParts, "the true parts of the samples are not known"},
		{ReadsLogits, "the model has no head that is compared with classes"},
		{ReadsTargets, "the model has no head that is compared with a column of numbers"},
		{ReadsTokens, "the model predicts no tokens of a text"},
		{ReadsDownstream, "the samples are no values inside of a network that tells classes"},
		{ReadsPair, "the model has no two values that the loss contrastive compares"},
		{ReadsLabels, "the samples have no labels"},
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

// Subject is a model together with the values that are known before the first batch.
type Subject struct {
	Coder  Coder
	Shape  []int // shape of one image
	Units  int   // length of a code
	Images int   // number of images to be measured
	Seed   uint64
	Known  map[string]float64 // settings of the model's losses; see [Sample]

	Scaling *data.Scaling // scaling of the images; see [Sample]

	Unscaled *data.Images // the images before scaling; see [Sample]
	Range    [2]float32   // range of the fitted images; see [Sample]

	Parts      [][]float32                                                           // the true parts, one image each; nil unless the metric reads them
	Downstream func(samples []float32, do func(i int, logits []float32) error) error // see [Sample]; nil unless the metric reads it
	Atoms      *Atoms                                                                // the atoms; nil unless the metric reads them
	Weight     []float32                                                             // the weight, read-only; nil unless the metric reads it
	Head       string                                                                // the head whose logits are measured; "" unless the metric reads logits
	Target     *Target                                                               // the measured value; nil unless the metric reads targets
	Classes    []string                                                              // names of the classes of the head; nil if unknown
	Names      map[string][]string                                                   // class names of the columns other than labels, by column
	Holed      bool                                                                  // images may have missing or hidden entries, with the value 0: see [Batch.Observed]
}

// Batch contains consecutive images with their codes, reconstructions and logits, row-major. Inputs that the metric does not read may be nil.
// A meter must not change the slices or keep them after the call of Add.
type Batch struct {
	Images  []float32 // n x pixels
	Codes   []float32 // n x units
	Outputs []float32 // n x pixels
	Logits  []float32 // n x classes, of the measured head; the index of a logit is its class
	Labels  []int     // n; negative if the class of the image is unknown

	Columns map[string][]float32 // columns other than images by name, labels as numbers; a metric reads those that are present

	Objective float64 // objective for these images; see [ObjectiveCoder]

	coder Coder
	holed []float32 // result of given; nil before the first call
}

// Observed returns the mask of observed entries of the images, n x pixels: 1, or 0 for missing and hidden entries. It is nil
// if all entries are observed.
func (b *Batch) Observed() []float32 { return b.Columns[data.ObservedColumn] }

// ColumnCoder is a [Coder] whose values may depend on columns other than images.
type ColumnCoder interface {
	Coder
	// ValueOf returns a value by its name: code, output, a head, the output of a layer by its path, or a value that a layer
	// publishes. columns contains the columns by name, including images.
	ValueOf(name string, columns map[string][]float32) ([]float32, error)
}

// Value returns any value of the model for the images of the batch, row-major, by its name: code, output, a head, the output
// of a layer by its path, or a value that a layer publishes.
func (b *Batch) Value(name string) ([]float32, error) {
	c, ok := b.coder.(ColumnCoder)
	if !ok {
		return nil, fmt.Errorf("the model has no value %q by name", name)
	}
	given := map[string][]float32{data.ImagesColumn: b.Images}
	maps.Copy(given, b.Columns)
	return c.ValueOf(name, given)
}

// Meter measures one model, batch by batch.
type Meter interface {
	// Add adds the next images.
	Add(b *Batch) error
	// Values returns one value for each Measure of the description, in that order; the caller sets their names. A single [NotApplicable]
	// stands for all of them.
	Values(ctx context.Context) ([]Value, error)
}

// Fixed returns a meter for values that do not depend on the images, such as properties of the decoder's weights.
func Fixed(values ...Value) Meter { return fixed(values) }

type fixed []Value

func (fixed) Add(*Batch) error                          { return nil }
func (f fixed) Values(context.Context) ([]Value, error) { return f, nil }

// ColumnReader is implemented by metrics that read further columns, which are then loaded with the samples.
type ColumnReader interface {
	Metric
	// Columns lists the names of the columns.
	Columns() []string
}

// ValuesOf lists the values of the model that the metrics of a selection read by name.
func ValuesOf(s Selection) (names []string) {
	for _, c := range s {
		if c.Metric != nil {
			names = append(names, c.Metric.Describe().Values...)
		}
	}
	return names
}

// ColumnsOf lists the further columns that the metrics of a selection read; of optional metrics, those that a set has.
func ColumnsOf(s Selection, of data.Source) (names []string) {
	for _, c := range s {
		if r, ok := c.Metric.(ColumnReader); ok {
			for _, name := range r.Columns() {
				is := func(c data.Column) bool { return c.Name == name }
				if !slices.Contains(names, name) && (!c.Optional || slices.ContainsFunc(data.ColumnsOf(of, nil), is)) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
