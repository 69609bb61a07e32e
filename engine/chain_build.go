package engine

import (
	"fmt"
	"slices"

	"tessera/engine/ir"
)

// compileChain turns a group into a chain for at most threads threads; cells gives the buffer of every base value.
func compileChain[T ir.Float](f *fusion, g *group, k *kernels[T], cells map[*ir.Value]*cell[T], threads int) (*chain[T], error) {
	b := &chainBuilder[T]{fusion: f, group: g, cells: cells, place: map[*ir.Value]int{}, number: map[*ir.Value]int{},
		chain: &chain[T]{kernels: k, members: g.members, units: g.bounds[len(g.bounds)-1] / g.bounds[max(0, len(g.bounds)-2)]}}
	if err := b.build(); err != nil {
		return nil, err
	}
	b.collapse(f.inColumns(g, threads))
	b.reuse()
	b.order()
	b.scratch(threads)
	return b.chain, nil
}

// chainBuilder collects the parts of a chain.
type chainBuilder[T ir.Float] struct {
	fusion *fusion
	group  *group
	cells  map[*ir.Value]*cell[T]
	chain  *chain[T]
	place  map[*ir.Value]int // table entry of a value: registers count from 0, vectors from -1 downwards until scratch
	number map[*ir.Value]int // numbers entry: fixed from 0, scalars from -1 downwards until scratch
	uses   map[*ir.Value]int // how many instructions still read a register
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
			b.uses[skipReshapes(v.Args[0])] += len(b.group.members) // sinks read after all instructions
		}
	}
}

// compute adds the instruction of a pointwise member.
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

// foreignFunction is f on a list of vectors.
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

// asVectors gives every arg of v as a table entry; numbers are spread into registers first.
func (b *chainBuilder[T]) asVectors(v *ir.Value) []int {
	var in, held []int
	for _, a := range v.Args {
		vector, number, _ := b.operand(a)
		if vector == nil {
			r := b.register()
			held = append(held, r)
			b.chain.code = append(b.chain.code, instruction[T]{form: fillForm, dst: r, a: *number})
			vector = &r
		}
		in = append(in, *vector)
	}
	b.free = append(b.free, held...) // free again after v: its destination may be one of them
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

// destination is where the member v is written: its buffer if it is stored, otherwise a register.
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

// fold adds the sink of a reduction member.
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
	if vector == nil { // a number in every element
		r := b.register()
		b.chain.code = append(b.chain.code, instruction[T]{form: fillForm, dst: r, a: *number})
		vector = &r
	}
	s.source = *vector
	b.chain.sinks = append(b.chain.sinks, s)
	return nil
}
