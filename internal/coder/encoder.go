package coder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/batches"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
	"tessera/posthoc"
)

// EncoderOptions are the options of an encoder. The zero value is ready to use.
type EncoderOptions struct {
	// Sizes lists the batch sizes for which programs are compiled; nil means 1, 8, 64 and 256. Other numbers of images are
	// split into batches of these sizes and padded.
	Sizes []int
	// Workers is the maximum number of programs of each size, and of goroutines that compute at the same time with one size. 0
	// means one per CPU, with at most 8 programs of all sizes together.
	Workers int
	// Value is the name of the computed value, one of Values, such as the output or a head. "" is the code.
	Value string
}

// mostPrograms is the maximum number of programs that an encoder compiles if Workers is 0.
const mostPrograms = 8

// Encoder encodes images with the parameters of a run, or computes another value of the model from images. Any number of
// goroutines may use it at the same time; each call computes on the goroutine of its caller. Every program has a separate
// graph with separate ops, so that a user-defined layer may contain a Gorgonia op with state.
//
// The code of an image has the same bits in every call, and the bits of [Coder.Encode] for a batch of the largest size. An
// encoder measures which batch sizes round equally and does not use the other sizes: dense layers round equally for all sizes,
// but convolutions use another algorithm for a few images. For a baseline, the code has the bits of Encode for this image
// alone; Encode for several images computes in blocks, and the last digits may differ.
type Encoder struct {
	name   string
	in     int // number of values of a row, which contains all columns
	out    int
	pool   *batches.Pool // programs; nil for a baseline
	single *whole        // coder of a baseline, which needs no compiled programs

	columns  []data.Column
	reading  reading
	holes    bool            // NaN is accepted
	output   bool            // the value is the output, and the scaling is undone
	required []config.Wanted // requirements on the values of the columns
	postHoc  posthoc.Head    // calibration and thresholds of the computed head
}

// Columns returns descriptions of the columns from which the value is computed, in the order in which [Encoder.Encode] takes
// them. Most models read only images.
func (e *Encoder) Columns() []data.Column {
	if e == nil {
		return nil
	}
	return slices.Clone(e.columns)
}

// Encoder returns an encoder of the model for any number of goroutines. It has separate programs: it also works while
// other goroutines use the run, and after the run's Close. The caller closes it. It is an error if the code of an image
// depends on the other images of the batch.
func (c *Coder) Encoder(o EncoderOptions) (*Encoder, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	out, err := c.length(o.Value)
	if err != nil {
		return nil, err
	}
	e := &Encoder{name: c.path, out: out, columns: c.Columns(cmp.Or(o.Value, losses.Code)), reading: c.reading(c.inner), holes: c.TakesHoles() || c.trained.Spec.Holed(),
		output: o.Value == losses.Output, postHoc: c.Heads()[o.Value]}
	for _, column := range e.columns {
		e.in += column.Size()
	}
	network := c.trained.Model
	if network == nil {
		e.single = &whole{mu: &c.mu, coder: c.inner, in: e.in, decoded: o.Value == losses.Output}
		return e, nil
	}
	e.required = c.trained.Spec.Required(network.Layout, cmp.Or(o.Value, losses.Code))
	if o.Sizes == nil {
		o.Sizes = []int{1, 8, 64, 256} // one image without padding, and sizes for which matrix products are efficient
	}
	if o.Workers == 0 {
		o.Workers = max(1, min(runtime.GOMAXPROCS(0), mostPrograms/max(1, len(o.Sizes))))
	}
	o.Sizes = slices.Clone(o.Sizes)
	for i, size := range o.Sizes {
		if size > 0 { // others are refused below
			o.Sizes[i] = network.AtOnce(size)
		}
	}
	e.pool, err = batches.New(batches.Options{In: e.in, Out: e.out, Sizes: o.Sizes, Workers: o.Workers, Whole: e.isWhole,
		Compile: func(size int) (batches.Program, error) {
			return c.encoding(network, size, o.Value, e.columns, e.in)
		}})
	if err != nil {
		return nil, fmt.Errorf("run %s: encoder: %w", c.path, err)
	}
	return e, nil
}

// length returns the number of elements that a value has for one image.
func (c *Coder) length(value string) (int, error) {
	shape := c.ShapeOf(cmp.Or(value, losses.Code))
	if shape == nil {
		return 0, fmt.Errorf("run %s: encoder: got value %q, want one of %s, or the path of a layer or of a value that it publishes: one of %s",
			c.path, value, table.Quoted(c.Values()), table.Quoted(c.Named()))
	}
	return volume.Of(shape), nil
}

// encoding is the compiled program of one value and one batch size. It computes on the goroutine of its caller: for a few
// images, a team of threads would take longer to synchronise than to compute.
type encoding struct {
	runner ir.Runner[float32]
	team   *team.Team
	inputs []part // parts of a row; nil if the only input takes the whole row
}

// part is an input of a program: elements [from, from + row) of each row of values.
type part struct {
	from, row int
	values    []float32 // values of a batch
}

// encoding compiles the program of a value for batches of size rows with these columns.
func (c *Coder) encoding(m *graph.Model, size int, value string, columns []data.Column, row int) (*encoding, error) {
	program, err := m.Program(graph.Request{Batch: size, Want: []string{cmp.Or(value, losses.Code)}})
	if err != nil {
		return nil, err
	}
	e := &encoding{team: team.New(1)}
	for _, in := range program.Inputs {
		p, at := part{row: row}, slices.IndexFunc(columns, func(c data.Column) bool { return c.Name == in.Column })
		if at < 0 {
			e.team.Close()
			return nil, fmt.Errorf("its input %q is not given", in.Name)
		}
		for _, before := range columns[:at] {
			p.from += before.Size()
		}
		p.values = make([]float32, size*columns[at].Size())
		e.inputs = append(e.inputs, p)
	}
	if len(columns) == 1 {
		e.inputs = nil
	}
	if e.runner, err = backendOn(c.backend, e.team).Compile(program); err != nil {
		e.team.Close()
		return nil, err
	}
	return e, nil
}

func (e *encoding) Run(rows []float32) ([]float32, error) {
	if err := e.bind(rows); err != nil {
		return nil, err
	}
	if err := e.runner.Run(); err != nil {
		return nil, err
	}
	return e.runner.Tap(0), nil
}

// bind copies to each input its part of the rows.
func (e *encoding) bind(rows []float32) error {
	if e.inputs == nil {
		return e.runner.Bind(0, rows)
	}
	for i, p := range e.inputs {
		width := len(p.values) * p.row / len(rows)
		for at := 0; at*width < len(p.values); at++ {
			copy(p.values[at*width:(at+1)*width], rows[at*p.row+p.from:])
		}
		if err := e.runner.Bind(i, p.values); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoding) Close() error {
	defer e.team.Close()
	return e.runner.Close()
}

// Encode appends the codes of the images to dst and returns the extended slice. images contains n images, row-major, and
// gives n times Units values. For a value that is computed from several columns, see [Encoder.Columns], a row contains the
// values of these columns, one column after the other. dst may be nil. If ctx is done, Encode returns its error; after Close
// it returns [ErrClosed].
func (e *Encoder) Encode(ctx context.Context, dst, images []float32) ([]float32, error) {
	err := e.check(images)
	if err == nil && ctx == nil {
		err = errNoContext
	}
	if err != nil {
		return dst, err
	}
	images = e.scaled(images)
	if err := e.accepts(images); err != nil {
		return dst, fmt.Errorf("run %s: encode: %w", e.name, err)
	}
	before := len(dst)
	if e.pool != nil {
		dst, err = e.pool.Run(ctx, dst, images)
	} else {
		dst, err = e.single.encode(ctx, dst, images)
	}
	if errors.Is(err, batches.ErrClosed) {
		err = ErrClosed
	}
	if err != nil {
		return dst, fmt.Errorf("run %s: encode: %w", e.name, err)
	}
	if e.output {
		e.reading.out.Undo(dst[before:])
	}
	e.postHoc.Calibration.Apply(dst[before:], e.out)
	return dst, nil
}

// scaled returns the rows as the model reads them: with scaled images, and as [reading.given] what a mask does not observe.
func (e *Encoder) scaled(rows []float32) []float32 {
	if len(e.columns) == 1 && e.columns[0].Name == losses.Images {
		return e.reading.in(rows)
	}
	if e.reading.by == nil && !e.reading.missing {
		return rows
	}
	rows = slices.Clone(rows)
	for row := range slices.Chunk(rows, e.in) {
		columns := map[string][]float32{}
		for _, c := range e.columns {
			columns[c.Name], row = row[:c.Size()], row[c.Size():]
		}
		given := e.reading.given(columns, e.columns)
		for name, values := range columns {
			copy(values, given[name])
		}
	}
	return rows
}

// check returns an error if the length of images is not a multiple of the length of a row.
func (e *Encoder) check(images []float32) error {
	if e == nil || e.pool == nil && e.single == nil {
		return errors.New("tessera: the encoder has no model: take one that Run.Encoder returned")
	}
	if len(images)%e.in != 0 {
		return fmt.Errorf("run %s: encode: got %d values, want a multiple of the %d of %s", e.name, len(images), e.in, e.row())
	}
	if err := finite(images, e.in, e.mayLack); err != nil {
		return fmt.Errorf("run %s: encode: %w", e.name, err)
	}
	return nil
}

// mayLack reports whether value i of a row may be missing, NaN: a text or a mask may not.
func (e *Encoder) mayLack(i int) bool {
	for _, c := range e.columns {
		if i < c.Size() {
			return e.holes && (c.Name == losses.Images || c.AsImages)
		}
		i -= c.Size()
	}
	return false
}

// Accepts returns a [*data.Error] for the first of the values of a column that a layer cannot look up, or that the training never
// draws. [Encoder.Encode] checks its rows in the same way.
func (e *Encoder) Accepts(column string, values []float32) error {
	if e == nil {
		return nil
	}
	for _, w := range e.required {
		if w.Column == column {
			if err := w.Check(values); err != nil {
				return err
			}
		}
	}
	return nil
}

// accepts checks the values of all columns of the rows.
func (e *Encoder) accepts(rows []float32) error {
	if len(e.required) == 0 {
		return nil
	}
	for row := range slices.Chunk(rows, e.in) {
		for _, c := range e.columns {
			if err := e.Accepts(c.Name, row[:c.Size()]); err != nil {
				return err
			}
			row = row[c.Size():]
		}
	}
	return nil
}

// isWhole reports whether value i of a row must be a whole number.
func (e *Encoder) isWhole(i int) bool {
	for _, c := range e.columns {
		if i < c.Size() {
			return c.Type == data.Whole
		}
		i -= c.Size()
	}
	return false
}

// row returns a description of a row of values, for messages.
func (e *Encoder) row() string {
	if len(e.columns) == 1 && e.columns[0].Name == losses.Images {
		return "a sample"
	}
	names := lists.Map(e.columns, func(c data.Column) string { return c.Name })
	return "a row of the columns " + strings.Join(names, ", ")
}

// streamed is the number of images that a stream collects before it encodes them.
const streamed = 256

// Stream encodes a sequence of slices of one or more images each. For every slice of images it yields one slice of codes, in
// the same order. It reads ahead until it has 256 images, so that a sequence of single images is encoded in efficient
// batches. The first error ends the sequence. Yielded slices belong to the caller; slices of images are copied.
func (e *Encoder) Stream(ctx context.Context, images iter.Seq[[]float32]) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		if err := e.check(nil); err != nil || images == nil {
			yield(nil, cmp.Or(err, errors.New("tessera: no sequence of samples to encode")))
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

// stream is the state of a call of [Encoder.Stream].
type stream struct {
	encoder *Encoder
	ctx     context.Context
	yield   func([]float32, error) bool
	pending []float32 // images that have been read but not encoded
	lengths []int     // number of code values for each slice in pending
}

// flush encodes the pending images and reports whether the sequence continues.
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

// Units returns the number of values computed for an image, such as the length of a code; 0 for an encoder without a model.
func (e *Encoder) Units() int {
	if e == nil {
		return 0
	}
	return e.out
}

// Programs returns the number of programs that the encoder has compiled so far; a baseline has none.
func (e *Encoder) Programs() int {
	if e == nil || e.pool == nil {
		return 0
	}
	return e.pool.Programs()
}

// Close waits until no goroutine encodes and frees the encoder's programs. Afterwards Encode returns [ErrClosed].
func (e *Encoder) Close() error {
	switch {
	case e == nil:
	case e.pool != nil:
		return e.pool.Close()
	case e.single != nil:
		e.single.mu.Lock()
		defer e.single.mu.Unlock()
		e.single.coder = nil
	}
	return nil
}

// whole computes with a coder that has no compiled programs, in one call at a time. It shares the run's lock.
type whole struct {
	mu      *Turns        // the run's lock
	coder   metrics.Coder // the coder; nil after Close
	in      int           // number of values of an image
	decoded bool          // the value is the output, not the code
}

// encode appends the values of images, each computed in a separate call of the coder: a baseline stops its iterations when
// all images of a call have converged, and some baselines start with the mean code of these images.
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

// one computes the values of one image, unless ctx is done.
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
