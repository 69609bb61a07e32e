package metrics

import (
	"context"
	"strings"

	"tessera/part"
)

// Metric is one measurement: one computation that gives one or more numbers of a model. Its settings are tagged fields, as
// those of every part. A metric is one file: the struct, its meter and one call of Registry.Register in init.
//
// A metric is not changed by being used: several goroutines may start it at once.
type Metric interface {
	// Describe says what is measured, from what. It does not depend on the settings.
	Describe() Description
	// Start begins to measure one model. It is called only where everything is there that the metric reads. A meter that
	// is an io.Closer is closed in the end.
	Start(s *Subject) (Meter, error)
}

// Registry holds the metrics by name.
var Registry = part.New[Metric]("metric")

// Description is what is known of a metric without measuring.
type Description struct {
	Measures  []Measure // the numbers, in the order in which they are given
	Reads     Reads     // where a model or the images lack one of these, every number is not applicable
	ScaleFree bool      // multiplying a unit's code by a factor > 0 and dividing its atom by it changes nothing
	Ordered   bool      // the numbers depend on the order of the images, as those of random splits do
	Partial   bool      // a number may be not applicable although everything that the metric reads is there
	OnRequest bool      // measured only where it is chosen by name, because it is slow
}

// Measure is one number of a metric.
type Measure struct {
	Name   string // the key in `eval --json`
	Doc    string // its formula and source, as Markdown; the first sentence stands alone in `tessera list metrics`
	Unit   string // "units", "nats"; "" where the number has none
	Better Better
	Count  bool // always a whole number
}

// Summary is the first sentence of the documentation, without marks.
func (m Measure) Summary() string {
	first, _, _ := strings.Cut(m.Doc, ". ")
	return strings.NewReplacer(`\|`, "|", "`", "").Replace(first)
}

// Better says in which direction a number improves.
type Better string

// The directions.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = "-"
)

// Reads is a set of what a metric reads.
type Reads uint

// What can be read.
const (
	ReadsImages   Reads = 1 << iota // the original images
	ReadsCodes                      // their codes
	ReadsOutputs                    // their reconstructions
	ReadsAtoms                      // the dictionary of the decoder's last layer
	ReadsWeights                    // the weight of the decoder's last layer that has one
	ReadsLabels                     // the classes of the images
	ReadsLogits                     // a head with one logit per class; each such head is measured on its own
	ReadsPictures                   // rows and columns of the images: vectors have none
	ReadsParts                      // the true parts of the images
)

// Has reports whether all of the others are read.
func (r Reads) Has(others Reads) bool { return r&others == others }

// Subject is the model that is measured, and what is known of it before the first image.
type Subject struct {
	Coder  Coder
	Shape  []int // of one image
	Units  int   // of one code
	Images int   // how many are going to be added
	Seed   uint64
	Known  map[string]float64 // see Sample

	Parts  [][]float32 // the true parts, one image each; nil unless the metric reads them
	Atoms  *Atoms      // nil unless the metric reads atoms
	Weight []float32   // nil unless the metric reads weights; not to be changed
	Head   string      // whose logits are measured, of a metric that reads some
}

// Batch is some consecutive images and what the model makes of them, row-major. What a metric does not read may be nil.
// Nothing of it may be changed, or kept beyond the call of Add.
type Batch struct {
	Images  []float32 // n x pixels
	Codes   []float32 // n x units
	Outputs []float32 // n x pixels
	Logits  []float32 // n x classes, of the head that is measured; a class is the index of its logit
	Labels  []int     // n; a negative one says that the class of the image is unknown
}

// Meter measures one model, batch after batch.
type Meter interface {
	// Add takes the next images.
	Add(b *Batch) error
	// Values returns one value for each Measure of the description, in that order; their names are filled in by the caller.
	Values(ctx context.Context) ([]Value, error)
}

// Fixed is a meter of values that no image changes, as those of a decoder's weights.
func Fixed(values ...Value) Meter { return fixed(values) }

type fixed []Value

func (fixed) Add(*Batch) error                          { return nil }
func (f fixed) Values(context.Context) ([]Value, error) { return f, nil }
