package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
)

// ticking returns a clock that advances by a millisecond at every reading.
func ticking() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}
}

// sized declares a sweep of two shapes. The targets, the seeds and the epochs do not affect the cost of a step.
const sized = declared + `
[model.factors]
kind = "nmf"
dataset = { name = "bars", count = 100 }
components = 3
iterations = 4
[sweep.z]
model = ["small", "factors"]
seeds = [1, 2]
[sweep.z.for.small.set]
encoder.1.units = [4, 6]
loss.1.target = [0.1, 0.3]
train.epochs = [3, 9]
`

func planned(t *testing.T, s *Sweep, o PlanOptions) *Plan {
	t.Helper()
	o.Now, o.Budget = ticking(), 10*time.Millisecond
	p, err := s.Plan(context.Background(), o)
	fatal.If(t, err)
	return p
}

func TestATrialIsDescribedByItsOwnKeys(t *testing.T) {
	s := open(t, spec(t, sized, "z"), Options{Out: filepath.Join(t.TempDir(), "sweep")})
	for at, want := range map[int]string{
		0:  "small encoder.1.units=4 loss.1.target=0.1 train.epochs=3 seed=1",
		17: "factors seed=2",
	} {
		expect.Equal(t, s.Describe(s.Trials[at]), want, "trial", at)
	}
}

func TestAPlanIsTheSumOfItsTrials(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sweep")
	s := open(t, spec(t, sized, "z"), Options{Out: dir, Jobs: 1})
	var told []int
	p := planned(t, s, PlanOptions{Cores: []int{2, 1}, Report: func(shape, of int) { told = append(told, shape, of) }})
	if want := []int{1, 3, 2, 3, 3, 3}; !slices.Equal(told, want) || p.Trials != 18 || p.Done != 0 || p.AtOnce != 1 {
		t.Fatalf("told %v, want %v; %d trials, %d done, %d at once", told, want, p.Trials, p.Done, p.AtOnce)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("the plan wrote into the sweep's folder")
	}
	// 100 images are 4 steps; the test of train.Time checks their times. A checkpoint follows every epoch.
	ms := func(n float64) float64 { return n / 1000 }
	trial := func(epochs float64) float64 { return ms(1 + epochs*(4*0.75+1) + epochs*1 + 1) }
	for i, want := range []ShapePlan{
		{Models: []string{"small"}, Values: []string{"4", "...", "...", ""}, Trials: 8, Step: ms(0.75), Steps: 4, Epoch: ms(4), Evaluation: ms(1), Trial: trial(3)},
		{Models: []string{"small"}, Values: []string{"6", "...", "...", ""}, Trials: 8, Step: ms(0.75), Steps: 4, Epoch: ms(4), Evaluation: ms(1), Trial: trial(3)},
		{Models: []string{"factors"}, Trials: 2, Step: ms(1), Steps: 1, Epoch: ms(1), Evaluation: ms(1)},
	} {
		got := p.PerShape[i]
		if !slices.Equal(got.Models, want.Models) || got.Trials != want.Trials || got.Steps != want.Steps || !near(got.Step, want.Step) || !near(got.Epoch, want.Epoch) ||
			!near(got.Evaluation, want.Evaluation) || want.Trial > 0 && !near(got.Trial, want.Trial) || got.Memory < 0 {
			t.Errorf("shape %d:\ngot  %+v\nwant %+v", i, got, want)
		}
		if len(want.Values) > 0 && !slices.Equal(got.Values[:3], want.Values[:3]) {
			t.Errorf("shape %d: values %q, want %q", i, got.Values, want.Values)
		}
	}
	networks := 8*trial(3) + 8*trial(9)
	if got := p.PerModel[0]; got.Model != "small" || got.Trials != 16 || !near(got.Work, networks) {
		t.Errorf("got %+v, want %g", got, networks)
	}
	if !near(p.Longest, trial(9)) || !near(p.Work, p.PerModel[0].Work+p.PerModel[1].Work) || p.Seconds < p.Work/3 || p.Seconds > p.Work/3+p.Longest {
		t.Errorf("longest %g, work %g, end %g", p.Longest, p.Work, p.Seconds)
	}
	if len(p.Memory) != 2 || p.Memory[0] < p.Memory[1] || p.Memory[1] < p.Images {
		t.Errorf("memory %v, images %d", p.Memory, p.Images)
	}
	expect.NoError(t, expect.Err(json.Marshal(p)))
}

func TestAPlanEndsTrialsWhereTheTimedOneConverged(t *testing.T) {
	const fits = `
[model.factors]
kind = "nmf"
dataset = { name = "bars", count = 100 }
components = 3
iterations = 700
[sweep.f]
model = ["factors"]
[sweep.f.for.factors.set]
tolerance = [0.5, 0.0]
`
	s := open(t, spec(t, declared+fits, "f"), Options{Out: filepath.Join(t.TempDir(), "sweep"), Jobs: 1})
	p := planned(t, s, PlanOptions{})
	if len(p.PerShape) != 2 {
		t.Fatalf("%d shapes, want one of each tolerance", len(p.PerShape))
	}
	if early := p.PerShape[0]; early.Epochs > 10 || early.AtMost || early.Trial > 0.05 {
		t.Errorf("a tolerance of a half: %+v", early)
	}
	if late := p.PerShape[1]; late.Epochs != 700 || !late.AtMost || late.Trial < 0.7 {
		t.Errorf("no tolerance: %+v", late)
	}
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

func TestAPlanLeavesOutWhatIsDone(t *testing.T) {
	dir := t.TempDir()
	s := open(t, spec(t, declared, "s"), Options{Out: dir, Jobs: 1})
	all := planned(t, s, PlanOptions{})
	fatal.If(t, expect.Err(s.Do(context.Background(), s.Trials[2])))
	left := planned(t, s, PlanOptions{})
	if left.Done != 1 || left.PerShape[0].Trials != 3 || !near(left.Work, all.Work*3/4) {
		t.Errorf("%d done, %d left, %g of work, want 1, 3, %g", left.Done, left.PerShape[0].Trials, left.Work, all.Work*3/4)
	}
	fatal.If(t, expect.Err(s.Run(context.Background())))
	if done := planned(t, s, PlanOptions{}); done.Done != 4 || done.Work != 0 || done.Seconds != 0 {
		t.Errorf("a finished sweep: %+v", done)
	}
}

func TestOnlyWhatChangesTheCostMakesAShape(t *testing.T) {
	base := spec(t, declared, "s").Trials[0].Model
	for set, same := range map[string]bool{
		"train.seed=9": true, "train.epochs=100": true, "loss.1.weight=0.5": true, "loss.1.target=0.25": true, "optimizer.learning_rate=1e-5": true,
		"encoder.0.stddev=0.3": true, "loss.1.weight=0.0": false, "encoder.1.units=7": false, "train.batch=16": false, "dataset.validation=0.5": false,
		"dataset.count=90": false, "optimizer.kind=sgd": false, "encoder.1.activation=hard_sigmoid": false,
	} {
		changed := spec(t, declared, "s", set).Trials[0].Model
		expect.Equal(t, costKey(changed) == costKey(base), same, set, "the same shape")
	}
}

func TestATrialThatDivergesDoesNotEndThePlan(t *testing.T) {
	text := strings.Replace(declared+diverging, "[0.01, 1e30]", "[1e30, 0.01]", 1)
	p := planned(t, open(t, spec(t, text, "d"), Options{Out: t.TempDir(), Jobs: 1}), PlanOptions{})
	if len(p.PerShape) != 1 || p.PerShape[0].Timed == 0 || p.PerShape[0].Trials != 4 {
		t.Errorf("got %+v", p.PerShape)
	}
	s := open(t, spec(t, strings.Replace(text, "0.01]", "1e29]", 1), "d"), Options{Out: t.TempDir(), Jobs: 2})
	var diverged *train.Diverged
	if _, err := s.Plan(context.Background(), PlanOptions{}); !errors.As(err, &diverged) || strings.Count(err.Error(), "diverged") != 1 {
		t.Errorf("all trials diverge: got %v, want that error once", err)
	}
}
