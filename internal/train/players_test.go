package train

import (
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// opposed declares everything with two players: a judge with a loss term, and a second player that increases this term by its
// own objective.
const opposed = everything + `
[[model.everything.loss]]
kind = "l1"
on = "judge"
name = "verdict"
[[model.everything.loss]]
kind = "hoyer"
on = "judge"
weight = 0.1
[model.everything.head.judge]
layers = [{ kind = "dense", units = 3 }]
[model.everything.player.coder]
trains = ["encoder.*", "decoder.*"]
losses = ["mse", "kl", "weight_decay", "hoyer"]
[model.everything.player.judge]
trains = "head.judge.*"
losses = "verdict"
[model.everything.player.judge.optimizer]
kind = "sgd"
learning_rate = 0.02
momentum = 0.9
clip_norm = 0.5
`

// turns returns the model opposed, whose two players take turns.
func turns(t testing.TB, sets ...string) *config.Model {
	t.Helper()
	return model(t, opposed, append([]string{"player.coder.steps=2", "player.judge.steps=1"}, sets...)...)
}

// In its turn a player updates only its own parameters. Its optimizer counts only its own steps.
func TestOnlyThePlayerMovesWhoseTurnItIs(t *testing.T) {
	for steps, moved := range map[int][]string{1: {"encoder", "decoder"}, 2: {"encoder", "decoder"}, 3: {"encoder", "decoder", "head"}} {
		// one batch of all images: an epoch is one step
		m := turns(t, "train.epochs="+string(rune('0'+steps)), "train.batch=400", "hook.early_stopping=false", "constraint=[]")
		got, err := Open(trained(t, m, Options{}).Run)
		fatal.If(t, err)
		before, err := graph.New(m, got.Shape)
		fatal.If(t, err)
		for i, p := range got.Parameters {
			list, _, _ := strings.Cut(p.Path, ".")
			expect.Equal(t, !slices.Equal(p.Data, before.Parameters[i].Data), slices.Contains(moved, list), "after", steps, "steps", p.Path, "moved")
		}
	}
}

// Two players with the same objective and the same optimizer equal one player.
func TestPlayersWithTheSameObjectiveAreOne(t *testing.T) {
	one := model(t, everything, "optimizer.clip_norm=0")
	two := model(t, everything+`
[model.everything.player.first]
trains = "encoder.*"
[model.everything.player.second]
trains = ["decoder.*"]
`, "optimizer.clip_norm=0")
	want, got := trained(t, one, Options{}).Run, trained(t, two, Options{}).Run
	a, b := read(t, want, "model.safetensors"), read(t, got, "model.safetensors")
	if m, n := tensorsOf(t, want), tensorsOf(t, got); !slices.EqualFunc(m, n, slices.Equal) {
		t.Errorf("other parameters: %d and %d bytes", len(a), len(b))
	}
	line := lines(t, got)[3]
	expect.Equal(t, line["player.first.loss"], line["loss"], line)
	expect.Equal(t, line["player.second.learning_rate"], line["learning_rate"], line)
}

// tensorsOf returns the parameters of a run.
func tensorsOf(t *testing.T, run string) (list [][]float32) {
	t.Helper()
	m, err := Open(run)
	fatal.If(t, err)
	for _, p := range m.Parameters {
		list = append(list, p.Data)
	}
	return list
}

func TestProcessesTrainPlayers(t *testing.T) {
	members := team.New(1)
	defer members.Close()
	m := turns(t, "train.epochs=2")
	alone := trained(t, m, Options{Backend: engine.Backend{Team: members}, Team: members}).Run
	sameRun(t, distributed(t, 1, m, plain), alone)
	first := distributed(t, 2, m, plain)
	sameRun(t, distributed(t, 2, m, func(o *Options) { o.ShardOptimizer = true }), first)
	a, b := lines(t, alone), lines(t, first)
	for i := range a {
		for _, key := range []string{"loss", "player.judge.loss", "val_mse"} {
			x, y := a[i][key].(float64), b[i][key].(float64)
			if d := x - y; d > 1e-5*x || d < -1e-5*x {
				t.Errorf("epoch %d: %s is %v by two processes, %v by one", i+1, key, y, x)
			}
		}
	}
}

// A rule that updates a parameter as a whole gives the same bits for any number of threads and processes, and after a resume.
func TestARuleForWholeParametersTrains(t *testing.T) {
	m := model(t, everything, "train.epochs=1", "train.batch=96", "optimizer.kind=muon", "optimizer.clip_norm=0.05")
	interruptedEverywhere(t, m, apart())
	alone := trained(t, m, Options{Team: threads(t, 1)}).Run
	sameResult(t, trained(t, m, Options{Team: threads(t, 3)}).Run, alone)
	first := distributed(t, 2, m, plain)
	sameRun(t, distributed(t, 2, m, func(o *Options) { o.CheckWeights = 1 }), first)
	state, err := readState(alone + "/state.safetensors")
	fatal.If(t, err)
	for name, states := range map[string]int{"encoder.2.weight": 1, "encoder.2.bias": 2} {
		for i := range 3 {
			_, is := state.file.Tensor(optimizerPrefix + name + "/" + string(rune('0'+i)))
			expect.Equal(t, is, (i < states), name, "state", i, "exists")
		}
	}
	_, errs := inProcesses(t, 2, func(o Options) (*Result, error) {
		o.ShardOptimizer = true
		if o.Group.Rank() == 0 {
			o.Out = t.TempDir() + "/run"
			return Run(t.Context(), m, o)
		}
		return Run(t.Context(), nil, o)
	})
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "muon updates parameters as a whole") {
		t.Errorf("a divided optimizer: %v", errs[0])
	}
}
