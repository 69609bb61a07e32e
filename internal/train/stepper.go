package train

import (
	"math"
	"slices"
	"sync/atomic"

	"tessera/config"
	"tessera/constraints"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/engine/kernel"
	"tessera/internal/hugepages"
	"tessera/internal/parallel/team"
	"tessera/internal/train/checkpoint"
	"tessera/optim"
)

// stepper updates and projects the trainable parameters: clip, optimizer, constraints.
//
// Parameters are divided into chunks. While a chunk is in its cache, a thread applies all elementwise operations: the update,
// the check for non-finite values and the elementwise constraints; and constraints on rows, if its chunks consist of rows.
// Constraints on complete parameters follow. The chunks and the order of all sums are fixed: the result is bitwise equal for any number of threads.
type stepper struct {
	players   []*player // players, with the rules for their parameters
	team      *team.Team
	processes *processes // processes that each update a part of every parameter; nil: this process updates all
	trainable []*trainable
	chunks    []chunk
	wholes    []*trainable  // parameters that a rule updates as a whole
	begun     atomic.Int64  // number of wholes that a thread has started in this step
	projected []*trainable  // parameters with constraints on complete parameters
	squares   []float64     // sum of the gradient's squares, per chunk
	scratch   [][]float32   // clipped gradient, per thread, because two parameters may share an unclipped one
	states    [][][]float32 // parts of the states of a rule, per thread
	bad       []bool        // a non-finite value was found, per thread
	panicked  []error       // panics of user-defined code, per thread
	lost      error         // error of the communication with other processes in this step
	large     bool          // the weights do not fit into the caches
	queues    []queue       // chunks of each thread; an idle thread takes chunks of others

	views     []*hooks.Parameter // all parameters of the model, as hooks see them
	pointwise []func(p *hooks.Parameter, values []float32, from int)
	watching  []func(p *hooks.Parameter, values []float32, from int, scratch []float32)

	gradients [][]float32 // gradients of this step
	touched   [][][]int32 // lists of the rows of each gradient that may differ from 0, nil if they are not known; nil: none is known

	beside func(thread int) // called in the same pass as the update; may be nil

	sum, update, project, follow func(thread int) // stored because each method value allocates
}

// player updates its parameters by its own rule.
type player struct {
	config.Moving
	rule     optim.Rule // update rule; nil for a full-batch optimizer, which sets the parameters
	clipNorm float64

	rate   float64 // learning rate in this step
	step   int     // step counter of the rule
	factor float64 // clipping factor of the gradients
}

type trainable struct {
	*hooks.Parameter
	index   int         // index in stepper.trainable
	by      *player     // the player that updates it
	whole   optim.Whole // the rule if it updates the parameter as a whole; else nil
	clip    []float32   // memory for its clipped gradient in that case
	few     bool        // this step updates some rows alone; see [stepper.sparse]
	follows [][]float32 // moving averages of hooks

	from, to  int       // range of the elements that this process updates; it has the optimizer's state of this range only
	gathering gathering // memory for gathering the elements of all processes if the optimizer is sharded
	// Constraints keep their declared order: pointwise constraints before the first other one are fused with the update.
	fused   []constraints.Constraint
	unfused []constraints.Constraint
	inRows  bool    // chunks are whole rows, to which the unfused constraints are applied
	shares  []share // parts that the threads project, by thread; nil: one thread projects all
}

// newStepper returns the stepper of a model. The optimizer's state is all zero and sharded among these processes; nil
// disables sharding.
func newStepper(m *graph.Model, team *team.Team, among *processes) *stepper {
	s := &stepper{team: team, processes: among}
	for _, p := range m.Spec.AllPlayers() {
		rule, _ := p.Optimizer.Optimizer.(optim.Rule)
		s.players = append(s.players, &player{Moving: p, rule: rule, clipNorm: p.Optimizer.ClipNorm})
	}
	for i, p := range m.Parameters {
		view := &hooks.Parameter{Index: i, Path: p.Path, Shape: p.Shape, Data: p.Data, Trainable: p.Trainable, Frozen: p.Frozen,
			Started: m.Spec.Start != nil && config.MatchPath(m.Spec.Start.On, p.Path)}
		if s.views = append(s.views, view); p.Trainable {
			s.add(view, m.Spec.Constraints, m.Layout)
		}
	}
	bytes := 0
	for _, m := range s.trainable {
		bytes += 4 * len(m.Data) * (2 + len(m.State))
	}
	s.large = bytes > large
	s.squares = make([]float64, len(s.chunks))
	s.bad = make([]bool, team.Threads())
	s.states = make([][][]float32, team.Threads())
	s.panicked = make([]error, team.Threads())
	s.scratch = make([][]float32, team.Threads())
	for i := range s.scratch {
		s.scratch[i] = make([]float32, optim.NormBlock)
	}
	s.deal()
	s.sum, s.update, s.project, s.follow = s.guarded(s.sumChunks), s.guarded(s.updateChunks), s.guarded(s.projectWhole), s.guarded(s.followOthers)
	return s
}

// guarded turns a panic into an error: optimizers, constraints and hooks may be user-defined.
func (s *stepper) guarded(work func(thread int)) func(thread int) {
	return func(thread int) {
		if err := guard("the update of the parameters", func() error { work(thread); return nil }); err != nil {
			s.panicked[thread] = err
		}
	}
}

// Failed returns the error of the last step, nil if the step is complete. If several threads panicked, it returns the first
// error.
func (s *stepper) Failed() error {
	for _, err := range s.panicked {
		if err != nil {
			return err
		}
	}
	return s.lost
}

// named is a constraint that adds its name to its panics.
type named struct {
	constraints.Constraint
	name string
}

func (n named) Project(w []float32, shape []int) {
	defer namePart("constraint", n.name)
	n.Constraint.Project(w, shape)
}

// add divides a parameter into chunks.
func (s *stepper) add(p *hooks.Parameter, declared []config.Constraint, layout *config.Layout) {
	m := &trainable{Parameter: p, to: len(p.Data), index: len(s.trainable)}
	m.by = s.players[slices.IndexFunc(s.players, func(one *player) bool { return one.Moves(p.Path) })] // each parameter has one
	if s.processes != nil {
		s.divide(m)
	}
	if m.by.rule != nil {
		lengths := slices.Repeat([]int{m.to - m.from}, m.by.rule.States())
		if whole, ok := m.by.rule.(optim.Whole); ok && whole.Takes(p.Shape) {
			m.whole, lengths = whole, whole.WholeStates(p.Shape)
			s.wholes = append(s.wholes, m)
			if m.by.clipNorm > 0 {
				m.clip = make([]float32, len(p.Data))
			}
		}
		for _, n := range lengths {
			p.State = append(p.State, hugepages.Make[float32](n))
		}
	}
	byRow := len(p.Shape) == 2
	for _, c := range declared {
		asIs, swapped := constrains(c.On, p.Path, layout)
		_, pointwise := c.Constraint.(constraints.Pointwise)
		_, rowWise := c.Constraint.(constraints.RowWise)
		c.Constraint = named{c.Constraint, c.Kind}
		switch {
		case !asIs && !swapped:
		case pointwise && len(m.unfused) == 0:
			m.fused = append(m.fused, c.Constraint)
		case pointwise || asIs && len(p.Shape) < 3:
			m.unfused = append(m.unfused, c.Constraint)
			byRow = byRow && (pointwise || rowWise)
		default:
			m.unfused = append(m.unfused, &transposed{of: c.Constraint})
			byRow = false
		}
	}
	length := optim.NormBlock
	m.inRows = byRow && len(m.unfused) > 0 && p.Shape[1] <= length && m.whole == nil && m.by.clipNorm == 0 && s.processes == nil
	if m.inRows {
		length -= length % p.Shape[1]
	}
	for from := 0; from < len(p.Data); from += length {
		c := chunk{of: len(s.trainable), from: from, to: min(from+length, len(p.Data))}
		if m.inRows {
			c.shape = []int{(c.to - c.from) / p.Shape[1], p.Shape[1]}
		}
		if m.whole == nil && c.from >= m.from && c.to <= m.to {
			c.mine = true
			for _, values := range p.State {
				c.state = append(c.state, values[c.from-m.from:c.to-m.from])
			}
		}
		s.chunks = append(s.chunks, c)
	}
	for thread := 0; byRow && !m.inRows && thread < s.team.Threads(); thread++ {
		from, to := s.share(thread, p.Shape[0])
		m.shares = append(m.shares, share{from * p.Shape[1], to * p.Shape[1], []int{to - from, p.Shape[1]}})
	}
	if len(m.unfused) > 0 && !m.inRows {
		s.projected = append(s.projected, m)
	}
	s.trainable = append(s.trainable, m)
}

// surround adds the elementwise functions of the hooks to every step.
func (s *stepper) surround(h hookList) error {
	return h.each(func(a *attached) error {
		if project := a.Active.Project; project != nil {
			s.pointwise = append(s.pointwise, func(p *hooks.Parameter, values []float32, from int) {
				defer namePart("hook", a.name)
				project(p, values, from)
			})
		}
		if update := a.AfterUpdate; update != nil {
			s.watching = append(s.watching, func(p *hooks.Parameter, values []float32, from int, scratch []float32) {
				defer namePart("hook", a.name)
				update(p, values, from, scratch)
			})
		}
		for _, m := range s.trainable {
			if values := a.Average(m.Parameter); values != nil {
				m.follows = append(m.follows, values)
			}
		}
		return nil
	})
}

// Project applies all constraints, then the projections of hooks, to every parameter.
func (s *stepper) Project() {
	for _, m := range s.trainable {
		s.projectValues(m, m.Data)
	}
}

func (s *stepper) projectOne(p *hooks.Parameter) {
	for _, m := range s.trainable {
		if m.Parameter == p {
			s.projectValues(m, m.Data)
		}
	}
}

// projectTwin projects the parameters of a copy of the model.
func (s *stepper) projectTwin(twin *graph.Model) error {
	return guard("a constraint or a hook", func() error {
		for _, m := range s.trainable {
			s.projectValues(m, twin.Parameters[m.Index].Data)
		}
		return nil
	})
}

func (s *stepper) projectValues(m *trainable, values []float32) {
	m.constrain(values)
	s.pass(m, values, 0)
}

// constrain applies the constraints on a parameter to values of the same shape.
func (m *trainable) constrain(values []float32) {
	for _, c := range m.fused {
		c.Project(values, m.Shape)
	}
	for _, c := range m.unfused {
		c.Project(values, m.Shape)
	}
}

// pass applies the projections of hooks to a range of a parameter's values.
func (s *stepper) pass(m *trainable, values []float32, from int) {
	for _, project := range s.pointwise {
		project(m.Parameter, values, from)
	}
}

// afterUpdate calls the AfterUpdate functions of hooks for a range of a parameter's values after the step.
func (s *stepper) afterUpdate(thread int, m *trainable, values []float32, from int) {
	for _, update := range s.watching {
		update(m.Parameter, values, from, s.scratch[thread])
	}
}

// Step updates all players with the learning rate rate, as step number step of their rules; see [stepper.advance].
func (s *stepper) Step(gradients [][]float32, rate float64, step int) bool {
	for _, p := range s.players {
		p.rate, p.step = rate, step
	}
	return s.advance(gradients)
}

// advance updates every parameter by its gradient and projects it, with the rates and steps of the players. gradients[i]
// belongs to trainable[i]; a parameter with a nil gradient does not change. It reports whether all updated values were finite
// before the projection, which could hide a non-finite value. After a panic the parameters are undefined, and
// [stepper.Failed] returns the error.
func (s *stepper) advance(gradients [][]float32) bool {
	s.gradients = gradients
	s.clip()
	for _, m := range s.trainable {
		m.few = s.sparse(m)
	}
	s.begun.Store(0)
	clear(s.bad)
	for i := range s.queues {
		s.queues[i].begun.Store(0)
	}
	s.team.Do(s.update)
	sound := !slices.Contains(s.bad, true)
	if s.processes != nil {
		if sound, s.lost = s.exchange(sound); s.lost != nil {
			return false
		}
	}
	if len(s.projected) > 0 {
		s.team.Do(s.project)
	}
	return sound
}

// clip computes the clipping factor of each player from the global norm of its gradients.
func (s *stepper) clip() {
	if slices.ContainsFunc(s.players, func(p *player) bool { return p.clipNorm > 0 }) {
		s.team.Do(s.sum)
	}
	for _, p := range s.players {
		p.factor = 1
		if p.clipNorm == 0 {
			continue
		}
		total := 0.0
		for i, square := range s.squares { // in the order of optim.Norm
			if s.trainable[s.chunks[i].of].by == p {
				total += square
			}
		}
		p.factor = optim.ClipFactor(math.Sqrt(total), p.clipNorm)
	}
}

// chunk is a range of one parameter. If gradients are clipped, its length is that of optim.Norm's blocks, so that the norm has the same bits.
type chunk struct {
	of       int // index in trainable
	from, to int
	shape    []int // if it consists of rows
	state    [][]float32
	mine     bool // updated by this process
	behind   int  // place in its queue behind the last chunk of the parameter
}

// queue is a list of chunks that threads take one after the other.
type queue struct {
	chunks []int
	begun  atomic.Int64
	_      [64]byte // padding to a separate cache line
}

// next takes a chunk from the queue and returns its index, -1 if none is left. Chunks of parameters of which some rows are updated alone are left out,
// all at once: a large table has thousands.
func (s *stepper) next(q *queue) int {
	for i := int(q.begun.Add(1)) - 1; i < len(q.chunks); i = int(q.begun.Add(1)) - 1 {
		c := &s.chunks[q.chunks[i]]
		if !s.trainable[c.of].few {
			return q.chunks[i]
		}
		q.begun.CompareAndSwap(int64(i+1), int64(c.behind))
	}
	return -1
}

// deal assigns every thread an equal share of the chunks of each parameter. The thread has probably computed the gradient of
// this share.
func (s *stepper) deal() {
	s.queues = make([]queue, s.team.Threads())
	for first := 0; first < len(s.chunks); {
		n := 1 // chunks of this parameter
		for first+n < len(s.chunks) && s.chunks[first+n].of == s.chunks[first].of {
			n++
		}
		for thread := range s.queues {
			from, to := s.share(thread, n)
			q := &s.queues[thread]
			for i := first + from; i < first+to; i++ {
				if s.chunks[i].mine {
					q.chunks = append(q.chunks, i)
				}
			}
			for i := first + from; i < first+to; i++ {
				s.chunks[i].behind = len(q.chunks)
			}
		}
		first += n
	}
}

// share returns the range of n items that a thread works on.
func (s *stepper) share(thread, n int) (from, to int) {
	return team.EvenShare(n, thread, s.team.Threads())
}

func (s *stepper) sumChunks(thread int) {
	from, to := s.share(thread, len(s.chunks))
	for i := from; i < to; i++ {
		c := &s.chunks[i]
		s.squares[i] = 0
		if g := s.gradients[c.of]; g != nil {
			s.squares[i] = optim.SquareSum(g[c.from:c.to])
		}
	}
}

func (s *stepper) updateChunks(thread int) {
	for i, lists := range s.touched {
		if m := s.trainable[i]; m.few {
			s.moveRows(thread, m, lists)
		}
	}
	s.drain(thread, &s.queues[thread])
	if s.beside != nil {
		s.beside(thread)
	}
	for i := 1; i < len(s.queues); i++ { // help threads that are delayed
		s.drain(thread, &s.queues[(thread+i)%len(s.queues)])
	}
	for i := int(s.begun.Add(1)) - 1; i < len(s.wholes); i = int(s.begun.Add(1)) - 1 {
		s.moveWhole(thread, s.wholes[i])
	}
}

// sparse reports whether only some rows of a parameter are updated: nothing would change the others.
func (s *stepper) sparse(m *trainable) bool {
	if m.index >= len(s.touched) || s.touched[m.index] == nil || s.processes != nil || m.whole != nil || len(m.follows)+len(m.fused)+len(m.unfused)+
		len(s.pointwise)+len(s.watching) > 0 {
		return false
	}
	r, ok := m.by.rule.(optim.Resting)
	return ok && r.Rests()
}

// moveRows updates a thread's share of the rows of a parameter whose gradient may differ from 0. All elements of the others rest.
func (s *stepper) moveRows(thread int, m *trainable, lists [][]int32) {
	all, width := 0, m.Shape[1]
	for _, rows := range lists {
		all += len(rows)
	}
	from, to := s.share(thread, all)
	state := slices.Grow(s.states[thread][:0], len(m.State))[:len(m.State)]
	s.states[thread] = state
	for _, rows := range lists {
		for _, row := range rows[min(max(from, 0), len(rows)):min(max(to, 0), len(rows))] {
			for first, end := int(row)*width, (int(row)+1)*width; first < end; first += optim.NormBlock {
				last := min(first+optim.NormBlock, end)
				for k, values := range m.State {
					state[k] = values[first:last]
				}
				g := s.gradients[m.index][first:last]
				if m.by.factor != 1 {
					g = scaled(s.scratch[thread], g, m.by.factor)
				}
				m.by.apply(m.Data[first:last], g, state)
				if !finite(m.Data[first:last]) {
					s.bad[thread] = true
				}
			}
		}
		from, to = from-len(rows), to-len(rows)
	}
}

// moveWhole updates a parameter as a whole and projects it.
func (s *stepper) moveWhole(thread int, m *trainable) {
	g := s.gradients[m.index]
	if g == nil {
		return
	}
	if m.by.factor != 1 {
		g = scaled(m.clip, g, m.by.factor)
	}
	s.applyWhole(m, g)
	if !finite(m.Data) {
		s.bad[thread] = true
	}
	for _, p := range m.fused {
		p.Project(m.Data, m.Shape)
	}
	s.pass(m, m.Data, 0)
	if len(m.unfused) > 0 {
		return
	}
	for from := 0; from < len(m.Data); from += optim.NormBlock {
		s.afterUpdate(thread, m, m.Data[from:min(from+optim.NormBlock, len(m.Data))], from)
	}
}

// applyWhole calls the optimizer for a whole parameter.
func (s *stepper) applyWhole(m *trainable, g []float32) {
	defer namePart("optimizer", m.by.Optimizer.Kind)
	m.whole.UpdateWhole(m.Data, g, m.Shape, m.State, m.by.rate, m.by.step)
}

// drain updates the remaining chunks of a queue. It prefetches each chunk during the update of the previous one.
func (s *stepper) drain(thread int, q *queue) {
	i := s.next(q)
	for i >= 0 {
		after := s.next(q)
		if after >= 0 && s.large {
			s.ask(&s.chunks[after])
		}
		s.move(thread, &s.chunks[i])
		i = after
	}
}

// large is the size in bytes of weights, gradients and state above which they do not stay in the caches between steps.
const large = 4 << 20

// ask prefetches the memory that the update of a chunk writes. In a large model this memory is not in the processor's cache.
func (s *stepper) ask(c *chunk) {
	m := s.trainable[c.of]
	kernel.PrefetchOwned(m.Data[c.from:c.to])
	for _, values := range m.follows {
		kernel.PrefetchOwned(values[c.from:c.to])
	}
	for _, values := range c.state {
		kernel.PrefetchOwned(values)
	}
}

// move updates one chunk and projects it.
func (s *stepper) move(thread int, c *chunk) {
	m, g := s.trainable[c.of], s.gradients[c.of]
	w := m.Data[c.from:c.to]
	if g != nil {
		g = g[c.from:c.to]
		if m.by.factor != 1 {
			g = scaled(s.scratch[thread], g, m.by.factor)
		}
		m.by.apply(w, g, c.state)
		if !finite(w) {
			s.bad[thread] = true
		}
		for _, p := range m.fused {
			p.Project(w, m.Shape)
		}
		s.pass(m, w, c.from)
	}
	switch {
	case m.inRows:
		s.finish(thread, m, share{c.from, c.to, c.shape})
	case g != nil && len(m.unfused) == 0:
		s.afterUpdate(thread, m, w, c.from)
	}
}

func (p *player) apply(w, g []float32, state [][]float32) {
	defer namePart("optimizer", p.Optimizer.Kind)
	p.rule.Update(w, g, state, p.rate, p.step)
}

// scaled writes the product of g and by into out and returns it.
func scaled(out, g []float32, by float64) []float32 {
	out = out[:len(g)]
	factor := float32(by)
	for i, v := range g {
		out[i] = v * factor
	}
	return out
}

func (s *stepper) projectWhole(thread int) {
	for i, m := range s.projected {
		part := share{0, len(m.Data), m.Shape}
		switch {
		case m.shares != nil:
			part = m.shares[thread]
		case i%s.team.Threads() != thread:
			continue
		}
		s.finish(thread, m, part)
	}
}

// finish applies the constraints that are not fused with the update, and the hooks behind them.
func (s *stepper) finish(thread int, m *trainable, part share) {
	w := m.Data[part.from:part.to]
	for _, c := range m.unfused {
		c.Project(w, part.shape)
	}
	s.pass(m, w, part.from)
	s.afterUpdate(thread, m, w, part.from)
}

// share is a part of a parameter: whole rows.
type share struct {
	from, to int
	shape    []int
}

// constrains reports whether a constraint on glob applies to the parameter at path: to the parameter itself, or to its
// transpose if the glob matches a tied decoder's weight.
func constrains(glob, path string, layout *config.Layout) (asIs, swapped bool) {
	matched := layout.MatchParameters(glob)
	for _, p := range layout.Parameters() {
		if slices.Contains(matched, p.Path) {
			asIs = asIs || p.Path == path || p.Of == path && !p.Transposed
			swapped = swapped || p.Of == path && p.Transposed
		}
	}
	return asIs, swapped
}

// transposed applies a constraint to the transpose of a parameter, viewed as a matrix whose columns are along its last axis:
// to the atoms of a tied decoder, which are the columns of the encoder's weight, and to the filters of a convolution.
type transposed struct {
	of   constraints.Constraint
	rows []float32 // the transpose
}

func (t *transposed) Project(w []float32, shape []int) {
	rows, turned := t.turn(w, shape)
	t.of.Project(rows, turned)
	m := shape[len(shape)-1]
	n := len(w) / m
	for i := range w {
		w[i] = rows[i%m*n+i/m]
	}
}

func (t *transposed) Violation(w []float32, shape []int) float64 {
	return t.of.Violation(t.turn(w, shape))
}

// turn returns the transpose and its shape; both are valid until the next call.
func (t *transposed) turn(w []float32, shape []int) ([]float32, []int) {
	m := shape[len(shape)-1]
	n := len(w) / m
	if t.rows == nil {
		t.rows = make([]float32, len(w))
	}
	for i, v := range w {
		t.rows[i%m*n+i/m] = v
	}
	return t.rows, []int{m, n}
}

// gathering contains the memory for gathering the parts of one parameter from all processes.
type gathering struct {
	counts    []int     // number of elements of each process
	part      []float32 // elements of this process
	mine, all any       // part and the parameter as interfaces, stored because conversions allocate
}

// divide assigns every process an equal number of a parameter's blocks; a process stores the optimizer's state only for its
// own blocks (ZeRO stage 1). The update, the projections fused with it and the norm of the gradient are always computed block
// by block: the parameters have the same bits as without sharding.
//
// Source: Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, 2020.
func (s *stepper) divide(m *trainable) {
	blocks := (len(m.Data) + optim.NormBlock - 1) / optim.NormBlock
	size := s.processes.size()
	limits := make([]int, size+1)
	for r := range size {
		_, to := team.EvenShare(blocks, r, size)
		limits[r+1] = min(to*optim.NormBlock, len(m.Data))
	}
	g := &m.gathering
	for r := range size {
		g.counts = append(g.counts, limits[r+1]-limits[r])
	}
	rank := s.processes.group.Rank()
	m.from, m.to = limits[rank], limits[rank+1]
	g.part = make([]float32, m.to-m.from)
	g.mine, g.all = g.part, m.Data
}

// gather collects the parts of all processes in all, which has the parameter's shape.
func (s *stepper) gather(m *trainable, part []float32, all any) error {
	copy(m.gathering.part, part)
	return s.processes.group.AllGather(m.gathering.mine, m.gathering.counts, all)
}

// exchange gives every process the updated parameters of all, and calls the AfterUpdate functions of hooks for those that
// other processes updated. It reports whether all updates were sound.
func (s *stepper) exchange(sound bool) (bool, error) {
	bad, err := s.processes.any(!sound)
	if err != nil || bad {
		return !bad, err
	}
	for i, m := range s.trainable {
		if s.gradients[i] == nil {
			continue
		}
		if err := s.gather(m, m.Data[m.from:m.to], m.gathering.all); err != nil {
			return false, err
		}
	}
	if len(s.watching) > 0 {
		s.team.Do(s.follow)
	}
	return true, nil
}

// followOthers calls the AfterUpdate functions for this thread's share of the chunks that other processes updated.
func (s *stepper) followOthers(thread int) {
	from, to := s.share(thread, len(s.chunks))
	for i := from; i < to; i++ {
		c := &s.chunks[i]
		m := s.trainable[c.of]
		if !c.mine && len(m.unfused) == 0 && s.gradients[c.of] != nil {
			s.afterUpdate(thread, m, m.Data[c.from:c.to], c.from)
		}
	}
}

// stateShape returns the shape of state i in a checkpoint: that of the parameter, or that of a vector if a whole rule keeps another length.
func (m *trainable) stateShape(i int) []int {
	if n := len(m.State[i]); m.whole != nil && n != len(m.Data) {
		return []int{n}
	}
	return m.Shape
}

// saveState adds the optimizer's state of all processes to a checkpoint.
func (s *stepper) saveState(state *checkpoint.File) error {
	for _, m := range s.trainable {
		for i, values := range m.State {
			if s.processes != nil && m.whole == nil {
				all := make([]float32, len(m.Data))
				if err := s.gather(m, values, all); err != nil {
					return err
				}
				values = all
			}
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: optimizerName(m, i), Shape: m.stateShape(i), Data: values})
		}
	}
	return nil
}

// restoreState loads this process's part of the optimizer's state.
func (s *stepper) restoreState(from *stored) error {
	for _, m := range s.trainable {
		for i, values := range m.State {
			t, ok := from.file.Tensor(optimizerName(m, i))
			if shape := m.stateShape(i); !ok || !slices.Equal(t.Shape, shape) { // load names the problem
				return load(from.path, from.file, optimizerName(m, i), shape, values)
			}
			if m.whole != nil {
				copy(values, t.Data)
			} else {
				copy(values, t.Data[m.from:m.to])
			}
		}
	}
	return nil
}
