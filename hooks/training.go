package hooks

import (
	"math/rand/v2"

	"tessera/data"
)

// Training gives a hook access to the training that it is attached to.
type Training interface {
	// Parameters lists the parameters that a glob matches, in the order of the model; "*" matches all.
	Parameters(glob string) []*Parameter
	// Shown returns the values of p in the model that is validated and saved: the values of p, or those that a hook shows
	// instead.
	Shown(p *Parameter) []float32
	// Rewrite calls change for the values of p and for all values of hooks that follow p (moving averages). Only
	// BeginEpoch, BeforeStep, AfterStep and EndEpoch may call it.
	Rewrite(p *Parameter, change func(values []float32))
	// Project applies the constraints and the projections of hooks to p, as after every step. It may be called where
	// Rewrite may be called.
	Project(p *Parameter)
	// Preparation describes the preparation of the encoder's first layer, nil if it has none. See layers.Preparing.
	Preparation() any
	// Images are the training images in the order of the data set. Available from Active.Prepare on.
	Images() *data.Images
	// BatchSizes lists the sizes of the batches of an epoch.
	BatchSizes() []int
	// Compile returns a program that computes a value of the model without noise, at the current parameters. It is compiled
	// for these batch sizes; other sizes are compiled at their first use. Available from Active.Begin on; the program is
	// closed with the training.
	Compile(want Value, images ...int) (Program, error)
	// Random returns the hook's random stream for a counter, for example the step. Equal counters give equal numbers, also
	// after a resume.
	Random(counter int) *rand.Rand
	// Epoch is the number of complete epochs, Step the number of complete steps.
	Epoch() int
	Step() int
	// Stop ends the training after the current epoch.
	Stop()
	// Threads is the number of goroutines of Do, which calls f(0), ..., f(Threads()-1) concurrently and waits for all.
	Threads() int
	Do(f func(thread int))
}

// Parameter is one named tensor of a model.
type Parameter struct {
	Index     int    // in the model
	Path      string // encoder.0.weight
	Shape     []int
	Data      []float32   // row-major
	State     [][]float32 // the optimizer's state, each as long as Data; empty for a parameter that it does not update
	Trainable bool        // updated by the optimizer
	Frozen    bool        // never changes; a parameter that is neither is updated by a rule of its layer (a running average)
	Started   bool        // initialised from another run
}

// Value names the output of a program.
type Value int

// The values.
const (
	Code   Value = iota // of the images: (images, units)
	Output              // the reconstruction: (images, pixels)

	// ImageGradient is the gradient, with respect to the images, of the sum of the weighted terms that compare the output with
	// the images: (images, pixels). The terms are means over the given images, compared with the clean ones. A scheduled weight
	// has its last value, a multiplier its first.
	ImageGradient
)

// Program computes one value. It is not safe for concurrent use.
type Program interface {
	// Run returns the value for images; it is valid until the next Run. Only ImageGradient reads clean.
	Run(images, clean []float32) ([]float32, error)
}
