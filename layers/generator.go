package layers

import "math/rand/v2"

// Generator is implemented by layers that make a model generative: new images are drawn, for example, from the prior
// distribution of a code ([Gaussian]), or by a loop of denoising steps. Only layers directly in a stack count, not those inside
// a block.
type Generator interface {
	Layer
	// Generate returns one image for each of the streams of g, row-major. All randomness of an image comes from its stream, and
	// its bits depend only on the stream and its place among them. It keeps no state.
	Generate(g Generation) ([]float32, error)
}

// Stepwise is implemented by a [Generator] that computes images in several steps.
type Stepwise interface {
	Generator
	// Stepped returns the generator with another number of steps and another share eta, in [0,1], of fresh noise in a step. 0 steps
	// and a negative eta stand for the declared ones.
	Stepped(steps int, eta float64) (Generator, error)
}

// Generation gives a [Generator] access to the trained model.
type Generation interface {
	// Path returns the path of the layer, which is also the name of its output as a value: "encoder.2".
	Path() string
	// Streams returns one random stream for each image to draw.
	Streams() []*rand.Rand
	// Parameter returns the values of a parameter of the layer, row-major, nil if there is none of that name.
	Parameter(name string) []float32
	// Size returns the number of elements that a value or a column has for one image, 0 if there is none of that name.
	Size(name string) int
	// Value computes a value of the model at inference, row by row, from the values and columns in given, one row for each
	// stream. Drawn columns of the model that given does not contain are drawn from the streams, once. Value returns an error
	// if the value depends on another column, or if the caller has cancelled.
	Value(name string, given map[string][]float32) ([]float32, error)
	// Err returns an error if the caller has cancelled, nil otherwise. A layer that computes for long without Value asks it between
	// its steps.
	Err() error
}
