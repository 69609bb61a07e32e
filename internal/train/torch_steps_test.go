package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/hooks"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"

	"gorgonia.org/tensor"
)

// torchDeclared declares the models of torch_models.py. The test provides images and labels.
const torchDeclared = `
[model.classifier]
dataset = { name = "npy", images = "none.npy", labels = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "sigmoid" }]
decoder = []
loss    = [{ kind = "cross_entropy" }]
head.class.layers = [{ kind = "dense", units = 5 }]

[model.classifier-on-parts]
extends = "classifier"
freeze  = ["encoder.*"]

[model.semi-supervised]
extends = "classifier"
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "cross_entropy", weight = 0.5 }]

[model.simclr]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "conv2d", filters = 4, kernel = 3, padding = "same", activation = "relu" }, { kind = "dense", units = 8 }]
decoder = []
view    = [{ augment = ["flip"] }]
loss    = [{ kind = "nt_xent", temperature = 0.5 }]
head.projection.layers = [{ kind = "dense", units = 6, activation = "relu" }, { kind = "dense", units = 4 }]

[model.vicreg]
extends = "simclr"
loss    = [{ kind = "invariance", weight = 25 }, { kind = "variance", on = "projection", views = true, weight = 25 }, { kind = "covariance", on = "projection", views = true, weight = 2 }]

[model.barlow-twins]
extends = "simclr"
loss    = [{ kind = "barlow_twins" }]

[model.byol]
extends         = "simclr"
loss            = [{ kind = "byol" }]
head.prediction = { from = "projection", layers = [{ kind = "dense", units = 4 }] }
hook.teacher    = { decay = 0.9 }

[model.dino]
extends         = "simclr"
loss            = [{ kind = "dino", temperature = 0.8, teacher_temperature = 0.3 }]
head.projection.layers = [{ kind = "dense", units = 6, activation = "relu" }, { kind = "dense", units = 4 }, { kind = "teacher_centre", momentum = 0.7 }]
hook.teacher    = { decay = 0.9 }

[model.phased]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "relu" }, { kind = "sparsify", threshold = 0.3 }]
decoder = [{ kind = "dense", units = 6, activation = "tanh" }, { kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "max_approximation_layer", weight = 0.1 }]

[model.unrolled]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "unrolled", units = 8, steps = 4 }]
decoder = [{ kind = "tied", bias = false }]
loss    = [{ kind = "mse" }, { kind = "hoyer", weight = 0.1, target = 0.6 }]

[model.players]
extends = "classifier"
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "l1", on = "class", name = "fool", weight = 0.1 }, { kind = "cross_entropy", name = "verdict" }]
player.coder = { trains = ["encoder.*", "decoder.*"], losses = ["mse", "fool"] }
player.judge = { trains = "head.class.*", losses = "verdict" }

[model.vae]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }, { kind = "gaussian", units = 3 }]
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.1 }]

[model.free-bits]
extends = "vae"
decoder = [{ kind = "dense", activation = "sigmoid" }]
loss    = [{ kind = "bce", weight = 36 }, { kind = "gaussian_kl", free_bits = 0.125 }]

[model.rectified]
extends = "vae"
encoder = [{ kind = "dense", units = 8, activation = "tanh" }, { kind = "rectified_gaussian", units = 3 }]
loss    = [{ kind = "mse" }, { kind = "rectified_kl", weight = 0.1 }]

[model.vq]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 12 }, { kind = "reshape", shape = [4, 3] }, { kind = "vq", entries = 5, decay = 0.6, revive = 0.5 }]
loss    = [{ kind = "mse" }, { kind = "commitment", weight = 0.25 }]

[model.rbm]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "rbm", units = 8, steps = 2 }]
decoder = []
loss    = [{ kind = "contrastive_divergence" }, { kind = "l2", target = 0.1, weight = 0.5 }]

[model.rbm-persistent]
extends = "rbm"
encoder = [{ kind = "rbm", units = 8, chains = 7 }]
decoder = [{ kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" }]
loss    = [{ kind = "contrastive_divergence" }]

[model.rbm-gaussian]
extends = "rbm"
encoder = [{ kind = "rbm", units = 8, visible = "gaussian", deviation = 0.8 }]
loss    = [{ kind = "contrastive_divergence" }]

[model.skip]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "conv2d", filters = 2, kernel = 3, padding = "same", activation = "tanh" }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 36 }, { kind = "reshape", shape = [6, 6] }, { kind = "conv2d", filters = 1, kernel = 3, padding = "same", from = ["previous", "encoder.0"] }]

[model.unet]
dataset = { name = "npy", images = "none.npy" }
encoder = [
  { kind = "conv2d", filters = 4, kernel = 3, padding = "same" }, { kind = "group_norm", groups = 2 }, { kind = "tanh" },
  { kind = "conv2d", filters = 6, kernel = 2, stride = 2, padding = "valid", activation = "relu" }, { kind = "conv2d", filters = 6, kernel = 3, padding = "same" },
]
decoder = [
  { kind = "upsample", from = "encoder.4" }, { kind = "conv2d", filters = 4, kernel = 3, padding = "same", from = ["previous", "encoder.2"] },
  { kind = "group_norm", groups = 2 }, { kind = "silu" }, { kind = "conv2d", filters = 1, kernel = 3, padding = "same" },
]
loss = [{ kind = "mse" }]

[model.jump]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8 }, { kind = "jump_relu", width = 0.5 }]
loss    = [{ kind = "mse" }, { kind = "l0", weight = 0.01 }]

[model.jump-tanh]
extends = "jump"
encoder = [{ kind = "dense", units = 8 }, { kind = "jump_relu", width = 0.5, kernel = "tanh" }]

[model.batch-topk]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8 }, { kind = "batch_top_k", k = 2, anneal_from = 5, anneal_steps = 3, momentum = 0.9 }]
loss    = [{ kind = "mse" }]

[model.gated]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, bias = false }, { kind = "gated" }]
loss    = [{ kind = "mse" }, { kind = "l1", on = "encoder.1.gate", weight = 0.1 }, { kind = "gated" }]

[model.matryoshka]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "relu" }, { kind = "group_max", groups = 4 }, { kind = "aux_k", k = 2, after = 12, of = "encoder.0" }]
loss    = [{ kind = "mse" }, { kind = "mse", on = "first", name = "first" }, { kind = "mse", on = "second", name = "second" }, { kind = "atom_l1", weight = 0.01 }, { kind = "aux_k", weight = 0.5 }]
head.first.layers  = [{ kind = "prefix", units = 2 }, { kind = "dense", units = 36, share = "decoder.0" }]
head.second.layers = [{ kind = "prefix", units = 4 }, { kind = "dense", units = 36, share = "decoder.0" }]

[model.two-encoders]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder = []
loss    = [{ kind = "contrastive", on = "first", with = "second", temperature = 0.5 }]
head.first.layers = [{ kind = "dense", units = 4 }]
head.second = { from = "images", layers = [{ kind = "dense", units = 8, activation = "sigmoid" }, { kind = "dense", units = 4, share = "head.first.0" }] }

[model.regression]
dataset = { name = "csv", file = "FILE", columns = { images = ["p*"], target = ["y*"], seen = ["s*"], weight = "w", tags = ["l*"], tokens = ["k*"], length = "n" } }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder = []
loss    = [{ kind = "mse", on = "y", against = "target", mask = "seen", sample_weight = "weight" }]
head.y.layers = [{ kind = "dense" }]

[model.multi-label]
extends = "regression"
loss    = [{ kind = "bce", on = "y", against = "tags" }]
head.y.layers = [{ kind = "dense", activation = "sigmoid" }]

[model.embedding]
extends = "regression"
encoder = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 3 }, { kind = "dense", units = 8, activation = "tanh" }]
loss    = [{ kind = "mse", on = "y", against = "target" }]

[model.two-columns]
dataset = { name = "csv", file = "FILE", columns = { images = ["p*"], tokens = ["k*"] } }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder = []
loss    = [{ kind = "contrastive", on = "image", with = "text", learned = true }]
head.image.layers = [{ kind = "dense", units = 4 }]
head.text = { from = "tokens", layers = [{ kind = "embedding", vocabulary = 7, units = 3 }, { kind = "dense", units = 4 }] }

[model.sharpness]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "sigmoid" }]
hook.sharpness.rho = 0.05

[model.surgery]
extends = "semi-supervised"
hook.surgery = {}

[model.vit]
extends = "classifier"
encoder = [
  { kind = "patches", size = 2 }, { kind = "token_dense", units = 6 }, { kind = "position" }, { kind = "class_token" },
  { kind = "transformer", heads = 2, ratio = 2 }, { kind = "transformer", heads = 2, ratio = 2 }, { kind = "layer_norm" }, { kind = "take_token" },
]

[model.masked]
dataset = { name = "npy", images = "none.npy" }
encoder = [
  { kind = "patches", size = 2 }, { kind = "token_dense", units = 6 }, { kind = "position" }, { kind = "mask_patches", ratio = 0.7 },
  { kind = "transformer", heads = 2, ratio = 2 }, { kind = "layer_norm" }, { kind = "take_token", mean = true },
]
decoder = [
  { kind = "token_dense", units = 4, from = "encoder.5" }, { kind = "mask_tokens", mask = "encoder.3.mask" }, { kind = "position" },
  { kind = "transformer", heads = 2, ratio = 2 }, { kind = "token_dense", units = 4 }, { kind = "unpatch", size = 2 },
]
loss = [{ kind = "mse", mask = "hidden" }]
head.hidden = { from = "encoder.3.mask", layers = [{ kind = "reshape", shape = [3, 3] }, { kind = "upsample", factor = 2 }] }

[model.cross]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "patches", size = 2 }, { kind = "token_dense", units = 6, activation = "tanh" }, { kind = "dense", units = 8 }]
decoder = [
  { kind = "dense", units = 16 }, { kind = "reshape", shape = [4, 4] }, { kind = "position", values = "sinusoidal" },
  { kind = "attention", heads = 2, keys = "encoder.1" }, { kind = "transformer", heads = 2, ratio = 2, keys = "encoder.1" }, { kind = "dense" },
]

[model.lengths]
extends = "regression"
encoder = [
  { kind = "embedding", from = "tokens", vocabulary = 7, units = 6 }, { kind = "position" }, { kind = "transformer", heads = 2, ratio = 2, mask = "there" },
  { kind = "attention", heads = 2, mask = "there" }, { kind = "take_token", mean = true, mask = "there" },
]
loss = [
  { kind = "mse", on = "y", against = "target", name = "y" }, { kind = "mse", on = "next", against = "tokens", mask = "there", weight = 0.1, name = "next" },
  { kind = "mse", on = "question", against = "target", name = "question" },
]
head.there    = { from = "length", layers = [{ kind = "first_tokens", tokens = 4 }] }
head.next     = { from = "encoder.3", layers = [{ kind = "token_dense", units = 1 }, { kind = "flatten" }] }
head.question = { from = "images", layers = [{ kind = "reshape", shape = [9, 4] }, { kind = "transformer", heads = 2, ratio = 2, keys = "encoder.3", keys_mask = "there" }, { kind = "dense", units = 2 }] }

[model.language]
extends = "regression"
encoder = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 6 }, { kind = "position" }, { kind = "transformer", heads = 2, ratio = 2, causal = true }]
loss    = [{ kind = "next_token", on = "next", against = "tokens", length = "length" }]
head.y    = false
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 7 }] }

[model.skip-gram]
extends = "regression"
encoder = [{ kind = "embedding", from = "length", vocabulary = 7, units = 6 }, { kind = "flatten" }]
loss    = [{ kind = "negative_sampling", near = "target" }]
head.y  = false
head.score = { from = "tokens", layers = [{ kind = "embedding", vocabulary = 7, units = 6 }, { kind = "dot", with = "code" }] }

[model.cbow]
extends    = "skip-gram"
encoder    = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 6 }, { kind = "take_token", mean = true, mask = "there" }]
loss       = [{ kind = "negative_sampling", negatives = 3.0 }]
head.there = { from = "length", layers = [{ kind = "first_tokens", tokens = 4 }] }
head.score.from = ["length", "tokens"]

[model.fasttext]
extends    = "regression"
dataset    = { name = "csv", file = "FILE", labels = "class", columns = { images = ["p*"], tokens = ["k*"], length = "n" } }
encoder    = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 6, mask = "there" }]
loss       = [{ kind = "cross_entropy", on = "y", weight = 3.0 }]
head.there = { from = "length", layers = [{ kind = "first_tokens", tokens = 4 }] }
head.y.layers = [{ kind = "dense", units = 5, bias = false }]

[model.glove]
extends = "skip-gram"
loss    = [{ kind = "glove", against = "tokens", x_max = 4.0, alpha = 0.5 }]
head.bias = { from = "tokens", layers = [{ kind = "embedding", vocabulary = 7, units = 1 }, { kind = "flatten" }] }
head.score.layers = [{ kind = "embedding", vocabulary = 7, units = 6 }, { kind = "dot", with = "code", plus = ["bias"] }]

[model.turned]
extends = "language"
encoder = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 8 }, { kind = "attention", heads = 2, causal = true, position = "rotary" }]
loss    = [{ kind = "next_token", on = "next", against = "tokens" }]
head.next = { from = "encoder.1", layers = [{ kind = "token_dense", units = 7 }] }

[model.recurrent]
extends = "language"
encoder = [{ kind = "embedding", from = "tokens", vocabulary = 7, units = 6 }, { kind = "recurrent", units = 5, cell = "lstm" }, { kind = "recurrent", units = 6 }]

[model.blanks]
extends = "language"
encoder = [
  { kind = "replace", from = "tokens", mask = "hidden", by = 7 }, { kind = "embedding", vocabulary = 8, units = 6 }, { kind = "position" },
  { kind = "transformer", heads = 2, ratio = 2, mask = "there" },
]
loss    = [{ kind = "masked_token", on = "token", against = "tokens", hidden = "hidden", length = "length" }]
column.hidden = { kind = "bernoulli", shape = [4] }
head.there = { from = "length", layers = [{ kind = "first_tokens", tokens = 4 }] }
head.next  = false
head.token = { from = "encoder.3", layers = [{ kind = "token_dense", units = 7 }] }

[model.gan]
dataset        = { name = "npy", images = "none.npy" }
encoder        = [{ kind = "dense", units = 4, activation = "tanh" }]
decoder        = []
column.noise   = { kind = "normal", shape = [3] }
column.true    = { kind = "uniform" }
column.false   = { kind = "constant" }
head.generated = { from = "noise", layers = [{ kind = "dense", units = 5, activation = "relu" }, { kind = "dense", units = 36, activation = "sigmoid" }] }
head.real      = { layers = [{ kind = "dense", units = 1, activation = "sigmoid" }] }
head.judged    = { from = "generated", layers = [{ kind = "dense", units = 4, activation = "tanh", share = "encoder.0" }, { kind = "dense", units = 1, activation = "sigmoid", share = "head.real.0" }] }
loss           = [{ kind = "bce", name = "accepts", on = "real", against = "true" }, { kind = "bce", name = "rejects", on = "judged", against = "false" }, { kind = "bce", name = "fools", on = "judged", against = "true" }]
player.judge   = { trains = ["encoder.*", "head.real.*"], losses = ["accepts", "rejects"] }
player.forger  = { trains = "head.generated.*", losses = "fools" }
`

// torchTable writes a table with the columns that the models of torchDeclared read. It returns torchDeclared with the path of
// the table.
func torchTable(t *testing.T, f torchFixture) string {
	t.Helper()
	var names, zeros []string
	for prefix, n := range map[string]int{"p": f.Side * f.Side, "y": 2, "s": 2, "w": 0, "n": 0, "l": 3, "k": 4, "class": 0} {
		if n == 0 {
			names = append(names, prefix)
		}
		for i := range n {
			names = append(names, fmt.Sprintf("%s%02d", prefix, i))
		}
	}
	slices.Sort(names)
	for _, name := range names {
		zero := "0.5"
		if name[0] == 'k' || name == "n" {
			zero = "0"
		} else if name == "class" {
			zero = "CLASS"
		}
		zeros = append(zeros, zero)
	}
	path := filepath.Join(t.TempDir(), "columns.csv")
	rows := strings.Join(names, ",") + "\n"
	for class := range f.Classes {
		rows += strings.Replace(strings.Join(zeros, ","), "CLASS", fmt.Sprint(class), 1) + "\n"
	}
	fatal.If(t, os.WriteFile(path, []byte(rows), 0o600))
	return strings.ReplaceAll(torchDeclared, "FILE", path)
}

// Five steps of every model agree with PyTorch in float64, on both back ends: losses, terms and parameters.
func TestModelsAgreeWithPyTorchOverFiveSteps(t *testing.T) {
	f := readTorchModels(t)
	file, err := config.Load("models.toml", []byte(torchTable(t, f)))
	fatal.If(t, err)
	workers := team.New(2)
	defer workers.Close()
	backends := map[string]func(p *graph.Program) (ir.Runner[float64], error){
		"tape": func(p *graph.Program) (ir.Runner[float64], error) { return tape.Compile[float64](p) },
		"engine": func(p *graph.Program) (ir.Runner[float64], error) {
			m, err := p.Module()
			if err != nil {
				return nil, err
			}
			return engine.Compile[float64](m, workers)
		},
	}
	for _, want := range f.Models {
		for name, compile := range backends {
			t.Run(want.Name+" on the "+name, func(t *testing.T) {
				spec, err := file.Model(want.Name)
				fatal.If(t, err)
				shape := []int{f.Side, f.Side}
				if len(spec.Columns()) > 0 {
					shape = []int{f.Side * f.Side}
				}
				m, err := graph.New(spec, shape)
				fatal.If(t, err)
				lend(m)
				p, err := m.Program(graph.Request{Batch: f.Images, Want: slices.DeleteFunc(m.TrainingOutputs(), func(name string) bool { return name == losses.Code }), Dtype: tensor.Float64})
				fatal.If(t, err)
				r, err := compile(p)
				fatal.If(t, err)
				defer r.Close()
				want.compare(t, f, p, r, gradientsOf(t, spec))
			})
		}
	}
}

// compare trains by Adam with a learning rate of 0.01, and compares the losses of every step and the final parameters with
// PyTorch. The function gradients returns the gradients after a run.
func (m torchModel) compare(t *testing.T, f torchFixture, p *graph.Program, r ir.Runner[float64], gradients func(p *graph.Program, r ir.Runner[float64]) ([][]float64, error)) {
	t.Helper()
	parameters := map[string]torchParameter{}
	for _, q := range m.Parameters {
		parameters[q.Path] = q
	}
	constant := 0 // such as the waves of positions
	for _, b := range p.Parameters {
		if _, ok := parameters[b.Path]; !ok && !b.Trainable && !b.Frozen {
			constant++
		}
	}
	expect.Equal(t, len(p.Parameters), len(parameters)+constant, "the program has", len(p.Parameters)-constant, "parameters, PyTorch's", len(parameters))
	moments := make([][2][]float64, len(p.Parameters))
	for i, b := range p.Parameters {
		moments[i] = [2][]float64{make([]float64, len(b.Data)), make([]float64, len(b.Data))}
		q, ok := parameters[b.Path]
		if !ok && !b.Trainable && !b.Frozen {
			continue
		}
		if !ok || !slices.Equal(q.Shape, b.Shape) {
			t.Fatalf("%s of shape %v, PyTorch's is %v", b.Path, b.Shape, q.Shape)
		}
		copy(r.Parameter(i), q.start())
	}
	for step, want := range m.Losses {
		for i, in := range p.Inputs {
			fatal.If(t, r.Bind(i, m.input(f, in, step)))
		}
		for i, b := range p.Parameters {
			if m.Name == "phased" && strings.HasSuffix(b.Path, "."+layers.Switch) { // the phase of a hook: steps 1 to 3
				r.Parameter(i)[0] = 0
				if step >= 1 && step <= 3 {
					r.Parameter(i)[0] = 1
				}
			}
		}
		fatal.If(t, r.Run())
		for i, tap := range p.Taps {
			if len(tap.Node.Shape()) > 0 { // the gradient of a term
				continue
			}
			if got, want := r.Tap(i)[0], want[tap.Name]; !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("step %d: %s is %v, PyTorch's %v", step, tap.Name, got, want)
			}
		}
		all, err := gradients(p, r)
		fatal.If(t, err)
		for i, g := range all {
			if g != nil {
				adam(r.Parameter(i), g, moments[i], step+1)
			}
		}
		average(p, r)
	}
	for i, b := range p.Parameters {
		if _, ok := parameters[b.Path]; !ok {
			continue
		}
		for j, got := range r.Parameter(i) {
			if want := parameters[b.Path].Values[j]; !(math.Abs(got-want) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("%s: value %d is %v after five steps, PyTorch's %v", b.Path, j, got, want)
			}
		}
	}
}

// lend provides the parameters of a teacher to a model that reads them.
func lend(m *graph.Model) {
	if m.Spec.Hooks[config.DefaultTeacher] == nil {
		return
	}
	for _, q := range m.Parameters {
		m.Lent = append(m.Lent, &graph.Parameter{Path: config.DefaultTeacher + "." + q.Path, Shape: q.Shape, Data: slices.Clone(q.Data), Frozen: true})
	}
}

// average updates the parameters of a teacher with a decay of 0.9.
func average(p *graph.Program, r ir.Runner[float64]) {
	own := map[string]int{}
	for i, b := range p.Parameters {
		own[b.Path] = i
	}
	for i, b := range p.Parameters {
		if path, ok := strings.CutPrefix(b.Path, config.DefaultTeacher+"."); ok {
			for k, w := range r.Parameter(own[path]) {
				r.Parameter(i)[k] = 0.9*r.Parameter(i)[k] + 0.1*w
			}
		}
	}
}

// gradientsOf returns a function that computes the gradients of a step after a run: the gradients of the program, or the
// gradients by which a hook of the model replaces them. The hook works in float32; its changes of parameters and gradients are
// added to the values in float64.
func gradientsOf(t *testing.T, spec *config.Model) func(p *graph.Program, r ir.Runner[float64]) ([][]float64, error) {
	change := func(*hooks.Gradients) error { return nil }
	for _, hook := range spec.Hooks {
		active, err := hook.Attach(firstStep{})
		fatal.If(t, err)
		if active.Gradients != nil {
			change = active.Gradients
		}
	}
	return func(p *graph.Program, r ir.Runner[float64]) ([][]float64, error) {
		var g hooks.Gradients
		var start, before [][]float64
		again := func() {
			g.Values, before = nil, nil
			for i := range p.Parameters {
				g.Values, before = append(g.Values, single(r.Gradient(i))), append(before, slices.Clone(r.Gradient(i)))
			}
		}
		again()
		for i, b := range p.Parameters {
			g.Of = append(g.Of, &hooks.Parameter{Path: b.Path, Shape: b.Shape, Data: single(r.Parameter(i))})
			start = append(start, slices.Clone(r.Parameter(i)))
		}
		for _, term := range spec.Terms() {
			of := hooks.TermGradient{Term: term}
			for _, b := range p.Parameters {
				of.Values = append(of.Values, nil)
				for i, tap := range p.Taps {
					if tap.Name == graph.GradientName(term, b.Path) {
						of.Values[len(of.Values)-1] = single(r.Tap(i))
					}
				}
			}
			g.Terms = append(g.Terms, of)
		}
		g.Again = func() error {
			for i, own := range g.Of {
				for k, v := range own.Data {
					r.Parameter(i)[k] += float64(v) - float64(float32(start[i][k]))
				}
			}
			err := r.Run()
			again()
			return err
		}
		err := change(&g)
		for i, values := range g.Values {
			copy(r.Parameter(i), start[i])
			for k, v := range values {
				before[i][k] += float64(v) - float64(float32(before[i][k]))
			}
		}
		return before, err
	}
}

// firstStep provides a hook with a training before its first step.
type firstStep struct{ hooks.Training }

func (firstStep) Parameters(string) []*hooks.Parameter { return nil }
func (firstStep) Random(int) *rand.Rand                { return rand.New(rand.NewPCG(1, 2)) }
func (firstStep) Step() int                            { return 0 }

// single returns values in float32.
func single(values []float64) []float32 {
	list := lists.Map(values, func(v float64) float32 { return float32(v) })
	return list
}

// input returns the values of one input of a program at a step.
func (m torchModel) input(f torchFixture, in graph.Input, step int) []float64 {
	stream := func(name string) int { return m.Inputs[name] + step }
	pixels := f.Images * f.Side * f.Side
	switch in.Name {
	case graph.Images:
		return drawn(stream("images"), pixels)
	case graph.Views:
		return slices.Concat(drawn(stream("view.1"), pixels), drawn(stream("view.2"), pixels))
	case graph.Labels:
		labels := f.labels(stream("labels"))
		if m.Name == "semi-supervised" {
			labels = f.fewLabels(stream("labels"), step)
		}
		one := make([]float64, volume.Of(in.Shape))
		for i, class := range labels {
			if class >= 0 {
				one[i*f.Classes+class] = 1
			}
		}
		return one
	}
	name := in.Name
	if in.Column != "" {
		name = in.Column
	}
	if name == "false" {
		return make([]float64, volume.Of(in.Shape))
	}
	if _, ok := m.Inputs[name]; !ok {
		panic(fmt.Sprintf("the input %s is not PyTorch's", in.Name))
	}
	values := drawn(stream(name), volume.Of(in.Shape))
	if m.Name == "masked" {
		return smallest(values, 9, 6)
	}
	for i, u := range values {
		if m.Name == "blanks" && name == "encoder.0.noise" { // what stands in the place of a hidden token, -1 for itself
			if values[i] = 7; u < 0.5 {
				values[i] = max(-1, math.Floor((u-0.25)*28))
			}
		}
		switch name {
		case "seen", "tags", "hidden":
			values[i] = 0
			if u < 0.5 {
				values[i] = 1
			}
		case "tokens":
			values[i] = math.Floor(u * 7)
		case "length":
			values[i] = 1 + math.Floor(u*4)
		}
	}
	return values
}

// smallest returns a mask of the n smallest values of every row; row is the length of a row.
func smallest(values []float64, row, n int) []float64 {
	marks := make([]float64, len(values))
	for from := 0; from < len(values); from += row {
		bound := slices.Sorted(slices.Values(values[from : from+row]))[n]
		for i, v := range values[from : from+row] {
			if v < bound {
				marks[from+i] = 1
			}
		}
	}
	return marks
}

// adam updates w by the rule of Kingma and Ba, with PyTorch's defaults.
func adam(w, g []float64, moments [2][]float64, step int) {
	const rate, beta1, beta2, epsilon = 0.01, 0.9, 0.999, 1e-8
	for i := range w {
		m, v := &moments[0][i], &moments[1][i]
		*m = beta1**m + (1-beta1)*g[i]
		*v = beta2**v + (1-beta2)*g[i]*g[i]
		mean, square := *m/(1-math.Pow(beta1, float64(step))), *v/(1-math.Pow(beta2, float64(step)))
		w[i] -= rate * mean / (math.Sqrt(square) + epsilon)
	}
}
