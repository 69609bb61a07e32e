package engine

import (
	"tessera/engine/ir"
	"tessera/kernel"
)

// tile is the number of elements that a chain handles at a time: its registers stay in the first-level cache.
const tile = 1024

// slot is a walk of a chain over one buffer.
type slot[T ir.Float] struct {
	cell  *cell[T]
	value *ir.Value
	axes  []axis // collapsed, as many as the chain's
}

// chain is the executable form of a group: per tile, its instructions in order.
type chain[T ir.Float] struct {
	kernels   *kernels[T]
	dims      []int // collapsed iteration space; dims[0] is the slowest axis
	units     int   // equal parts that threads share: the slowest axis before collapsing
	columns   bool  // threads share the fastest of two axes instead
	code      []instruction[T]
	vectors   []slot[T] // table entries: read or written tile by tile
	scalars   []slot[T] // read once per row
	sinks     []sink[T]
	registers int
	fixed     []T // numbers known at compile time; scalars follow them in the numbers table
	members   []*ir.Value
	over      map[*ir.Value]*ir.Value // a written value to the read one whose place it can take
	threads   []chainThread[T]
}

// chainThread is the scratch of one thread.
type chainThread[T ir.Float] struct {
	table   [][]T // registers, then vectors
	numbers []T   // fixed, then scalars
	memory  []T   // of the registers
	in      [][]T // args of a foreign function
	offsets []int // of vectors, scalars and sinks in the current row
}

// form lists which operands of an instruction are vectors.
type form uint8

const (
	unaryForm form = iota
	binaryForm
	rightForm // f(vector, number)
	leftForm  // f(number, vector)
	fillForm  // a number everywhere
	foreignForm
)

// instruction computes one member for one tile. Vectors are indices of the table, numbers of the numbers.
type instruction[T ir.Float] struct {
	form    form
	dst     int
	a, b    int
	unary   kernel.Unary[T]
	binary  kernel.Binary[T]
	scalar  kernel.Scalar[T]
	foreign func(dst []T, in [][]T)
	in      []int
}

// run computes the elements of units [from, to) as thread.
func (c *chain[T]) run(thread, from, to int) {
	t := &c.threads[thread]
	if len(c.dims) == 1 { // flat: one row
		per := c.dims[0] / c.units
		c.row(thread, t, from*per, to*per)
		return
	}
	left, right := 0, c.dims[len(c.dims)-1]
	if c.columns {
		left, right, from, to = from, to, 0, c.dims[0]
		if left == right {
			return
		}
	}
	index := make([]int, 0, 8) // on the stack
	index = append(index, make([]int, len(c.dims)-1)...)
	for index[0] = from; index[0] < to; {
		c.seek(t, index)
		c.seekPanels(t, index[0], left, right)
		c.row(thread, t, left, right)
		for i := len(index) - 1; i >= 0; i-- { // the next row
			index[i]++
			if i == 0 || index[i] < c.dims[i] {
				break
			}
			index[i] = 0
		}
	}
}

// seek sets the offsets of every walk to a row and loads the row's numbers.
func (c *chain[T]) seek(t *chainThread[T], index []int) {
	k := 0
	at := func(s *slot[T]) int {
		off := 0
		for i, x := range index {
			off += x * s.axes[i].step
		}
		t.offsets[k] = off
		k++
		return off
	}
	for i := range c.vectors {
		at(&c.vectors[i])
	}
	for i := range c.scalars {
		s := &c.scalars[i]
		t.numbers[len(c.fixed)+i] = s.cell.data[at(s)]
	}
	for i := range c.sinks {
		at(&c.sinks[i].slot)
	}
}

// seekPanels corrects the offsets of vectors that are stored as panels, in a row of a thread's columns.
func (c *chain[T]) seekPanels(t *chainThread[T], row, left, right int) {
	for i := range c.vectors {
		if s := &c.vectors[i]; s.cell.panels {
			at, stride := s.cell.columns(c.dims[0], c.units, left, right)
			t.offsets[i] = at + row*stride - left
		}
	}
}

// row computes elements [from, to) of the current row, tile by tile.
func (c *chain[T]) row(thread int, t *chainThread[T], from, to int) {
	if len(c.dims) == 1 {
		for i := range c.scalars {
			t.numbers[len(c.fixed)+i] = c.scalars[i].cell.data[0]
		}
		clear(t.offsets)
	}
	for at := from; at < to; at += tile {
		n := min(tile, to-at)
		for i := range c.registers {
			t.table[i] = t.memory[i*tile : i*tile+n]
		}
		for i := range c.vectors {
			off := t.offsets[i] + at
			t.table[c.registers+i] = c.vectors[i].cell.data[off : off+n]
		}
		for i := range c.code {
			c.code[i].do(t, n)
		}
		for i := range c.sinks {
			c.sinks[i].take(c.kernels, thread, t.table[c.sinks[i].source], t.offsets[len(c.vectors)+len(c.scalars)+i], at)
		}
	}
}

func (in *instruction[T]) do(t *chainThread[T], n int) {
	dst := t.table[in.dst]
	switch in.form {
	case unaryForm:
		in.unary(dst, t.table[in.a])
	case binaryForm:
		in.binary(dst, t.table[in.a], t.table[in.b])
	case rightForm:
		in.scalar(dst, t.table[in.a], t.numbers[in.b])
	case leftForm:
		in.scalar(dst, t.table[in.b], t.numbers[in.a])
	case fillForm:
		for i := range dst[:n] {
			dst[i] = t.numbers[in.a]
		}
	case foreignForm:
		for i, a := range in.in {
			t.in[i] = t.table[a]
		}
		in.foreign(dst, t.in[:len(in.in)])
	}
}
