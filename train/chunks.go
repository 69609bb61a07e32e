package train

import (
	"sync/atomic"

	"tessera/kernel"
	"tessera/optim"
	"tessera/parallel/team"
)

// chunk is a range of one parameter. It is as long as optim.Norm's blocks, so that the norm has the same bits.
type chunk struct {
	of       int // index in moved
	from, to int
	state    [][]float32
	mine     bool // this process updates it
}

// queue is a list of chunks that threads take one after the other.
type queue struct {
	chunks []int
	begun  atomic.Int64
	_      [64]byte // on a separate cache line
}

// next takes a chunk, -1 when none is left.
func (q *queue) next() int {
	if i := int(q.begun.Add(1)) - 1; i < len(q.chunks) {
		return q.chunks[i]
	}
	return -1
}

// deal assigns every thread an equal share of the chunks of each parameter, whose gradient it has probably computed.
func (s *stepper) deal() {
	s.queues = make([]queue, s.team.Threads())
	for first := 0; first < len(s.chunks); {
		n := 1 // chunks of this parameter
		for first+n < len(s.chunks) && s.chunks[first+n].of == s.chunks[first].of {
			n++
		}
		for thread := range s.queues {
			from, to := s.share(thread, n)
			for i := first + from; i < first+to; i++ {
				if s.chunks[i].mine {
					s.queues[thread].chunks = append(s.queues[thread].chunks, i)
				}
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
	s.drain(thread, &s.queues[thread])
	if s.beside != nil {
		s.beside(thread)
	}
	for i := 1; i < len(s.queues); i++ { // help threads that are delayed
		s.drain(thread, &s.queues[(thread+i)%len(s.queues)])
	}
}

// drain updates the remaining chunks of a queue and prefetches each chunk during the update of the previous one.
func (s *stepper) drain(thread int, q *queue) {
	i := q.next()
	for i >= 0 {
		after := q.next()
		if after >= 0 && s.large {
			s.ask(&s.chunks[after])
		}
		s.move(thread, &s.chunks[i])
		i = after
	}
}

// large is the number of bytes of weights, gradients and state above which they do not stay in the caches between steps.
const large = 4 << 20

// ask prefetches the memory that the update of a chunk writes: in a large model it is not in this processor's cache.
func (s *stepper) ask(c *chunk) {
	m := s.moved[c.of]
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
	m, g := s.moved[c.of], s.gradients[c.of]
	if g == nil {
		return
	}
	g = g[c.from:c.to]
	if s.factor != 1 {
		g = s.scaled(thread, g)
	}
	w := m.Data[c.from:c.to]
	s.apply(w, g, c.state)
	if !finite(w) {
		s.bad[thread] = true
	}
	for _, p := range m.fused {
		p.Project(w, m.Shape)
	}
	s.pass(m, w, c.from)
	if len(m.whole) == 0 {
		s.tell(thread, m, w, c.from)
	}
}

// apply calls the optimizer.
func (s *stepper) apply(w, g []float32, state [][]float32) {
	defer namePart("optimizer", s.rule)
	s.optimizer.Update(w, g, state, s.rate, s.step)
}

// scaled returns the clipped gradient in the thread's own memory.
func (s *stepper) scaled(thread int, g []float32) []float32 {
	out := s.scratch[thread][:len(g)]
	factor := float32(s.factor)
	for i, v := range g {
		out[i] = v * factor
	}
	return out
}

func (s *stepper) projectWhole(thread int) {
	for i := thread; i < len(s.projected); i += s.team.Threads() {
		m := s.projected[i]
		for _, c := range m.whole {
			c.Project(m.Data, m.Shape)
		}
		s.pass(m, m.Data, 0)
		s.tell(thread, m, m.Data, 0)
	}
}
