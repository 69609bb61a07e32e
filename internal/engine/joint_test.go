package engine

import (
	"slices"
	"sync"
	"testing"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

type countedOp struct{ Joint bool }

// A thread computes all its units of a joint op in one call, and units of other ops a few at a time with the ops that read them.
func TestAThreadCallsAJointOpOnce(t *testing.T) {
	const units, threads = 64, 2
	for _, joint := range []bool{false, true} {
		var lock sync.Mutex
		var sizes []int
		kernel := func(dst []float64, in [][]float64, _ []float64, from, to int) {
			lock.Lock()
			sizes = append(sizes, to-from)
			lock.Unlock()
			copy(dst[from*4096:to*4096], in[0][from*4096:])
		}
		p := newProgram(t, tensor.Float64)
		x := p.input("x", units, 4096)
		y := must(ops.Unitwise{Spec: countedOp{joint}, Out: []int{units, 4096}, Units: units, ByUnit: []bool{true}, Joint: joint, Work: 1e9,
			Float64: kernel, Float32: func([]float32, [][]float32, []float32, int, int) {}}.Apply(x))
		p.tap("y", must(G.Tanh(must(G.Square(y)))))
		members := team.New(threads)
		plan, err := compileProgram[float64](p.Program, members)
		fatal.If(t, err)
		fatal.If(t, plan.Run())
		members.Close()
		expect.Equal(t, slices.Equal(sizes, []int{units / threads, units / threads}), joint, "joint", joint, "calls for", sizes, "units")
	}
}
