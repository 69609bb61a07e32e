package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tessera/hooks"
	"tessera/metrics"
	"tessera/parallel/collective"
)

// DefaultCheckWeights is the number of steps between two comparisons of the weights of all processes.
const DefaultCheckWeights = 100

// Unequal is the error of processes whose weights differ, which are equal by construction: a processor or a memory computes
// wrongly, or a user-defined part depends on something else than its arguments.
type Unequal struct {
	Ranks []int // whose weights differ from those of most processes
	Step  int
}

// Error implements error.
func (e *Unequal) Error() string {
	return fmt.Sprintf("step %d: the weights of rank %s differ from those of the other processes; the last checkpoint is kept: check the machine of that rank, then resume",
		e.Step, listed(e.Ranks))
}

// listed is a list of ranks in words.
func listed(ranks []int) string {
	text := ""
	for i, r := range ranks {
		if i > 0 {
			text += " and "
		}
		text += fmt.Sprint(r)
	}
	return text
}

// processes are those that train one run together. The zero value is one process alone, for which every method is trivial.
type processes struct {
	group collective.Group // nil for one process alone
	check int              // steps between two comparisons of the weights; < 1: never

	flag, asked        [1]uint64
	flagValues, asking any    // flag and asked, stored once: calls do not allocate
	halt               uint64 // why they stop
	pending            collective.Pending
}

func (o Options) processes() *processes {
	p := &processes{group: o.Group, check: o.CheckWeights}
	if p.check == 0 {
		p.check = DefaultCheckWeights
	}
	p.flagValues, p.asking = p.flag[:], p.asked[:]
	return p
}

// leads reports whether this process writes the files and reports.
func (p *processes) leads() bool { return p.group == nil || p.group.Rank() == 0 }

// size is the number of processes.
func (p *processes) size() int {
	if p.group == nil {
		return 1
	}
	return p.group.Size()
}

// any reports whether one of the processes says yes.
func (p *processes) any(yes bool) (bool, error) {
	if p.group == nil {
		return yes, nil
	}
	p.flag[0] = 0
	if yes {
		p.flag[0] = 1
	}
	err := p.group.AllReduce(collective.Max, p.flagValues)
	return p.flag[0] != 0, err
}

// launcher is the command that starts as many processes, "" for one alone.
func (p *processes) launcher() string {
	if p.group == nil {
		return ""
	}
	if known, ok := p.group.(interface{ Again() string }); ok {
		return known.Again()
	}
	return fmt.Sprintf("mpirun -n %d", p.size())
}

// ask begins to ask all processes whether their contexts are done; answer ends that. Meanwhile they compute a step.
func (p *processes) ask(ctx context.Context) (err error) {
	if p.group == nil {
		return nil
	}
	p.asked[0] = reason(ctx)
	p.pending, err = p.group.Start(collective.Max, p.asking)
	return err
}

// answer reports whether a context was done when ask was called.
func (p *processes) answer(ctx context.Context) (bool, error) {
	if p.group == nil {
		return ctx.Err() != nil, nil
	}
	if p.pending == nil { // no step yet
		return false, nil
	}
	err := p.pending.Wait()
	p.pending = nil
	p.halt = p.asked[0]
	return p.halt != goesOn, err
}

// wait waits for all processes, also for one that writes a checkpoint.
func (p *processes) wait() error {
	if p.group == nil {
		return nil
	}
	return p.group.Barrier()
}

// share sends a text of rank 0 to all.
func (p *processes) share(text []byte) ([]byte, error) {
	if p.group == nil {
		return text, nil
	}
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
	if err := p.group.Broadcast(0, length[:]); err != nil {
		return nil, err
	}
	if !p.leads() {
		text = make([]byte, binary.LittleEndian.Uint64(length[:]))
	}
	return text, p.group.Broadcast(0, text)
}

// shareValues sends measured numbers of rank 0 to all: processors may differ in their last bits, decisions must not.
func (p *processes) shareValues(values metrics.Values) error {
	if p.group == nil {
		return nil
	}
	bits := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(bits[8*i:], math.Float64bits(v.Number))
	}
	if err := p.group.Broadcast(0, bits); err != nil {
		return err
	}
	for i := range values {
		values[i].Number = math.Float64frombits(binary.LittleEndian.Uint64(bits[8*i:]))
	}
	return nil
}

// shareWeights sends the parameters of rank 0 to all.
func (p *processes) shareWeights(list []*hooks.Parameter) error {
	if p.group == nil {
		return nil
	}
	for _, q := range list {
		bits := make([]byte, 4*len(q.Data))
		for i, v := range q.Data {
			binary.LittleEndian.PutUint32(bits[4*i:], math.Float32bits(v))
		}
		if err := p.group.Broadcast(0, bits); err != nil {
			return err
		}
		for i := range q.Data {
			q.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(bits[4*i:]))
		}
	}
	return nil
}

// hashes gathers one number of every process.
func (p *processes) hashes(mine uint64) ([]uint64, error) {
	counts := slices.Repeat([]int{1}, p.size())
	all := make([]uint64, p.size())
	return all, p.group.AllGather([]uint64{mine}, counts, all)
}

// due reports whether the weights are compared after a step.
func (p *processes) due(step int) bool { return p.group != nil && p.check > 0 && step%p.check == 0 }

// compareWeights returns an [*Unequal] unless all processes have the same weights.
func (p *processes) compareWeights(list []*hooks.Parameter, step int) error {
	if p.group == nil {
		return nil
	}
	h := uint64(fnvOffset)
	for _, q := range list {
		h = hashed(h, q.Data)
	}
	all, err := p.hashes(h)
	if err != nil {
		return err
	}
	if odd := outliers(all); len(odd) > 0 {
		return &Unequal{Ranks: odd, Step: step}
	}
	return nil
}

// outliers are the indices of the values other than the most frequent one; of equally frequent ones, that of the first index.
func outliers(values []uint64) (odd []int) {
	count := map[uint64]int{}
	for _, v := range values {
		count[v]++
	}
	usual := values[0]
	for _, v := range values {
		if count[v] > count[usual] {
			usual = v
		}
	}
	for i, v := range values {
		if v != usual {
			odd = append(odd, i)
		}
	}
	return odd
}

// The constants of the FNV-1a hash of 64 bits, here of words of 32 bits. Every step is a bijection: two arrays that differ in one
// value never have the same hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashed(h uint64, values []float32) uint64 {
	for _, v := range values {
		h = (h ^ uint64(math.Float32bits(v))) * fnvPrime
	}
	return h
}
