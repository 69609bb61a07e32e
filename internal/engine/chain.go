package engine

import (
	"fmt"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// tile is the number of elements that a chain processes at a time. The registers of one tile fit into the first-level
// cache.
const tile = 1024

// slot describes how a chain accesses one buffer.
type slot[T ir.Float] struct {
	cell  *cell[T]
	value *ir.Value
	axes  []axis // collapsed, one for each of the chain's dims
	// repeats is true if the vector is shorter than a row of the chain and repeats; see shortRows.
	repeats bool
}

// chain is the executable form of a group: a list of instructions that it executes in order for each tile.
type chain[T ir.Float] struct {
	kernels    *kernels[T]
	dims       []int // collapsed iteration space; dims[0] is the slowest axis
	units      int   // number of units that threads divide among themselves: the length of the slowest axis before collapsing
	columns    bool  // threads divide the faster of two axes instead of the slower
	code       []instruction[T]
	vectors    []slot[T] // table entries: read or written tile by tile
	scalars    []slot[T] // read once per row
	sinks      []sink[T]
	registers  int
	period     int                     // length of the vectors that repeat, 0 if there are none
	fixed      []T                     // numbers known at compile time; in chainThread.numbers they precede the scalars
	overwrites map[*ir.Value]*ir.Value // maps a written value to the read value whose memory it can overwrite
	threads    []chainThread[T]
	kept       *kernel.Kept // the elements that it visits if all others are 0; nil: it visits all
}

// chainThread is the scratch memory of one thread.
type chainThread[T ir.Float] struct {
	table   [][]T // registers, followed by vectors
	numbers []T   // fixed numbers, followed by scalars
	memory  []T   // memory of the registers
	in      [][]T // args of a foreign function
	offsets []int // offsets of vectors, scalars and sinks in the current row
	// repeated contains the vectors that repeat, as often as they fit into a tile; nil for others.
	repeated [][]T
}

// form tells which operands of an instruction are vectors.
type form uint8

const (
	unaryForm form = iota
	binaryForm
	rightForm // f(vector, number)
	leftForm  // f(number, vector)
	fillForm  // the same number in every element
	foreignForm
)

// instruction computes one member of the group for one tile. Vector operands are indices of chainThread.table, scalar
// operands are indices of chainThread.numbers.
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

// run computes the elements of units [from, to) on the given thread.
func (c *chain[T]) run(thread, from, to int) {
	if c.kept != nil {
		c.runKept(thread, from, to)
		return
	}
	t := &c.threads[thread]
	c.repeat(t)
	if len(c.dims) == 1 { // one row only
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
	index := make([]int, 0, 8) // small, so that it stays on the stack
	index = append(index, make([]int, len(c.dims)-1)...)
	for index[0] = from; index[0] < to; {
		c.seek(t, index)
		c.seekPanels(t, index[0], left, right)
		c.row(thread, t, left, right)
		for i := len(index) - 1; i >= 0; i-- { // go to the next row
			index[i]++
			if i == 0 || index[i] < c.dims[i] {
				break
			}
			index[i] = 0
		}
	}
}

// seek moves the offsets of every slot to the row at index and loads the numbers of the row.
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

// seekPanels corrects the offsets of vectors that are stored as panels, for a row and a thread's columns [left, right).
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
	step := tile
	if c.period > 0 {
		step -= tile % c.period
	}
	for at := from; at < to; at += step {
		n := min(step, to-at)
		for i := range c.registers {
			t.table[i] = t.memory[i*tile : i*tile+n]
		}
		for i := range c.vectors {
			if c.vectors[i].repeats {
				t.table[c.registers+i] = t.repeated[i][:n]
				continue
			}
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

// repeat copies the vectors that repeat.
func (c *chain[T]) repeat(t *chainThread[T]) {
	for i, to := range t.repeated {
		if to == nil {
			continue
		}
		for n := copy(to, c.vectors[i].cell.data[:c.period]); n < len(to); {
			n += copy(to[n:], to[:n])
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

// compileChain turns a group into a chain for the given maximum number of threads. cells maps every base value to its
// buffer.
func compileChain[T ir.Float](f *fusion, g *group, k *kernels[T], cells map[*ir.Value]*cell[T], threads int) (*chain[T], error) {
	b := &chainBuilder[T]{fusion: f, group: g, cells: cells, place: map[*ir.Value]int{}, number: map[*ir.Value]int{},
		chain: &chain[T]{kernels: k, units: g.bounds[len(g.bounds)-1] / g.bounds[max(0, len(g.bounds)-2)]}}
	if err := b.build(); err != nil {
		return nil, err
	}
	b.collapse(f.inColumns(g, threads))
	source := b.keptSource()
	b.reuse(source)
	b.keep(source)
	b.order()
	b.shortRows()
	b.scratch(threads)
	return b.chain, nil
}

// chainBuilder collects the parts of a chain.
type chainBuilder[T ir.Float] struct {
	fusion *fusion
	group  *group
	cells  map[*ir.Value]*cell[T]
	chain  *chain[T]
	place  map[*ir.Value]int // index in the table: registers count from 0, vectors from -1 downwards, until scratch is called
	number map[*ir.Value]int // index in numbers: fixed numbers from 0, scalars from -1 downwards, until scratch is called
	uses   map[*ir.Value]int // number of instructions that have yet to read a register
	free   []int
}

func (b *chainBuilder[T]) build() error {
	b.countUses()
	for _, v := range b.group.members {
		switch o := v.Op.(type) {
		case ir.Pointwise:
			if err := b.compute(v, o.F); err != nil {
				return err
			}
		case ir.Reduction:
			if err := b.fold(v, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *chainBuilder[T]) countUses() {
	b.uses = map[*ir.Value]int{}
	for _, v := range b.group.members {
		for _, a := range v.Args {
			b.uses[skipReshapes(a)]++
		}
		if _, ok := v.Op.(ir.Reduction); ok {
			b.uses[skipReshapes(v.Args[0])] += len(b.group.members) // the sinks read after all instructions
		}
	}
}

// compute adds the instruction that applies f to the args of the pointwise member v.
func (b *chainBuilder[T]) compute(v *ir.Value, f ir.Function) error {
	in := instruction[T]{}
	var vectors, numbers []int
	var isNumber []bool
	for _, a := range v.Args {
		vector, number, err := b.operand(a)
		if err != nil {
			return err
		}
		isNumber = append(isNumber, vector == nil)
		if vector == nil {
			numbers = append(numbers, *number)
		} else {
			vectors = append(vectors, *vector)
		}
	}
	k := b.chain.kernels
	p, isPrimitive := f.(ir.Primitive)
	switch {
	case !isPrimitive || len(vectors) == 0:
		in.form, in.in = foreignForm, b.asVectors(v)
		in.foreign = foreignFunction(f, k)
	case len(v.Args) == 1:
		in.form, in.a, in.unary = unaryForm, vectors[0], k.unary[p]
	case isNumber[1]:
		in.form, in.a, in.b, in.scalar = rightForm, vectors[0], numbers[0], k.right[p]
	case isNumber[0]:
		in.form, in.a, in.b, in.scalar = leftForm, numbers[0], vectors[0], k.left[p]
	default:
		in.form, in.a, in.b, in.binary = binaryForm, vectors[0], vectors[1], k.binary[p]
	}
	b.release(v)
	in.dst = b.destination(v)
	b.chain.code = append(b.chain.code, in)
	return nil
}

// foreignFunction applies f, element by element, to a list of vectors.
func foreignFunction[T ir.Float](f ir.Function, k *kernels[T]) func(dst []T, in [][]T) {
	switch f := f.(type) {
	case ir.Primitive:
		if f.Args() == 1 {
			return func(dst []T, in [][]T) { k.unary[f](dst, in[0]) }
		}
		return func(dst []T, in [][]T) { k.binary[f](dst, in[0], in[1]) }
	case ir.Elementwise:
		if _, ok := any(T(0)).(float32); ok {
			run, _ := any(func(dst []float32, in [][]float32) { f.Float32(dst, in, 1) }).(func([]T, [][]T))
			return run
		}
		run, _ := any(func(dst []float64, in [][]float64) { f.Float64(dst, in, 1) }).(func([]T, [][]T))
		return run
	}
	return nil
}

// asVectors returns a table entry for every arg of v. It expands args that are numbers into registers.
func (b *chainBuilder[T]) asVectors(v *ir.Value) []int {
	var in, expanded []int
	for _, a := range v.Args {
		vector, number, _ := b.operand(a)
		if vector == nil {
			r := b.register()
			expanded = append(expanded, r)
			b.chain.code = append(b.chain.code, instruction[T]{form: fillForm, dst: r, a: *number})
			vector = &r
		}
		in = append(in, *vector)
	}
	b.free = append(b.free, expanded...) // free for later instructions: v itself may be written to one of them
	return in
}

// operand returns the location of a: a table entry or a number.
func (b *chainBuilder[T]) operand(a *ir.Value) (vector, number *int, err error) {
	if c, ok := ir.ConstantOf(a); ok {
		i, ok := b.number[a]
		if !ok {
			i = len(b.chain.fixed)
			b.chain.fixed = append(b.chain.fixed, T(c))
			b.number[a] = i
		}
		return nil, &i, nil
	}
	base := skipReshapes(a)
	if i, ok := b.place[base]; ok {
		return &i, nil, nil
	}
	if i, ok := b.number[base]; ok {
		return nil, &i, nil
	}
	walk, ok := accessOf(a)
	if !ok {
		return nil, nil, fmt.Errorf("engine: %v of a view of a view has no memory", a.Op)
	}
	s := slot[T]{cell: b.cells[walk.base], value: walk.base, axes: split(walk.axes, b.group.bounds)}
	if s.cell == nil {
		return nil, nil, fmt.Errorf("engine: %v%v has no memory", walk.base.Op, walk.base.Shape)
	}
	if n := len(s.axes); n == 0 || s.axes[n-1].step == 0 {
		b.chain.scalars = append(b.chain.scalars, s)
		i := -len(b.chain.scalars)
		b.number[base] = i
		return nil, &i, nil
	}
	b.chain.vectors = append(b.chain.vectors, s)
	i := -len(b.chain.vectors)
	b.place[base] = i
	return &i, nil, nil
}

// release frees the registers whose last reader is v.
func (b *chainBuilder[T]) release(v *ir.Value) {
	for _, a := range v.Args {
		base := skipReshapes(a)
		b.uses[base]--
		if r, ok := b.place[base]; ok && r >= 0 && b.uses[base] == 0 {
			b.free = append(b.free, r)
		}
	}
}

// destination returns the table entry to which v is written: its buffer if v is stored, otherwise a register.
func (b *chainBuilder[T]) destination(v *ir.Value) int {
	if b.fusion.stored(v) {
		b.chain.vectors = append(b.chain.vectors, slot[T]{cell: b.cells[v], value: v, axes: split(contiguous(v.Shape), b.group.bounds)})
		b.place[v] = -len(b.chain.vectors)
		return b.place[v]
	}
	b.place[v] = b.register()
	return b.place[v]
}

func (b *chainBuilder[T]) register() int {
	if n := len(b.free); n > 0 {
		r := b.free[n-1]
		b.free = b.free[:n-1]
		return r
	}
	b.chain.registers++
	return b.chain.registers - 1
}

// fold adds the sink for a reduction.
func (b *chainBuilder[T]) fold(v *ir.Value, o ir.Reduction) error {
	a := v.Args[0]
	axes := contiguous(a.Shape)
	step := 1
	folded := o.Axes.List()
	for i := len(axes) - 1; i >= 0; i-- {
		axes[i].step = 0
		if !slices.Contains(folded, i) {
			axes[i].step = step
			step *= axes[i].length
		}
	}
	s := sink[T]{f: o.F, slot: slot[T]{cell: b.cells[v], value: v, axes: split(axes, b.group.bounds)}}
	vector, number, err := b.operand(a)
	if err != nil {
		return err
	}
	if vector == nil { // the number fills a vector
		r := b.register()
		b.chain.code = append(b.chain.code, instruction[T]{form: fillForm, dst: r, a: *number})
		vector = &r
	}
	s.source = *vector
	b.chain.sinks = append(b.chain.sinks, s)
	return nil
}

// collapse merges axes that every slot can traverse as a single axis. Two axes remain if threads share columns and all
// slots are matrices.
func (b *chainBuilder[T]) collapse(inColumns bool) {
	c := b.chain
	walks := lists.Of(len(c.vectors), func(i int) *slot[T] { return &c.vectors[i] })
	for i := range c.scalars {
		walks = append(walks, &c.scalars[i])
	}
	for i := range c.sinks {
		walks = append(walks, &c.sinks[i].slot)
	}
	all := [][]axis{split(contiguous([]int{b.group.size}), b.group.bounds)}
	for _, s := range walks {
		s.axes = append([]axis(nil), s.axes...)
		all = append(all, s.axes)
	}
	joined := collapse(all, !inColumns)
	if c.columns = inColumns && len(joined[0]) == 2; c.columns {
		c.units = joined[0][1].length
	} else if inColumns {
		joined = collapse(all, true)
	}
	for i, s := range walks {
		s.axes = joined[i+1]
	}
	for _, x := range joined[0] {
		c.dims = append(c.dims, x.length)
	}
	if len(c.dims) == 0 { // a single element
		c.dims, c.units = []int{1}, 1
		for _, s := range walks {
			s.axes = []axis{{1, 1}}
		}
	}
	for i := range c.sinks {
		s := &c.sinks[i]
		s.across = c.columns || s.axes[0].step == 0
	}
}

// reuse finds written values that can overwrite a read value. Both must have the same layout, nothing else may read the
// old value, and in every tile the last read must precede the write. Overwriting reduces the memory of the chain, so
// that more of it stays in the cache. A matrix with known elements, other than the source of such a chain, keeps its zeros.
func (b *chainBuilder[T]) reuse(kept *ir.Value) {
	c := b.chain
	last := make([]int, len(c.vectors)) // index of the instruction that reads a vector last
	read := func(entry, when int) {
		if entry < 0 {
			last[-entry-1] = max(last[-entry-1], when)
		}
	}
	for i, in := range c.code {
		switch in.form {
		case unaryForm, rightForm:
			read(in.a, i)
		case leftForm:
			read(in.b, i)
		case binaryForm:
			read(in.a, i)
			read(in.b, i)
		}
		for _, entry := range in.in {
			read(entry, i)
		}
	}
	for _, s := range c.sinks {
		read(s.source, len(c.code))
	}
	c.overwrites = map[*ir.Value]*ir.Value{}
	taken := map[*ir.Value]bool{}
	for i, in := range c.code {
		if in.dst >= 0 {
			continue
		}
		w := c.vectors[-in.dst-1]
		for j, r := range c.vectors {
			if last[j] <= i && !taken[r.value] && slices.Equal(r.axes, w.axes) && (r.value == kept || r.cell.kept == nil) && b.replaceable(r.value, w.value) {
				c.overwrites[w.value], taken[r.value] = r.value, true
				break
			}
		}
	}
}

// replaceable reports whether w may be written over r: another step computes r, r is not a wanted value, and only this
// group reads r.
func (b *chainBuilder[T]) replaceable(r, w *ir.Value) bool {
	switch r.Op.(type) {
	case ir.Product, partialProduct, selectedProduct, ir.Transpose, ir.Blockwise, ir.Unitwise:
	default:
		return false // leaves are not in the engine's memory; the results of chains and foreign ops are not overwritten
	}
	if volume.Of(r.Shape) != volume.Of(w.Shape) || slices.ContainsFunc(b.fusion.module.wanted, func(v *ir.Value) bool { return skipReshapes(v) == r }) {
		return false
	}
	return !slices.ContainsFunc(b.fusion.readers[r], func(v *ir.Value) bool { return b.fusion.groupOf[v] != b.group })
}

// order fixes the order of the tables: registers precede vectors, and fixed numbers precede scalars.
func (b *chainBuilder[T]) order() {
	c := b.chain
	entry := func(i *int) {
		if *i < 0 {
			*i = c.registers - *i - 1
		}
	}
	number := func(i *int) {
		if *i < 0 {
			*i = len(c.fixed) - *i - 1
		}
	}
	for i := range c.code {
		in := &c.code[i]
		entry(&in.dst)
		switch in.form {
		case unaryForm:
			entry(&in.a)
		case binaryForm:
			entry(&in.a)
			entry(&in.b)
		case rightForm:
			entry(&in.a)
			number(&in.b)
		case leftForm:
			number(&in.a)
			entry(&in.b)
		case fillForm:
			number(&in.a)
		}
		for j := range in.in {
			entry(&in.in[j])
		}
	}
	for i := range c.sinks {
		entry(&c.sinks[i].source)
	}
}

// shortRows joins the rows of a chain into longer ones if several fit into a tile. A kernel then processes them in one call. Vectors
// that are the same for all rows, such as biases, repeat within a tile. The order of the additions of sinks remains: row by row.
func (b *chainBuilder[T]) shortRows() {
	c := b.chain
	last := len(c.dims) - 1
	if last < 1 || c.columns || c.kept != nil || 2*c.dims[last] > tile {
		return
	}
	length := c.dims[last]
	joinable := func(s *slot[T]) (joins, same bool) { // the rows lie one after the other, or all rows are one
		same = !slices.ContainsFunc(s.axes[:last], func(a axis) bool { return a.step != 0 })
		return s.axes[last].step == 1 && (s.axes[last-1].step == length || same), same
	}
	for i := range c.vectors {
		if joins, _ := joinable(&c.vectors[i]); !joins {
			return
		}
	}
	for i := range c.sinks {
		if joins, _ := joinable(&c.sinks[i].slot); !joins {
			return
		}
	}
	for i := range c.scalars {
		if c.scalars[i].axes[last-1].step != 0 {
			return
		}
	}
	rows := c.dims[last-1]
	join := func(s *slot[T], step int) {
		s.axes = append(s.axes[:last-1:last-1], axis{rows * length, step})
	}
	for i := range c.vectors {
		s := &c.vectors[i]
		_, s.repeats = joinable(s)
		join(s, 1)
	}
	for i := range c.sinks {
		s := &c.sinks[i].slot
		_, s.repeats = joinable(s)
		join(s, 1)
	}
	for i := range c.scalars {
		join(&c.scalars[i], 0)
	}
	c.dims = append(c.dims[:last-1], rows*length)
	c.period = length
}

// scratch allocates the scratch memory of the threads.
func (b *chainBuilder[T]) scratch(threads int) {
	c := b.chain
	for i := range c.sinks {
		c.sinks[i].allocate(threads)
	}
	most := 0 // args of a foreign function
	for _, in := range c.code {
		most = max(most, len(in.in))
	}
	memory := c.registers
	if c.kept != nil {
		memory += len(c.vectors)
	}
	for range threads {
		t := chainThread[T]{
			table:   isolated[[]T](c.registers + len(c.vectors)),
			numbers: isolated[T](len(c.fixed) + len(c.scalars)),
			memory:  isolated[T](memory * tile),
			in:      isolated[[]T](most),
			offsets: isolated[int](len(c.vectors) + len(c.scalars) + len(c.sinks)),

			repeated: make([][]T, len(c.vectors)),
		}
		for i := range c.vectors {
			if c.vectors[i].repeats {
				t.repeated[i] = isolated[T](tile - tile%c.period)
			}
		}
		copy(t.numbers, c.fixed)
		c.threads = append(c.threads, t)
	}
}

// isolated returns n elements that share no cache line with other data. Threads that write to the same cache line slow
// each other down.
func isolated[E any](n int) []E {
	const line = 128 // bytes; processors fetch pairs of lines
	return make([]E, n+2*line)[line : line+n : line+n]
}

// sink is a reduction at the end of a chain.
type sink[T ir.Float] struct {
	slot[T]
	f       ir.Reducer
	across  bool        // the slowest axis is reduced: every thread has its own accumulators
	vectors [][]T       // accumulators per thread if the fastest axis remains
	numbers [][]float64 // accumulators per thread if the fastest axis is reduced
	source  int         // index of the reduced vector in the table
}

// take folds one tile into the sink. off is the offset of the row's results in the output of the reduction. at is the
// position of the tile in the row.
func (s *sink[T]) take(k *kernels[T], thread int, values []T, off, at int) {
	folded := s.axes[len(s.axes)-1].step == 0
	switch {
	case folded && s.across:
		s.numbers[thread][off] = s.foldNumber(k, s.numbers[thread][off], values)
	case folded:
		s.cell.data[off] = T(s.foldNumber(k, float64(s.cell.data[off]), values))
	default:
		into := s.cell.data
		if s.across {
			into = s.vectors[thread]
		}
		fold := k.set.Add
		if s.f == ir.Max {
			fold = k.set.Max
		}
		if s.repeats {
			for n := len(into); len(values) > 0; values = values[n:] {
				fold(into, into, values[:n])
			}
			return
		}
		into = into[off+at : off+at+len(values)]
		fold(into, into, values)
	}
}

func (s *sink[T]) foldNumber(k *kernels[T], acc float64, values []T) float64 {
	if s.f == ir.Max {
		return max(acc, float64(k.set.Maximum(values)))
	}
	return acc + float64(k.set.Sum(values))
}

// reset prepares the accumulators for the units [from, to) of a thread.
func (c *chain[T]) reset(thread, from, to int) {
	for i := range c.sinks {
		s := &c.sinks[i]
		start := startOf(s.f)
		switch {
		case s.across && s.numbers != nil:
			fill(s.numbers[thread], start)
		case s.across:
			fill(s.vectors[thread], T(start))
		default:
			per := len(s.cell.data) / c.units
			fill(s.cell.data[from*per:to*per], T(start))
		}
	}
}

func fill[T ir.Float](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// finish combines the accumulators of the threads, always in the order of the threads.
func (c *chain[T]) finish(threads int) {
	for i := range c.sinks {
		s := &c.sinks[i]
		switch {
		case !s.across:
		case s.numbers != nil:
			s.finishNumbers(threads)
		default:
			s.finishVectors(c.kernels, threads)
		}
	}
}

func (s *sink[T]) finishNumbers(threads int) {
	for j := range s.cell.data {
		acc := s.numbers[0][j]
		for _, of := range s.numbers[1:threads] {
			if s.f == ir.Max {
				acc = max(acc, of[j])
			} else {
				acc += of[j]
			}
		}
		s.cell.data[j] = T(acc)
	}
}

func (s *sink[T]) finishVectors(k *kernels[T], threads int) {
	into := s.cell.data
	copy(into, s.vectors[0])
	for _, of := range s.vectors[1:threads] {
		if s.f == ir.Max {
			k.set.Max(into, into, of)
		} else {
			k.set.Add(into, into, of)
		}
	}
}

// allocate makes the accumulators of a reduction across threads.
func (s *sink[T]) allocate(threads int) {
	if !s.across {
		return
	}
	n := volume.Of(s.value.Shape)
	for range threads {
		if s.axes[len(s.axes)-1].step == 0 {
			s.numbers = append(s.numbers, isolated[float64](n))
		} else {
			s.vectors = append(s.vectors, isolated[T](n))
		}
	}
}
