package train

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/optim"
)

// threads returns a team; the test closes it at its end.
func threads(t testing.TB, n int) *team.Team {
	t.Helper()
	team := team.New(n)
	t.Cleanup(team.Close)
	return team
}

// stepped returns a model with parameters longer than one chunk, and gradients for it.
func stepped(t testing.TB, sets ...string) (*graph.Model, [][][]float32) {
	t.Helper()
	m, err := graph.New(model(t, everything, append(sets, "encoder.2.units=200")...), []int{8, 8})
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(3, 4))
	var steps [][][]float32
	for range 3 {
		var gradients [][]float32
		for _, p := range m.Parameters {
			g := lists.Of(len(p.Data), func(int) float32 { return float32(r.NormFloat64()) })
			gradients = append(gradients, g)
		}
		gradients[1] = nil // a parameter that the loss does not depend on
		steps = append(steps, gradients)
	}
	return m, steps
}

// The expected result comes from applying each operation to whole parameters, one after the other.
func TestTheFusedStepEqualsSeparateOperations(t *testing.T) {
	for _, clip := range []string{"optimizer.clip_norm=0.5", "optimizer.clip_norm=0", "optimizer.clip_norm=1e9"} {
		for _, team := range []*team.Team{threads(t, 1), threads(t, 2), threads(t, 3), threads(t, 100)} {
			m, steps := stepped(t, clip)
			want, _ := stepped(t, clip)
			s := newStepper(m, team, nil)
			s.Project()
			projectAll(want)
			state := lists.Map(want.Parameters, func(p *graph.Parameter) [][]float32 {
				return [][]float32{make([]float32, len(p.Data)), make([]float32, len(p.Data))}
			})
			for i, gradients := range steps {
				if !s.Step(gradients, 0.01, i+1) {
					t.Fatal("a finite step is called bad")
				}
				factor := float32(optim.ClipFactor(optim.Norm(gradients...), m.Spec.Optimizer.ClipNorm))
				for j, p := range want.Parameters {
					g := slices.Clone(gradients[j])
					for k := range g {
						g[k] *= factor
					}
					if g != nil {
						s.players[0].rule.Update(p.Data, g, state[j], 0.01, i+1)
					}
				}
				projectAll(want)
			}
			for i, p := range m.Parameters {
				expect.Slice(t, p.Data, want.Parameters[i].Data, clip, team.Threads(), "threads", p.Path)
			}
		}
	}
}

func projectAll(m *graph.Model) {
	for _, p := range m.Parameters {
		for _, c := range m.Spec.Constraints {
			if config.MatchPath(c.On, p.Path) {
				c.Constraint.Project(p.Data, p.Shape)
			}
		}
	}
}

func TestConstraintsOfOneParameterKeepTheirOrder(t *testing.T) {
	// Scaling to the unit sphere and then clipping to [0,0.1] is not clipping and then scaling.
	for _, order := range []string{
		`constraint=[{kind="unit_norm"},{kind="box",min=0.0,max=0.1}]`,
		`constraint=[{kind="box",min=0.0,max=0.1},{kind="unit_norm"}]`,
	} {
		m, steps := stepped(t, order)
		want, _ := stepped(t, order)
		newStepper(m, team.New(1), nil).Project()
		projectAll(want)
		s := newStepper(m, threads(t, 2), nil)
		s.Step(steps[0], 0, 1) // changes nothing: Adam's step is a multiple of the rate
		projectAll(want)
		for i, p := range m.Parameters {
			expect.Slice(t, p.Data, want.Parameters[i].Data, order, p.Path)
		}
	}
}

func TestAStepFindsEveryValueThatIsNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		m, steps := stepped(t)
		s := newStepper(m, threads(t, 2), nil)
		g := steps[0][3]
		g[len(g)-1] = float32(v)
		if s.Step(steps[0], 0.01, 1) {
			t.Errorf("a gradient of %v went unnoticed", v)
		}
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	m, steps := stepped(t)
	s := newStepper(m, team.New(1), nil)
	step := 0
	expect.Equal(t, testing.AllocsPerRun(10, func() {
		step++
		s.Step(steps[0], 0.01, step)
	}), 0, "allocations")
}

// broken is a user-defined optimizer that panics.
type broken struct{ optim.Rule }

func (broken) Update([]float32, []float32, [][]float32, float64, int) { panic("a fault") }

func TestAPanicOfAnOptimizerIsAnError(t *testing.T) {
	for _, team := range []*team.Team{threads(t, 1), threads(t, 2), threads(t, 3)} {
		m, steps := stepped(t)
		s := newStepper(m, team, nil)
		if s.Step(steps[0], 0.01, 1); s.Failed() != nil {
			t.Fatalf("%d threads: %v", team.Threads(), s.Failed())
		}
		s.players[0].rule = broken{s.players[0].rule}
		s.Step(steps[1], 0.01, 2)
		if err := s.Failed(); err == nil || !strings.Contains(err.Error(), "a fault") {
			t.Errorf("%d threads: got %v", team.Threads(), err)
		}
	}
}

func TestAWholeTrainingStepAllocatesNothing(t *testing.T) {
	stepsWithoutAllocations(t, model(t, quiet, "train.batch=8"))
	stepsWithoutAllocations(t, model(t, quiet+attackedBatches, "train.batch=8"))
}

// quiet is the declaration everything without noise.
var quiet = strings.NewReplacer("rate = 0.2", "rate = 0.0", `kind = "gaussian_noise"`, `kind = "linear"`).Replace(everything)

// stepsWithoutAllocations fails if a training step of a model allocates, including the preparation of the next batch.
func stepsWithoutAllocations(t *testing.T, spec *config.Model) {
	t.Helper()
	for _, threads := range []int{1, 2} {
		team := team.New(threads)
		s, splits, err := newSession(context.Background(), spec, Options{Backend: engine.Backend{Team: team}, Team: team}, nil)
		fatal.If(t, err)
		fatal.If(t, s.learner.begin(context.Background(), splits, true))
		n := s.learner.(*network)
		if allocations := testing.AllocsPerRun(30, func() { // 47 steps are an epoch
			fatal.If(t, n.step())
		}); allocations != 0 && !raceEnabled {
			t.Errorf("%d threads: %v allocations", threads, allocations)
		}
		s.close()
		team.Close()
	}
}

func TestFinite(t *testing.T) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32} {
		if x := float32(v); !finite([]float32{1, x, x, x}) { // their sum may not be
			t.Errorf("%v is called not finite", v)
		}
	}
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xffffffff), math.Float32frombits(0x7f800001)} {
		for n := 1; n < 70; n++ {
			for at := range n {
				values := make([]float32, n)
				values[at] = v
				if finite(values) {
					t.Errorf("%v at %d of %d is called finite", v, at, n)
				}
				if got, ok := firstBad(values); !ok || math.Float32bits(got)<<1 != math.Float32bits(v)<<1 && got == got {
					t.Errorf("%v at %d of %d: got %v, %v", v, at, n, got, ok)
				}
			}
		}
	}
}

func BenchmarkFinite(b *testing.B) {
	values := make([]float32, 157684)
	b.SetBytes(int64(4 * len(values)))
	for b.Loop() {
		if !finite(values) {
			b.Fatal("zeros are finite")
		}
	}
}
