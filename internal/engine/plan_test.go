package engine

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

// trained returns a shipped model and its training plan, with images bound.
func trained(t *testing.T, name string, batch int, team *team.Team) (*graph.Model, *Plan[float32]) {
	t.Helper()
	for _, spec := range shipped(t) {
		if spec.Name != name {
			continue
		}
		m := built(t, spec)
		p, err := m.Program(graph.Request{Batch: batch, Training: true})
		fatal.If(t, err)
		plan, err := compileProgram[float32](p, team)
		fatal.If(t, err)
		images := lists.Of(batch*m.Pixels(), func(i int) float32 { return float32(i*i%256) / 255 })
		fatal.If(t, plan.Bind(0, images))
		return m, plan
	}
	t.Fatalf("models.toml has no %q", name)
	return nil, nil
}

// results runs a plan and returns all its results, concatenated. It ends the test on an error.
func results(t *testing.T, plan *Plan[float32]) []float32 {
	t.Helper()
	all, err := computed(plan)
	fatal.If(t, err)
	return all
}

// computed is like results but returns the error. Goroutines other than that of the test must not end the test.
func computed(plan *Plan[float32]) ([]float32, error) {
	if err := plan.Run(); err != nil {
		return nil, err
	}
	var all []float32
	for i := range plan.program.Taps {
		all = append(all, plan.Tap(i)...)
	}
	for i := range plan.program.Parameters {
		all = append(all, plan.Gradient(i)...)
	}
	return all, nil
}

func TestNoShippedShallowModelAllocatesInAStep(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	team := team.New(2)
	defer team.Close()
	for _, spec := range shipped(t) {
		if !strings.HasPrefix(spec.Name, "shallow") {
			continue
		}
		_, plan := trained(t, spec.Name, 32, team)
		expect.Equal(t, testing.AllocsPerRun(10, func() {
			fatal.If(t, plan.Run())
		}), 0, spec.Name)
	}
}

func TestRunsOfOnePlanAndOfTwinsGiveEqualBytes(t *testing.T) {
	for _, threads := range []int{1, 2} {
		team := team.New(threads)
		_, plan := trained(t, "shallow-nonneg-kl", 128, team)
		want := results(t, plan)
		for range 20 {
			if !slices.Equal(results(t, plan), want) {
				t.Fatalf("%d threads: a second run gives other bytes", threads)
			}
		}
		for range 5 {
			if _, twin := trained(t, "shallow-nonneg-kl", 128, team); !slices.Equal(results(t, twin), want) {
				t.Fatalf("%d threads: a twin gives other bytes", threads)
			}
		}
		team.Close()
	}
}

func TestPlansRunSideBySide(t *testing.T) {
	shared := team.New(2)
	defer shared.Close()
	var all sync.WaitGroup
	for i := range 4 {
		members := shared // two plans on one team, and two plans on separate teams
		if i >= 2 {
			members = team.New(2)
			defer members.Close()
		}
		_, plan := trained(t, "shallow-nonneg-kl", 32, members)
		all.Go(func() {
			want, err := computed(plan)
			for range 30 {
				got, again := computed(plan)
				if err := errors.Join(err, again); err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got, want) {
					t.Error("a plan that runs concurrently with others gives other bytes")
					return
				}
			}
		})
	}
	all.Wait()
}

func TestPlansOfOneModelShareItsWeights(t *testing.T) {
	team := team.New(2)
	defer team.Close()
	m, plan := trained(t, "shallow", 16, team)
	before := results(t, plan)
	for i := range m.Parameters[0].Data {
		m.Parameters[0].Data[i] = 0
	}
	if slices.Equal(results(t, plan), before) {
		t.Error("the plan does not see a change of the model's weights")
	}
}

func TestAPlanPrintsItsStepsShapesBytesAndFLOPs(t *testing.T) {
	team := team.New(2)
	defer team.Close()
	_, plan := trained(t, "shallow", 128, team)
	text := plan.String()
	for _, want := range []string{"phase 1", "784 columns", "A×B 128×100×784 → [128 784]", "A×B partial 128×784×100 → [128 100]", "20.1 MFLOP", "10 MFLOP", "kB", "sigmoid", "steps in", "of buffers"} {
		expect.Contains(t, text, want)
	}
}

// The activation after a convolution overwrites the result of the convolution, which nothing else reads: each of the two layers
// stores one result, not two.
func TestResultsOfConvolutionsAreWrittenOver(t *testing.T) {
	const batch, first, second, code = 64, 14 * 14 * 64, 7 * 7 * 128, 1024
	team := team.New(1)
	defer team.Close()
	m, _ := trained(t, "asym", 1, team)
	p, err := m.Program(graph.Request{Batch: batch, Want: []string{"code"}})
	fatal.If(t, err)
	plan, err := compileProgram[float32](p, team)
	fatal.If(t, err)
	prepared := 0 // number of values that convolutions read in place of their filters
	for _, v := range plan.module.values {
		if u, ok := v.Op.(ir.Unitwise); ok && !u.Kernel.ByUnit(0) {
			prepared += volume.Of(v.Shape)
		}
	}
	if most := batch*(first+second+2*code) + prepared; plan.arena > most {
		t.Errorf("%d values of buffers, want at most %d\n%v", plan.arena, most, plan)
	}
}

func TestSettleGivesMemoryToViewsThatProductsRead(t *testing.T) {
	row := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 0}, Shape: []int{1, 5}, Name: "row"}
	x := &ir.Value{Op: ir.Leaf{Kind: ir.InputLeaf, Index: 1}, Shape: []int{5, 2}, Name: "x"}
	m := &module{wanted: []*ir.Value{{Op: ir.Product{}, Args: []*ir.Value{ir.Broadcasted(row, []int{3, 5}), x}, Shape: []int{3, 2}}}}
	materializeViews(m)
	want(t, m, `
		%0 input[1 5] row
		%1 broadcast[3 5] %0
		%2 copy[3 5] %1
		%3 input[5 2] x
		%4 A×B[3 2] %2 %3`)
}

func TestWrongInputsAreErrors(t *testing.T) {
	team := team.New(1)
	defer team.Close()
	_, plan := trained(t, "shallow", 4, team)
	expect.AnyError(t, plan.Bind(0, make([]float32, 3)), "a batch of the wrong size is accepted")
	expect.AnyError(t, expect.Err(Compile[float64](plan.program, team)), "a program in single precision is compiled in double precision")
}
