package tessera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"tessera/data"
	"tessera/engine"
	"tessera/engine/ir"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/batches"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
	"tessera/parallel/team"
)

// EncoderOptions are the options of an encoder. The zero value is ready to use.
type EncoderOptions struct {
	// Sizes are the batch sizes that programs are compiled for; nil takes 1, 8, 64 and 256. Other numbers of images are
	// split over them and padded.
	Sizes []int
	// Workers is the largest number of programs of each size, and of goroutines that compute at once with one size. 0 takes
	// one per CPU, but not more than 8 programs in all.
	Workers int
	// Value is the value to compute, one of [Run.Values], such as the output or a head. "" is the code.
	Value string
}

// mostPrograms is how many programs an encoder compiles at most where Workers is not given.
const mostPrograms = 8

// defaultSizes of compiled batches: one image without padding, and enough images for the matrix products to be efficient.
func defaultSizes() []int { return []int{1, 8, 64, 256} }

// Encoder encodes images with the parameters of a run, or computes another value of the model from them. Any number of
// goroutines may use it at the same time; each call computes on the goroutine of its caller. Every program has a separate graph
// with separate ops: this also holds for a user's layer with an op of Gorgonia that keeps a state between calls.
//
// The code of an image has the same bits in every call. They are those of [Run.Encode] for a batch of the largest size: an
// encoder measures which sizes round alike and leaves the others out. Dense layers round all sizes alike; a convolution
// computes a handful of images by another algorithm, so that Run.Encode rounds those differently. Those of a baseline are the bits
// of Run.Encode for that image alone: Run.Encode computes blocks of images, whose last digits may differ.
type Encoder struct {
	name  string
	in    int
	out   int
	pool  *batches.Pool // nil for a baseline
	whole *whole        // a baseline, which has no programs to compile

	scaling *data.Scaling // of the run; nil for none
	output  bool          // the outputs are computed, in which the scaling is undone
}

// ErrNotImagesAlone is the error of an [Encoder] of a value that is computed from other columns than images: see [Run.ValueOf].
var ErrNotImagesAlone = errors.New("the value is not computed from images alone")

// Encoder returns an encoder of the run's model for any number of goroutines. It has separate programs: it works during and
// after the use of the run, even after the run's Close, and needs a separate Close. A model in which the code of an image depends on the other images
// of its batch is an error.
func (r *Run) Encoder(o EncoderOptions) (*Encoder, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	for _, c := range r.Columns(cmp.Or(o.Value, losses.Code)) {
		if c.Name != losses.Images {
			return nil, fmt.Errorf("run %s: encoder: %w: %q is computed from the column %q", r.Path, ErrNotImagesAlone, o.Value, c.Name)
		}
	}
	out, err := r.length(o.Value)
	if err != nil {
		return nil, err
	}
	e := &Encoder{name: r.Path, in: volume.Of(r.Shape()), out: out, scaling: r.scaling, output: o.Value == losses.Output}
	if r.network == nil {
		e.whole = &whole{mu: &r.mu, coder: r.coder, in: e.in, decoded: o.Value == losses.Output}
		return e, nil
	}
	if o.Sizes == nil {
		o.Sizes = defaultSizes()
	}
	if o.Workers == 0 {
		o.Workers = max(1, min(runtime.GOMAXPROCS(0), mostPrograms/max(1, len(o.Sizes))))
	}
	o.Sizes = slices.Clone(o.Sizes)
	for i, size := range o.Sizes {
		if size > 0 { // others are refused below
			o.Sizes[i] = r.network.AtOnce(size)
		}
	}
	e.pool, err = batches.New(batches.Options{In: e.in, Out: e.out, Sizes: o.Sizes, Workers: o.Workers,
		Compile: func(size int) (batches.Program, error) { return r.options.encoding(r.network, size, o.Value) }})
	if err != nil {
		return nil, fmt.Errorf("run %s: encoder: %w", r.Path, err)
	}
	return e, nil
}

// length is how many numbers the value of an image has.
func (r *Run) length(value string) (int, error) {
	names := r.Values()
	switch {
	case value == "" || value == losses.Code:
		return r.Units(), nil
	case !slices.Contains(names, value) && !slices.Contains(r.Named(), value):
		return 0, fmt.Errorf("run %s: encoder: got value %q, want one of %q, or the path of a layer or of a value that it publishes: one of %q",
			r.Path, value, names, r.Named())
	case value == losses.Output:
		return volume.Of(r.Shape()), nil
	}
	head, err := r.Value(value, make([]float32, volume.Of(r.Shape())))
	return len(head), err
}

// encoding is the compiled program of one value and one batch size. It computes on the goroutine that calls it: for a few images
// the threads of a team would wait for each other longer than they compute.
type encoding struct {
	runner ir.Runner[float32]
	team   *team.Team
}

func (o Options) encoding(m *graph.Model, size int, value string) (*encoding, error) {
	program, err := m.Program(graph.Request{Batch: size, Want: []string{cmp.Or(value, losses.Code)}})
	if err != nil {
		return nil, err
	}
	e := &encoding{team: team.New(1)}
	var backend ir.Backend = engine.Backend{Team: e.team}
	if o.Backend == Tape {
		backend = tape.Backend{}
	}
	if e.runner, err = backend.Compile(program); err != nil {
		e.team.Close()
		return nil, err
	}
	return e, nil
}

// Run implements [batches.Program].
func (e *encoding) Run(rows []float32) ([]float32, error) {
	if err := e.runner.Bind(0, rows); err != nil {
		return nil, err
	}
	if err := e.runner.Run(); err != nil {
		return nil, err
	}
	return e.runner.Tap(0), nil
}

// Close implements [batches.Program].
func (e *encoding) Close() error {
	defer e.team.Close()
	return e.runner.Close()
}

// Encode appends the codes of the images to dst and returns the extended slice: images are row-major, n times as many values
// as the model's shape has, and give n times Units values. dst may be nil. When ctx ends, Encode returns its error; after
// Close it returns [ErrClosed].
func (e *Encoder) Encode(ctx context.Context, dst, images []float32) ([]float32, error) {
	err := e.check(images)
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err != nil {
		return dst, err
	}
	images = e.scaling.Applied(images)
	before := len(dst)
	if e.pool != nil {
		dst, err = e.pool.Run(ctx, dst, images)
	} else {
		dst, err = e.whole.encode(ctx, dst, images)
	}
	if errors.Is(err, batches.ErrClosed) {
		err = ErrClosed
	}
	if err != nil {
		return dst, fmt.Errorf("run %s: encode: %w", e.name, err)
	}
	if e.output {
		e.scaling.Undo(dst[before:])
	}
	return dst, nil
}

// check refuses a length that is not a multiple of an image's.
func (e *Encoder) check(images []float32) error {
	if e == nil || e.pool == nil && e.whole == nil {
		return errors.New("tessera: the encoder has no model: take one that Run.Encoder returned")
	}
	if len(images)%e.in != 0 {
		return fmt.Errorf("run %s: encode: got %d values, want a multiple of the %d of an image", e.name, len(images), e.in)
	}
	return nil
}

// streamed is how many images a stream collects before it encodes them.
const streamed = 256

// Stream encodes a sequence of images, or of slices of several images each, and gives one slice of codes for every slice of
// images, in the same order. It reads ahead until it has 256 images, so that a sequence of single images is encoded in
// efficient batches. The first error ends the sequence. The slices it gives belong to the caller; those it takes are copied.
func (e *Encoder) Stream(ctx context.Context, images iter.Seq[[]float32]) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		if err := e.check(nil); err != nil || images == nil {
			yield(nil, cmp.Or(err, errors.New("tessera: no sequence of images to encode")))
			return
		}
		s := stream{encoder: e, ctx: ctx, yield: yield}
		for piece := range images {
			if err := e.check(piece); err != nil {
				if s.flush() {
					yield(nil, err)
				}
				return
			}
			s.pending = append(s.pending, piece...)
			s.lengths = append(s.lengths, len(piece)/e.in*e.out)
			if len(s.pending) >= streamed*e.in && !s.flush() {
				return
			}
		}
		s.flush()
	}
}

// stream is a Stream in progress.
type stream struct {
	encoder *Encoder
	ctx     context.Context
	yield   func([]float32, error) bool
	pending []float32 // images that were read
	lengths []int     // of the codes of each slice among them
}

// flush encodes what was read and reports whether the sequence continues.
func (s *stream) flush() bool {
	if len(s.lengths) == 0 {
		return true
	}
	codes, err := s.encoder.Encode(s.ctx, nil, s.pending)
	if err != nil {
		s.yield(nil, err)
		return false
	}
	for _, n := range s.lengths {
		if !s.yield(codes[:n:n], nil) {
			return false
		}
		codes = codes[n:]
	}
	s.pending, s.lengths = s.pending[:0], s.lengths[:0]
	return true
}

// Units is the length of a code, or of another computed value; 0 of an encoder without a model.
func (e *Encoder) Units() int {
	if e == nil {
		return 0
	}
	return e.out
}

// Programs is the number of programs that the encoder has compiled so far; a baseline has none.
func (e *Encoder) Programs() int {
	if e == nil || e.pool == nil {
		return 0
	}
	return e.pool.Programs()
}

// Close frees the encoder's programs, once no goroutine encodes. Afterwards Encode returns [ErrClosed].
func (e *Encoder) Close() error {
	switch {
	case e == nil:
	case e.pool != nil:
		return e.pool.Close()
	case e.whole != nil:
		e.whole.mu.Lock()
		defer e.whole.mu.Unlock()
		e.whole.coder = nil
	}
	return nil
}

// whole computes with a coder that has no programs to compile, in one call after the other; the run takes turns with it.
type whole struct {
	mu      *turns        // the run's
	coder   metrics.Coder // nil after Close
	in      int           // values of an image
	decoded bool          // the output is computed, not the code
}

// encode appends the values of images. Each image is encoded by itself: a baseline stops its iterations when all images of a call
// have converged, and some begin with the mean code of all.
func (w *whole) encode(ctx context.Context, dst, images []float32) ([]float32, error) {
	if err := w.mu.Within(ctx); err != nil {
		return dst, err
	}
	defer w.mu.Unlock()
	if w.coder == nil {
		return dst, ErrClosed
	}
	before := len(dst)
	for ; len(images) > 0; images = images[w.in:] {
		values, err := w.one(ctx, images[:w.in])
		if err != nil {
			return dst[:before], err
		}
		dst = append(dst, values...)
	}
	return dst, nil
}

// one computes the values of one image, unless ctx has ended.
func (w *whole) one(ctx context.Context, image []float32) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, err := w.coder.Encode(image)
	if err == nil && w.decoded {
		values, err = w.coder.Decode(values)
	}
	return values, err
}
