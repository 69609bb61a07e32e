package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
	"tessera/internal/lists"
)

// Recurrent describes a gated recurrent network that reads sequences x (batch, Tokens, Features) token by token. With h' the
// hidden state behind the token before, σ the sigmoid, * the product of elements, W (Features, gates Units), U (Units, gates
// Units) and biases b and d (gates Units), whose columns are ordered by gate:
//
//	gru, 3 gates:   r = σ(x W_r + b_r + h' U_r + d_r),   z = σ(x W_z + b_z + h' U_z + d_z)
//	                n = tanh(x W_n + b_n + r * (h' U_n + d_n)),   h = (1 - z) * n + z * h'
//	lstm, 4 gates:  i, f, o = σ(x W + b + h' U + d) of their columns,   g = tanh(...)
//	                c = f * c' + i * g,   h = o * tanh(c);   in the order i, f, g, o
//
// as in PyTorch's nn.GRU and nn.LSTM. h' and c' of the first token are 0. All tokens are computed by one op: one product of x
// and W, then for every token one product of the hidden states of all sequences and U. Every thread computes sequences of its own.
type Recurrent struct {
	LSTM                    bool
	Tokens, Features, Units int
	Reverse                 bool // begins with the last token
	Masked                  bool
}

// RecurrentOp is the spec of the hidden states: the args of the op are x, W, b, U, d, the mask if there is one, and the result of
// recurrentRunOp, from which the op takes them. The result of recurrentRunOp has a row for every token, see [Recurrent.row].
// recurrentBackOp is the spec of the derivative, recurrentBeforeOp of the hidden states before every token. recurrentTurnedOp
// transposes U. recurrentNextOp is the spec of a run of one token that begins with the state of the token before.
type (
	RecurrentOp       Recurrent
	recurrentRunOp    Recurrent
	recurrentBackOp   Recurrent
	recurrentBeforeOp Recurrent
	recurrentTurnedOp Recurrent
	recurrentNextOp   Recurrent
)

// Gates returns the number of columns of W and U.
func (r Recurrent) Gates() int {
	if r.LSTM {
		return 4 * r.Units
	}
	return 3 * r.Units
}

// State returns the number of values that a token hands to the next one: c and h of an LSTM, h of a GRU.
func (r Recurrent) State() int { return r.Gates() - 2*r.Units }

// row returns the number of values of a token that the derivative needs: i, f, g, o, c, h of an LSTM; r, z, n, h' U_n + d_n, h of a
// GRU.
func (r Recurrent) row() int { return 4*r.Units + r.State() }

// Apply returns the hidden states (batch, Tokens, Units). weights are W, b, U and d. mask (batch, Tokens) is nil unless Masked:
// a token whose mask is 0 leaves the state as it is.
func (r Recurrent) Apply(x, mask *gorgonia.Node, weights ...*gorgonia.Node) (*gorgonia.Node, error) {
	in := append(gorgonia.Nodes{x}, weights...)
	if r.Masked {
		in = append(in, mask)
	}
	if err := r.check(in); err != nil {
		return nil, err
	}
	run, err := r.op(recurrentRunOp(r), x, r.row(), len(in)).with(cell[float32]{r, vector.Float32}.run, cell[float64]{r, vector.Float64}.run).Apply(in...)
	if err != nil {
		return nil, err
	}
	in = append(in, run)
	o := r.op(RecurrentOp(r), x, r.Units, len(in)).with(cell[float32]{r, vector.Float32}.hidden, cell[float64]{r, vector.Float64}.hidden)
	o.Fixed = lists.Of(len(in), func(i int) bool { return i > 4 })
	o.Derivative = r.back
	return o.Apply(in...)
}

// Next returns the hidden state (batch, 1, Units) of one token and its state (batch, 1, State) for the next one. past (batch, n,
// State) contains the states of the tokens before it, and place (batch, 1) their number. Nothing has a gradient.
func (r Recurrent) Next(x, past, place *gorgonia.Node, weights ...*gorgonia.Node) (h, state *gorgonia.Node, err error) {
	r.Tokens = 1
	in := append(append(gorgonia.Nodes{x}, weights...), past, place)
	if err := r.check(in); err != nil {
		return nil, nil, err
	}
	o := r.op(recurrentNextOp(r), x, r.row(), len(in)).with(cell[float32]{r, vector.Float32}.run, cell[float64]{r, vector.Float64}.run)
	o.ByUnit[6] = true
	var c Chain
	run := c.Do("next", func() (*gorgonia.Node, error) { return o.Apply(in...) })
	batch := x.Shape()[0]
	run = c.Reshape(run, batch, r.row())
	state = c.Columns(run, 4*r.Units, r.State())
	h = c.Columns(run, r.row()-r.Units, r.Units)
	return c.Reshape(h, batch, 1, r.Units), c.Reshape(state, batch, 1, r.State()), c.Err()
}

func (r Recurrent) check(in gorgonia.Nodes) error {
	g := r.Gates()
	want := []tensor.Shape{{in[0].Shape()[0], r.Tokens, r.Features}, {r.Features, g}, {g}, {r.Units, g}, {g}}
	if r.Masked {
		want = append(want, tensor.Shape{in[0].Shape()[0], r.Tokens})
	}
	for i, w := range want {
		if !in[i].Shape().Eq(w) {
			return fmt.Errorf("recurrent: input %d has the shape %v, want %v", i, in[i].Shape(), w)
		}
	}
	return nil
}

// op returns an op of this many inputs with a row of n values for every token of x, without kernels. W, b, U and d are the inputs 1 to 4,
// if there are as many; the others belong to the sequences.
func (r Recurrent) op(spec any, x *gorgonia.Node, n, inputs int) *Unitwise {
	batch := x.Shape()[0]
	return &Unitwise{
		Spec:     spec,
		Out:      tensor.Shape{batch, r.Tokens, n},
		Units:    batch,
		ByUnit:   lists.Of(inputs, func(i int) bool { return i == 0 || i > 4 }),
		Fixed:    lists.Of(inputs, func(int) bool { return true }),
		Division: ir.ByUnits,
		Joint:    true,
		Scratch:  (2*batch + 6) * r.Units,
		Work:     2 * float64(batch*r.Tokens*(r.Features+r.Units)) * float64(r.Gates()),
	}
}

func (u *Unitwise) with(f32 units[float32], f64 units[float64]) *Unitwise {
	u.Float32, u.Float64 = f32, f64
	return u
}

// back returns the gradients of x, W, b, U and d. in are the args of the op, y are the hidden states and grad is their gradient.
func (r Recurrent) back(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	x, w, b, u, d, run := in[0], in[1], in[2], in[3], in[4], in[len(in)-1]
	h, rows := r.Units, x.Shape()[0]*r.Tokens
	var c Chain
	slopes := c.Reshape(c.Do("back", func() (*gorgonia.Node, error) {
		o := r.op(recurrentBackOp(r), x, 4*h, len(in)+1).with(cell[float32]{r, vector.Float32}.back, cell[float64]{r, vector.Float64}.back)
		args := slices.Concat(gorgonia.Nodes{grad, run}, in[5:len(in)-1], gorgonia.Nodes{x, w, b, d, u})
		o.ByUnit = lists.Of(len(args), func(i int) bool { return i < len(args)-4 })
		o.Fixed = lists.Of(len(args), func(i int) bool { return i > 0 && i < len(args)-5 })
		o.Derivative = func(in gorgonia.Nodes, _, v *gorgonia.Node) (gorgonia.Nodes, error) { return r.bend(in, v) }
		o.Prepared = (&Unitwise{Spec: recurrentTurnedOp(r), Out: tensor.Shape{r.Gates(), h}, Units: 1, ByUnit: []bool{false}}).with(
			func(dst []float32, in [][]float32, _ []float32, _, _ int) { transpose(dst, in[0], h, r.Gates()) },
			func(dst []float64, in [][]float64, _ []float64, _, _ int) { transpose(dst, in[0], h, r.Gates()) })
		return o.Apply(args...)
	}), rows, 4*h)
	before := c.Reshape(c.Do("before", func() (*gorgonia.Node, error) { return r.before(y) }), rows, h)
	first, second := slopes, slopes // of the sums with x, and of those with h'
	if !r.LSTM {
		first, second = c.Columns(slopes, 0, 3*h), c.Join(c.Columns(slopes, 0, 2*h), c.Columns(slopes, 3*h, h))
	}
	grads := gorgonia.Nodes{
		c.Reshape(c.MatMul(first, c.Transpose(w)), x.Shape()...),
		c.MatMul(c.Transpose(c.Reshape(x, rows, r.Features)), first), c.Sum(first, 0),
		c.MatMul(c.Transpose(before), second), c.Sum(second, 0),
	}
	return append(grads, make(gorgonia.Nodes, len(in)-5)...), c.Err()
}

// before returns the hidden states y of the tokens before: 0 for the first one. Its derivative is the same of the reversed sequence.
func (r Recurrent) before(y *gorgonia.Node) (*gorgonia.Node, error) {
	o := r.op(recurrentBeforeOp(r), y, r.Units, 1).with(
		func(dst []float32, in [][]float32, _ []float32, from, to int) { lag(r, dst, in[0], from, to) },
		func(dst []float64, in [][]float64, _ []float64, from, to int) { lag(r, dst, in[0], from, to) })
	o.Fixed = nil
	o.Derivative = func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		r := r
		r.Reverse = !r.Reverse
		return gradientOf(r.before(grad))
	}
	return o.Apply(y)
}

// bend returns the gradients of the args of recurrentBackOp, from the gradient v of its result: those of an expression token by
// token, in which all nodes that it reads are inputs, because in the graph they may depend on each other.
func (r Recurrent) bend(in gorgonia.Nodes, v *gorgonia.Node) (gorgonia.Nodes, error) {
	n := len(in)
	grad, x, w, b, d, u := in[0], in[n-5], in[n-4], in[n-3], in[n-2], in[n-1]
	batch, h, rows := x.Shape()[0], r.Units, x.Shape()[0]*r.Tokens
	var mask *gorgonia.Node
	if r.Masked {
		mask = in[2]
	}
	var c Chain
	sums := c.Reshape(c.AddRow(c.MatMul(c.Reshape(x, rows, r.Features), w), b), batch, r.Tokens*r.Gates())
	y, resets := r.unrolled(&c, sums, mask, u, d)
	slopes := c.Reshape(c.Do("slopes", func() (*gorgonia.Node, error) {
		grads, err := Gradient(c.Sum(c.Mul(y, c.Flatten(grad))), sums, grad)
		if err != nil {
			return nil, err
		}
		return grads[0], c.Err()
	}), rows, r.Gates())
	if !r.LSTM {
		slopes = c.Join(slopes, c.Mul(c.Columns(slopes, 2*h, h), c.Reshape(resets, rows, h)))
	}
	total := c.Sum(c.Mul(slopes, c.Reshape(v, rows, 4*h)))
	if c.Err() != nil {
		return nil, c.Err()
	}
	grads, err := Gradient(total, grad, x, w, b, d, u, v)
	if err != nil {
		return nil, err
	}
	return slices.Concat(grads[:1], make(gorgonia.Nodes, n-6), grads[1:6]), nil
}

// unrolled returns the hidden states (batch, Tokens Units) and the gates r of a GRU by ops for every token, from the sums x W + b (batch,
// Tokens Gates).
func (r Recurrent) unrolled(c *Chain, sums, mask, u, d *gorgonia.Node) (y, resets *gorgonia.Node) {
	h, g := r.Units, r.Gates()
	sigmoid := func(x *gorgonia.Node) *gorgonia.Node { return c.unary("sigmoid", gorgonia.Sigmoid, x) }
	tanh := func(x *gorgonia.Node) *gorgonia.Node { return c.unary("tanh", gorgonia.Tanh, x) }
	part := func(x *gorgonia.Node, i int) *gorgonia.Node { return c.Columns(x, i*h, h) }
	last := c.Scale(part(sums, 0), 0)
	cells := last
	ones := c.Shift(c.Scale(c.Reshape(c.Rows(d, 0, h), 1, h), 0), 1)
	ys, rs := make([]*gorgonia.Node, r.Tokens), make([]*gorgonia.Node, r.Tokens)
	for step := range r.Tokens {
		t, _ := r.at(step)
		own, behind := c.Columns(sums, t*g, g), c.AddRow(c.MatMul(last, u), d)
		next, nextCells := last, cells
		if all := c.Add(own, behind); r.LSTM {
			nextCells = c.Add(c.Mul(sigmoid(part(all, 1)), cells), c.Mul(sigmoid(part(all, 0)), tanh(part(all, 2))))
			next = c.Mul(sigmoid(part(all, 3)), tanh(nextCells))
		} else {
			rs[t] = sigmoid(part(all, 0))
			n := tanh(c.Add(part(own, 2), c.Mul(rs[t], part(behind, 2))))
			next = c.Add(n, c.Mul(sigmoid(part(all, 1)), c.Sub(last, n)))
		}
		if r.Masked {
			read := c.MatMul(c.From(1, c.Lt(c.Columns(mask, t, 1), 0.5)), ones)
			next, nextCells = c.Add(last, c.Mul(read, c.Sub(next, last))), c.Add(cells, c.Mul(read, c.Sub(nextCells, cells)))
		}
		last, cells, ys[t] = next, nextCells, next
	}
	if r.LSTM {
		rs = ys
	}
	return c.Join(ys[0], ys[1:]...), c.Join(rs[0], rs[1:]...)
}

// at returns the token that is computed in a step, and the one before it, which is out of range in the first step.
func (r Recurrent) at(step int) (t, before int) {
	if r.Reverse {
		return r.Tokens - 1 - step, r.Tokens - step
	}
	return step, step - 1
}

// lag is the kernel of recurrentBeforeOp.
func lag[T Float](r Recurrent, dst, y []T, from, to int) {
	for b := from; b < to; b++ {
		for step := range r.Tokens {
			t, before := r.at(step)
			if to := nth(dst, b*r.Tokens+t, r.Units); step == 0 {
				clear(to)
			} else {
				copy(to, nth(y, b*r.Tokens+before, r.Units))
			}
		}
	}
}

// hidden is the kernel of RecurrentOp.
func (c cell[T]) hidden(dst []T, in [][]T, _ []T, from, to int) {
	size, h, run := c.row(), c.Units, in[len(in)-1]
	for i := from * c.Tokens; i < to*c.Tokens; i++ {
		copy(nth(dst, i, h), nth(run, i, size)[size-h:])
	}
}

// cell computes a Recurrent in one precision.
type cell[T Float] struct {
	Recurrent
	kernels func() *vector.Set[T]
}

// run is the kernel of recurrentRunOp and recurrentNextOp.
func (c cell[T]) run(dst []T, in [][]T, scratch []T, from, to int) {
	k, n, size, tokens, h, g := c.kernels(), to-from, c.row(), c.Tokens, c.Units, c.Gates()
	x, w, b, u, d := in[0], in[1], in[2], in[3], in[4]
	run := dst[from*tokens*size : to*tokens*size]
	bias := scratch[:4*h] // every row begins with it
	copy(bias, b)
	copy(bias[3*h:], d[g-h:])
	k.Add(bias[:g-h], b[:g-h], d[:g-h])
	if c.LSTM {
		k.Add(bias[3*h:], b[3*h:], d[3*h:])
	}
	for i := range n * tokens {
		copy(run[i*size:], bias)
	}
	k.Gemm(false, false, n*tokens, g, c.Features, 1, x[from*tokens*c.Features:], c.Features, w, g, 1, run, size)
	zeros := scratch[4*h:][:c.State()]
	clear(zeros)
	for step := range tokens {
		t, before := c.at(step)
		if step > 0 {
			c.multiply(k, n, run[before*size+size-h:], tokens*size, u, run[t*size:])
		}
		for i := range n {
			row, last := nth(run, i*tokens+t, size), zeros
			if step > 0 {
				last = nth(run, i*tokens+before, size)[4*h:]
			} else if place := c.place(in, from+i); place > 0 {
				last = nth(in[5], place-1, c.State())
				c.multiply(k, 1, last[c.State()-h:], h, u, row)
			}
			if c.Masked && in[5][(from+i)*tokens+t] < 0.5 {
				copy(row[4*h:], last)
				continue
			}
			c.advance(k, row, last)
		}
	}
}

// multiply adds the products of n hidden states, the first values of rows of a run, and U to the sums of rows.
func (c cell[T]) multiply(k *vector.Set[T], n int, hidden []T, distance int, u, rows []T) {
	h, g, each := c.Units, c.Gates(), c.Tokens*c.row()
	if c.LSTM {
		k.Gemm(false, false, n, g, h, 1, hidden, distance, u, g, 1, rows, each)
		return
	}
	k.Gemm(false, false, n, 2*h, h, 1, hidden, distance, u, g, 1, rows, each)
	k.Gemm(false, false, n, h, h, 1, hidden, distance, u[2*h:], g, 1, rows[3*h:], each)
}

// advance computes the gates and the state of a token from the sums in its row and the state before it.
func (c cell[T]) advance(k *vector.Set[T], row, last []T) {
	h := c.Units
	k.Sigmoid(row[:2*h], row[:2*h])
	if c.LSTM {
		i, f, g, o, cell, y := row[:h], row[h:2*h], row[2*h:3*h], row[3*h:4*h], row[4*h:5*h], row[5*h:6*h]
		k.Tanh(g, g)
		k.Sigmoid(o, o)
		k.Mul(cell, i, g)
		k.MulAdd(cell, f, last[:h], cell)
		k.Tanh(y, cell)
		k.Mul(y, y, o)
		return
	}
	r, z, n, q, y := row[:h], row[h:2*h], row[2*h:3*h], row[3*h:4*h], row[4*h:5*h]
	k.MulAdd(n, r, q, n)
	k.Tanh(n, n)
	k.Sub(y, last, n)
	k.MulAdd(y, z, y, n)
}

// back is the kernel of recurrentBackOp: for every token the gradients of its sums, i, f, g, o or r, z, n and h' U_n + d_n, from the
// gradients of the hidden states, the run, the mask if there is one, and the transpose of U.
func (c cell[T]) back(dst []T, in [][]T, scratch []T, from, to int) {
	k, n, size, tokens, h := c.kernels(), to-from, c.row(), c.Tokens, c.Units
	grad, run, u := in[0], in[1], in[len(in)-1]
	carried, cells := scratch[:n*h], scratch[n*h:2*n*h] // gradients of h' and of c'
	zeros := scratch[2*n*h:][:c.State()]
	clear(scratch[:2*n*h+len(zeros)])
	for step := tokens - 1; step >= 0; step-- {
		t, before := c.at(step)
		for i := range n {
			at := (from+i)*tokens + t
			row, slopes, last, dh := nth(run, at, size), nth(dst, at, 4*h), zeros, nth(carried, i, h)
			if step > 0 {
				last = nth(run, (from+i)*tokens+before, size)[4*h:]
			}
			k.Add(dh, dh, nth(grad, at, h))
			switch {
			case c.Masked && in[2][at] < 0.5:
				clear(slopes)
			case c.LSTM:
				k.Tanh(slopes[:h], row[4*h:5*h])
				backLSTM(slopes, row, last, dh, nth(cells, i, h))
			default:
				backGRU(slopes, row, last, dh)
			}
		}
		if step == 0 {
			break
		}
		slopes, each := dst[(from*tokens+t)*4*h:], tokens*4*h
		if c.LSTM {
			k.Gemm(false, false, n, h, 4*h, 1, slopes, each, u, h, 1, carried, h)
			continue
		}
		k.Gemm(false, false, n, h, 2*h, 1, slopes, each, u, h, 1, carried, h)
		k.Gemm(false, false, n, h, h, 1, slopes[3*h:], each, u[2*h*h:], h, 1, carried, h)
	}
}

// backLSTM computes the gradients of the sums of a token. The first values of slopes are tanh(c). dh and dc are the gradients of h and c,
// and become those of h' and c', without the part of dh by way of the sums.
func backLSTM[T Float](slopes, row, last, dh, dc []T) {
	h := len(dh)
	i, f, g, o, before := row[:h], row[h:2*h], row[2*h:3*h], row[3*h:4*h], last[:h]
	di, df, dg, do := slopes[:h], slopes[h:2*h], slopes[2*h:3*h], slopes[3*h:4*h]
	dc = dc[:h]
	for j, v := range dh {
		y := di[j]
		do[j] = v * y * o[j] * (1 - o[j])
		v = dc[j] + v*o[j]*(1-y*y)
		di[j] = v * g[j] * i[j] * (1 - i[j])
		df[j] = v * before[j] * f[j] * (1 - f[j])
		dg[j] = v * i[j] * (1 - g[j]*g[j])
		dc[j], dh[j] = v*f[j], 0
	}
}

// backGRU is the same for a GRU.
func backGRU[T Float](slopes, row, last, dh []T) {
	h := len(dh)
	r, z, n, q, before := row[:h], row[h:2*h], row[2*h:3*h], row[3*h:4*h], last[:h]
	dr, dz, dn, dq := slopes[:h], slopes[h:2*h], slopes[2*h:3*h], slopes[3*h:4*h]
	for j, v := range dh {
		dz[j] = v * (before[j] - n[j]) * z[j] * (1 - z[j])
		s := v * (1 - z[j]) * (1 - n[j]*n[j])
		dn[j], dq[j] = s, s*r[j]
		dr[j] = s * q[j] * r[j] * (1 - r[j])
		dh[j] = v * z[j]
	}
}

// place returns the row of the states of earlier tokens, from 1, of the last of those before token i; 0 if there is none.
func (c cell[T]) place(in [][]T, i int) int {
	if len(in) < 7 {
		return 0
	}
	past := len(in[5]) / len(in[6]) / c.State()
	if place := int(in[6][i]); place > 0 && place <= past {
		return i*past + place
	}
	return 0
}
