package train

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/data/morph"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
	"tessera/internal/volume"
)

// searched declares a model with all features of full-batch training: terms of every kind, constraints on single elements and
// on whole parameters, a smaller last batch, a short history, validation, early stopping (never triggered), and a checkpoint
// after every iteration.
const searched = `
[model.searched]
dataset = { name = "bars", count = 100, validation = 0.25 }

[[model.searched.encoder]]
kind = "dense"
units = 8
activation = "sigmoid"

[[model.searched.loss]]
kind = "mse"
weight = 10
[[model.searched.loss]]
kind = "kl"
weight = 0.01
[[model.searched.loss]]
kind = "max_approximation"
weight = 0.1
[[model.searched.loss]]
kind = "hoyer"
weight = 0.01
[[model.searched.loss]]
kind = "weight_decay"
on = "*.weight"
weight = 0.0001

[[model.searched.constraint]]
kind = "nonneg"
[[model.searched.constraint]]
kind = "max_norm"
on = "encoder.*.weight"

[model.searched.optimizer]
kind = "lbfgs"
history = 3

[model.searched.train]
epochs = 8
batch = 32
checkpoint_seconds = 0

[model.searched.hook.early_stopping]
patience = 100
`

// looked returns the full-batch objective of a model from newWhole, and its inputs.
func looked(t *testing.T, spec *config.Model, backend ir.Backend, team *team.Team) (w *fullBatch, m *graph.Model, images *data.Images, weights []float32) {
	t.Helper()
	set, err := spec.Dataset.Source.Load(context.Background(), data.Dirs{}, data.Need{})
	fatal.If(t, err)
	splits, err := set.Split(spec.Dataset.Selection, 1)
	fatal.If(t, err)
	if m, err = graph.New(spec, set.Shape); err != nil {
		t.Fatal(err)
	}
	s := newStepper(m, team, nil)
	r := &trainee{job: &job{spec: spec, images: splits.Fit, options: Options{Backend: backend, Team: team}}, model: m, stepper: s}
	fatal.If(t, r.attach())
	if w, err = newFullBatch(r); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.trainable {
		weights = append(weights, p.Data...)
	}
	return w, m, splits.Fit, weights
}

// failing is a back end that fails after the given number of compiled programs. It counts the Close calls of every runner.
type failing struct {
	tape.Backend
	good   int
	closed []*int
}

type closing struct {
	ir.Runner[float32]
	count *int
}

func (f *failing) Compile(p ir.Program) (ir.Runner[float32], error) {
	if len(f.closed) == f.good {
		return nil, errors.New("no more programs")
	}
	r, err := f.Backend.Compile(p)
	f.closed = append(f.closed, new(int))
	return closing{r, f.closed[len(f.closed)-1]}, err
}

func (c closing) Close() error {
	*c.count++
	return c.Runner.Close()
}

func TestASearchThatCannotBeginClosesItsProgramsOnce(t *testing.T) {
	for good := range 5 { // penalties, then a portion and an encoder, each for two batch sizes
		b := &failing{good: good}
		if _, err := Run(context.Background(), model(t, searched), Options{Backend: b, Out: place(t)}); err == nil {
			t.Fatalf("%d programs are enough", good)
		}
		for i, n := range b.closed {
			expect.Equal(t, *n, 1, "of", good, "programs the one at", i, "is closed", *n, "times")
		}
	}
}

// The expected values come from one program for all images, on Gorgonia's own machine.
func TestTheObjectiveInBatchesEqualsTheFullBatch(t *testing.T) {
	two := team.New(2)
	defer two.Close()
	for name, sets := range map[string][]string{
		"terms of every sort": nil,
		"no penalties":        {`loss=[{kind="mse"},{kind="overlap",weight=0.1}]`},
		"of weights alone":    {`loss=[{kind="mse"},{kind="weight_decay"},{kind="asymmetric_decay",on="*.weight"}]`},
		"of the Jacobian":     {`loss=[{kind="mse"},{kind="kl"},{kind="contractive",weight=0.1}]`},
		"of a deep Jacobian": {`encoder=[{kind="dense",units=6,activation="tanh"},{kind="dense",units=8,activation="sigmoid"}]`,
			`loss=[{kind="mse"},{kind="kl"},{kind="contractive",weight=0.1,probes=2}]`},
		"decomposed images": {`encoder=[{kind="pado",levels=2},{kind="dense",units=6,activation="sigmoid"}]`,
			`loss=[{kind="mse"},{kind="kl"}]`},
		"a Jacobian of decomposed images": {`encoder=[{kind="pado",levels=2},{kind="dense",units=5,activation="sigmoid"}]`,
			`loss=[{kind="mse"},{kind="contractive"},{kind="kl"}]`},
		"a Jacobian of signed levels": {`encoder=[{kind="amd",levels=2},{kind="dense",units=5,activation="sigmoid"}]`,
			`loss=[{kind="mse"},{kind="contractive"},{kind="kl"}]`},
		"one layer frozen": {`freeze=["encoder.*"]`, "constraint.1.on=*.weight"},
		"of a frozen weight": {`freeze=["encoder.*"]`, "constraint=[]",
			`loss=[{kind="mse"},{kind="weight_decay",on="encoder.*.weight"}]`},
		"a code of two parts": {`loss=[{kind="mse"},{kind="kl",target=0.3},{kind="kl",weight=0.5},{kind="activity_floor"}]`},
	} {
		batches := []string{"train.batch=75", "train.batch=1", "train.batch=32", "train.batch=1000"}
		if testing.Short() {
			batches = batches[:1] // the last one is not full
		}
		for _, batch := range batches {
			for _, b := range []struct {
				backend ir.Backend
				team    *team.Team
			}{{tape.Backend{}, team.New(1)}, {engine.Backend{Team: two}, two}} {
				spec := model(t, searched, append(sets, batch)...)
				w, m, images, weights := looked(t, spec, b.backend, b.team)
				want, err := compile(m, tape.Backend{}, graph.Request{Batch: images.Len(), Training: true, Prepared: true})
				fatal.If(t, err)
				want.follow(w.trainable)
				g := make([]float32, len(weights))
				value, err := w.Evaluate(context.Background(), weights, g)
				fatal.If(t, err)
				var inputs [][]float32
				for _, in := range want.Inputs {
					switch {
					case in.Preparation != nil:
						channels, _, err := in.Preparation.(morph.Decomposition).Apply(images.Float32(), images.Shape)
						fatal.If(t, err)
						inputs = append(inputs, channels)
					case in.Sampler != nil:
						noise := make([]float32, volume.Of(in.Shape))
						w.feed.fill(in, noise, w.feed.order)
						inputs = append(inputs, noise)
					default:
						inputs = append(inputs, images.Float32())
					}
				}
				fatal.If(t, want.Run(inputs))
				near(t, name+", "+batch+": loss", value, want.scalar(want.loss))
				for i, tap := range want.terms {
					near(t, name+", "+batch+": "+spec.TermName(i), w.terms[i], want.scalar(tap))
				}
				for i, wanted := range want.Gradients() {
					for j, v := range wanted {
						near(t, name+", "+batch+": gradient of "+w.trainable[i].Path, float64(g[j]), float64(v))
					}
					g = g[len(wanted):]
				}
				expect.NoError(t, errors.Join(w.Close(), want.runner.Close()))
			}
		}
	}
}

// estimated changes searched: the objective uses random vectors to estimate the Jacobian of a deep encoder.
var estimated = []string{`encoder=[{kind="dense",units=6,activation="tanh"},{kind="dense",units=8,activation="sigmoid"}]`,
	`loss=[{kind="mse"},{kind="contractive",weight=0.01}]`}

// With a contractive term, the graph for the contributions of the images decomposes the images. The graph for the codes reads
// decomposed images.
func TestASearchOnDecomposedImagesTakesAContractiveTerm(t *testing.T) {
	for _, layer := range []string{"pado", "amd"} {
		m := model(t, searched, `encoder=[{kind="`+layer+`",levels=2},{kind="dense",units=5,activation="sigmoid"}]`,
			`loss=[{kind="mse"},{kind="contractive"},{kind="kl"}]`, "constraint=[]")
		all := lines(t, trained(t, m, Options{}).Run)
		for i, line := range all[1:] {
			if !(line["loss"].(float64) < all[i]["loss"].(float64)) {
				t.Errorf("%s: iteration %d leads from %v to %v", layer, i+2, all[i]["loss"], line["loss"])
			}
		}
	}
}

// The random vectors of an image are drawn once, because the line search must compare values of the same function.
func TestAnEstimatedObjectiveIsTheSameAtEveryEvaluation(t *testing.T) {
	w, _, _, weights := looked(t, model(t, searched, estimated...), tape.Backend{}, team.New(1))
	defer w.Close()
	g, again := make([]float32, len(weights)), make([]float32, len(weights))
	first, err := w.Evaluate(context.Background(), weights, g)
	fatal.If(t, err)
	second, err := w.Evaluate(context.Background(), weights, again)
	if err != nil || second != first || !slices.Equal(g, again) {
		t.Errorf("evaluates %v, then %v (%v)", first, second, err)
	}
	all := lines(t, trained(t, model(t, searched, append(estimated, "train.epochs=30")...), Options{}).Run)
	for i, line := range all[1:] {
		if !(line["loss"].(float64) < all[i]["loss"].(float64)) {
			t.Errorf("iteration %d leads from %v to %v", i+2, all[i]["loss"], line["loss"])
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 2e-5*(1e-2+math.Abs(want))) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func TestEveryIterationOfASearchIsLower(t *testing.T) {
	r := trained(t, model(t, searched, "train.epochs=60"), Options{})
	all := lines(t, r.Run)
	for i, line := range all {
		sum := 0.0
		for _, term := range []string{"mse", "kl", "max_approximation", "hoyer", "weight_decay"} {
			sum += line[term].(float64)
		}
		if loss := line["loss"].(float64); math.Abs(sum-loss) > 1e-12*loss {
			t.Errorf("iteration %d: the terms sum to %v, the loss is %v", i+1, sum, loss)
		}
		if line["learning_rate"] != nil {
			t.Errorf("iteration %d has a learning rate: %v", i+1, line["learning_rate"])
		}
		if i > 0 && !(line["loss"].(float64) < all[i-1]["loss"].(float64)) {
			t.Errorf("iteration %d leads from %v to %v", i+1, all[i-1]["loss"], line["loss"])
		}
	}
	if first, last := all[0]["loss"].(float64), all[len(all)-1]["loss"].(float64); !(last < 0.7*first) {
		t.Errorf("%d iterations lead from %v to %v only", len(all), first, last)
	}
}

// The objective of a linear auto-encoder with weight decay has a minimum, so the search converges.
func TestASearchEndsAtAMinimum(t *testing.T) {
	m := model(t, searched, "dataset.count=20", "encoder=[{kind=\"dense\",units=1}]", `constraint=[]`,
		`loss=[{kind="mse"},{kind="weight_decay",weight=0.1,on="*.weight"}]`, "train.epochs=3000", "hook.early_stopping=false")
	r := trained(t, m, Options{})
	if !r.StoppedEarly || r.Epochs >= 3000 || r.Epochs != len(lines(t, r.Run)) {
		t.Errorf("got %+v with %d lines, want an early end", r, len(lines(t, r.Run)))
	}
	again, err := Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}})
	if err != nil || !again.AlreadyFinished {
		t.Errorf("resumed: %+v, %v", again, err)
	}
}

func TestASearchInterruptedInAnyBatchResumesToTheSameBytes(t *testing.T) {
	for _, sets := range [][]string{nil, {"constraint=[]"}, estimated} {
		m := model(t, searched, sets...)
		whole := newHooked()
		whole.Backend = engine.Backend{}
		want := trained(t, m, Options{Backend: whole})
		batches := int(whole.count.Load())
		for at := 1; at <= batches; at += 1 + at*apart()/40 { // the whole suite takes eight in a doubling
			run := place(t)
			ctx, backend := cancelledAt(at, engine.Backend{})
			_, err := Run(ctx, m, Options{Backend: backend, Out: run, Disk: &faulty.Disk{}})
			if err != nil && !errors.Is(err, ErrInterrupted) {
				t.Fatalf("interrupted in batch %d of %d: got %v", at, batches, err)
			}
			fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: engine.Backend{}, Disk: &faulty.Disk{}})))
			sameRun(t, run, want.Run)
		}
	}
}

// counts is a hook that counts the calls of BeginEpoch.
type counts struct{}

func (counts) Attach(hooks.Training) (*hooks.Active, error) {
	var record struct{ Begun int }
	return &hooks.Active{BeginEpoch: func() error { record.Begun++; return nil },
		Save: func(s *hooks.State) { s.PutRecord(record) }, Restore: func(s *hooks.State) error { return s.LoadRecord(&record) }}, nil
}

func init() {
	hooks.Registry.Register("counts", "counts epochs", func() hooks.Hook { return &counts{} })
}

// BeginEpoch is not called again for a repeated iteration.
func TestAnInterruptedIterationBeginsOnceForHooks(t *testing.T) {
	m := model(t, searched, "train.epochs=3", "hook.counts={}")
	for at := 5; at <= 15; at += 5 {
		run := place(t)
		ctx, backend := cancelledAt(at, tape.Backend{})
		if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}})))
		from, err := readState(run + "/" + folder.State)
		fatal.If(t, err)
		expect.Equal(t, from.file.Metadata["hook/counts"], `{"Begun":3}`, "interrupted in batch", at, "the hook counts")
	}
}

// In a full-batch training the optimizer would overwrite such a change in its next iteration, but a resumed run would start
// from it.
func TestAHookCannotChangeParametersInASearch(t *testing.T) {
	m := model(t, searched, "train.epochs=3")
	m.Hooks = map[string]hooks.Hook{"outside": &outside{func(t hooks.Training) (*hooks.Active, error) {
		return &hooks.Active{EndEpoch: func(*hooks.Epoch) error {
			for _, p := range t.Parameters("encoder.*.weight") {
				t.Rewrite(p, func(values []float32) { values[0] /= 2 })
			}
			return nil
		}}, nil
	}}}
	_, err := trainNew(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t)})
	expect.Error(t, err, "hook outside")
	expect.Error(t, err, "lbfgs")
}

// The result does not depend on checkpoints, and neither does the history of the optimizer.
func TestCheckpointsDoNotChangeASearch(t *testing.T) {
	often, never := trained(t, model(t, searched), Options{}), trained(t, model(t, searched, "train.checkpoint_seconds=1e9"), Options{})
	var models [2]*checkpoint.File
	for i, run := range []string{often.Run, never.Run} {
		f, err := checkpoint.Decode(read(t, run, folder.Model))
		fatal.If(t, err)
		models[i] = f
	}
	if !reflect.DeepEqual(models[0].Tensors, models[1].Tensors) {
		t.Error("the models differ")
	}
}

func TestANonFiniteSearchNamesTheTensor(t *testing.T) {
	for want, sets := range map[string][]string{
		"encoder.0.weight": {`encoder=[{kind="dense",units=4,init={kind="constant",value=1e300}}]`, "constraint=[]", `loss=[{kind="mse"}]`},
		"loss.mse":         {`loss=[{kind="mse",weight=1e39}]`},
		"loss.hoyer":       {`loss=[{kind="mse"},{kind="hoyer",weight=1e39}]`},
	} {
		_, err := Run(context.Background(), model(t, searched, sets...), Options{Backend: tape.Backend{}, Out: place(t)})
		if diverged, ok := errors.AsType[*Diverged](err); !ok || diverged.Tensor != want || diverged.Step != 1 {
			t.Errorf("got %v, want that %s is not finite in step 1", err, want)
		} else if strings.Contains(err.Error(), "learning_rate") {
			t.Errorf("got %v: there is no learning rate", err)
		}
	}
}

func TestAStateWithoutTheStateOfItsSearchIsDamaged(t *testing.T) {
	m := model(t, searched, "train.epochs=3")
	ctx, backend := cancelledAt(9, tape.Backend{})
	run := place(t)
	if _, err := Run(ctx, m, Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	from, err := readState(run + "/" + folder.State)
	fatal.If(t, err)
	s, err := bareSession(m, from.shape, Options{})
	fatal.If(t, err)
	for _, points := range []int{-1, 5} {
		from.Search.Points = points
		expect.AnyError(t, s.learner.restore(from), points, "points are taken")
	}
	from.Search = nil
	expect.AnyError(t, s.learner.restore(from), "no points are taken")
}

// Of several damaged records of a state the first one is named, always the same.
func TestTheFirstDamagedRecordIsNamed(t *testing.T) {
	run := place(t)
	fatal.If(t, expect.Err(Run(context.Background(), model(t, searched, "train.epochs=1"), Options{Backend: newHooked(), Out: run})))
	from, err := readState(run + "/" + folder.State)
	fatal.If(t, err)
	for _, key := range []string{identityKey, progressKey, arithmeticKey} {
		from.file.Metadata[key] = "{"
	}
	for range 20 {
		if _, err := stateOf("x", from.file); err == nil || !strings.Contains(err.Error(), "damaged: "+identityKey+": ") {
			t.Fatalf("got %v, want the record %q", err, identityKey)
		}
	}
}
