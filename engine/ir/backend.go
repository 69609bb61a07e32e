package ir

import "tessera/parallel/collective"

// Program is the source of a module: a [Module] itself, or an expression graph that can be translated to one.
type Program interface {
	Module() (*Module, error)
}

// Module implements [Program]: it returns m.
func (m *Module) Module() (*Module, error) { return m, nil }

// Runner runs one program. It is not safe for concurrent use. Its indices are those of the program's inputs, taps and parameters.
type Runner[T Float] interface {
	// Bind makes the next runs read input i from values (row-major, batch included), which must not change during a run.
	Bind(i int, values []T) error
	// Run computes every tap, gradient and update.
	Run() error
	// Tap returns the values of tap i; they are valid until the next Run.
	Tap(i int) []T
	// Parameter returns the values that the program reads as parameter i. In float32 they are the parameter's data; in
	// float64 they are a copy, which the caller may change.
	Parameter(i int) []T
	// Gradient returns the gradient of the loss with respect to parameter i, nil if it has none; valid until the next Run.
	Gradient(i int) []T
	// Close frees the runner's memory outside the Go heap and ends its goroutines.
	Close() error
}

// Backend compiles programs for training and inference in float32.
type Backend interface {
	// Name identifies the back end in options and records.
	Name() string
	// Compile prepares a program. It returns an error for a kind of [Program] that the back end cannot read.
	Compile(p Program) (Runner[float32], error)
	// WithGroup returns the back end that runs every program together with the other processes of a group, each process on
	// its images of the batch. It returns an error if the back end supports only one process.
	WithGroup(g collective.Group) (Backend, error)
}
