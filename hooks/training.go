package hooks

import (
	"math/rand/v2"

	"tessera/data"
)

// Training is what a hook sees of the training that it is attached to.
type Training interface {
	// Parameters lists the parameters that a glob matches, in the order of the model; "*" matches all.
	Parameters(glob string) []*Parameter
	// Shown returns the values of p in the model that is validated and kept: those of p, or what a hook shows in their place.
	Shown(p *Parameter) []float32
	// Rewrite calls change with the values of p and with all that hooks keep of them (a moving average), so that none goes
	// on from values that are no longer there. Only BeginEpoch, BeforeStep, AfterStep and EndEpoch may call it.
	Rewrite(p *Parameter, change func(values []float32))
	// Project applies to p what follows every step: its constraints, and what hooks project. When Rewrite may be called.
	Project(p *Parameter)
	// Preparation describes the first part of the encoder's first layer; nil where it has none. See layers.Preparing.
	Preparation() any
	// Images are the fitted images, in no order of the training. From Active.Prepare on.
	Images() *data.Images
	// BatchSizes lists the sizes of the batches of an epoch.
	BatchSizes() []int
	// Compile returns a program that computes a value of the model, at the parameters as they are when it runs, without
	// noise, for these numbers of images; others are compiled when they come. From Active.Begin on. It ends with the training.
	Compile(want Value, images ...int) (Program, error)
	// Random is the stream of this hook at a counter, such as a step: equal ones give equal numbers, also after a resume.
	Random(counter int) *rand.Rand
	// Epoch is how many epochs are complete, Step how many steps are done.
	Epoch() int
	Step() int
	// Stop ends the training with the present epoch.
	Stop()
	// Threads is how many goroutines Do works with: it calls f(0), ..., f(Threads()-1) at once and waits for all.
	Threads() int
	Do(f func(thread int))
}

// Parameter is one named tensor of a model.
type Parameter struct {
	Index     int    // in the model
	Path      string // encoder.0.weight
	Shape     []int
	Data      []float32   // row-major
	State     [][]float32 // what the optimizer keeps, each as long as Data; none for a parameter that it does not move
	Trainable bool        // moved by the optimizer
	Frozen    bool        // keeps its value; a parameter that is neither is moved by a rule of its layer (a running average)
	Started   bool        // a new training has its first values from another run
}

// Value is what a program computes.
type Value int

// The values.
const (
	Code   Value = iota // of the images: (images, units)
	Output              // the reconstruction: (images, pixels)

	// ImageGradient is the gradient, with respect to the images, of the sum over images of the mean squared error between the
	// reconstruction and the clean images: (images, pixels).
	ImageGradient
)

// Program computes one value. It is not safe for use by several goroutines at once.
type Program interface {
	// Run returns the value of images, until the next Run. clean are read by an ImageGradient alone.
	Run(images, clean []float32) ([]float32, error)
}
