package config

import (
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestEarlyStoppingOnTestImagesIsAWarning(t *testing.T) {
	const text = `[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 4 }]
`
	for set, want := range map[string]int{"hook.early_stopping=false": 0, "hook.early_stopping.patience=3": 0, "dataset.validation=test": 0} {
		expect.Equal(t, len(model(t, load(t, text), "m", set).Warnings()), want, set)
	}
	for _, set := range []string{"hook.early_stopping.patience=3"} {
		if got := model(t, load(t, text), "m", set, "dataset.validation=test").Warnings(); len(got) != 1 || !strings.Contains(got[0], `model "m": early stopping`) {
			t.Errorf("%s: %q", set, got)
		}
	}
}

func TestAHeadNamedInputIsAWarning(t *testing.T) {
	text := strings.Replace(headed, `layers = [{ kind = "dense" }]`, `layers = [{ kind = "dense", units = 10 }]`, 1)
	if got := model(t, load(t, strings.ReplaceAll(text, "class", "input")), "m").Warnings(); len(got) != 1 || !strings.Contains(got[0], "head.input cannot be exported") {
		t.Errorf("got %q", got)
	}
}

func TestEarlyStoppingOnTestImagesOrByTheTrainingLossIsAWarning(t *testing.T) {
	const masked = `[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "patches", size = 7 }, { kind = "mask_patches", ratio = 0.5 }, { kind = "take_token", mean = true }]
decoder = [{ kind = "dense" }]
loss = [{ kind = "mse", mask = "hidden" }]
[model.m.head.hidden]
from = "encoder.1.mask"
layers = [{ kind = "reshape", shape = [4, 4] }, { kind = "upsample", factor = 7 }]
`
	for text, want := range map[string]string{headed: "on the test images", masked: "by the training loss"} {
		text = strings.Replace(text, `layers = [{ kind = "dense" }]`, `layers = [{ kind = "dense", units = 10 }]`, 1)
		if got := model(t, load(t, text), "m", "hook.early_stopping.patience=3", "dataset.validation=test").Warnings(); len(got) != 1 || !strings.Contains(got[0], want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A bias before batch norm gives a warning in every list of layers, unless another layer lies in between or the bias is
// declared explicitly.
func TestABiasBeforeBatchNormIsAWarning(t *testing.T) {
	const text = `[model.m]
dataset = "fashion-mnist"
encoder = [
  { kind = "conv2d", filters = 2 },
  { kind = "batch_norm" },
  { kind = "conv2d", filters = 2, bias = false },
  { kind = "batch_norm" },
  { kind = "conv2d", filters = 2, activation = "relu" },
  { kind = "batch_norm" },
  { kind = "residual", layers = [{ kind = "conv2d", filters = 2, bias = true }, { kind = "batch_norm" }, { kind = "conv2d", filters = 2 }, { kind = "batch_norm" }] },
  { kind = "dense", units = 4 },
  { kind = "relu" },
  { kind = "batch_norm" },
]
decoder = [{ kind = "dense" }]
head = { side = { layers = [{ kind = "dense" }, { kind = "batch_norm" }] } }
loss = [{ kind = "mse" }, { kind = "cross_entropy", on = "side" }]
`
	got := model(t, load(t, text), "m").Warnings()
	var places []string
	for _, line := range got {
		place, _, _ := strings.Cut(strings.TrimPrefix(line, `model "m": `), ".bias has no effect")
		places = append(places, place)
	}
	expect.Slice(t, places, []string{"encoder[0]", "encoder[6].layers[2]", "head.side.layers[0]"}, got)
}

// Keys without effect give warnings.
func TestKeysWithoutEffectAreWarnings(t *testing.T) {
	const text = `[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 4 }, { kind = "top_k", k = 3 }, { kind = "residual", layers = [{ kind = "top_k", k = 1 }] }]
`
	const taught = "hook.teacher.decay=0.9"
	for _, c := range []struct {
		sets []string
		want string // "" means no warning
	}{
		{nil, ""},
		{[]string{taught}, "hook.teacher has no effect: no loss reads this teacher"},
		{[]string{taught, `loss=[{kind="mse"},{kind="consistency"}]`}, ""},
		{[]string{`head.h={layers=[{kind="dense",units=4},{kind="teacher_centre"}]}`, `loss=[{kind="mse"},{kind="l1",on="h"}]`},
			"the centre of teacher_centre never moves: no loss reads a teacher"},
		{[]string{taught, `head.h={layers=[{kind="dense",units=4},{kind="teacher_centre"}]}`, `loss=[{kind="mse"},{kind="consistency",on="h"}]`}, ""},
		{[]string{"encoder.1.k=4"}, "encoder[1].k has no effect: top_k keeps 4 values of 4"},
		{[]string{"train.batch=1", `head.h={layers=[{kind="dense",units=4,bias=false},{kind="batch_norm"}]}`, `loss=[{kind="mse"},{kind="l1",on="h"}]`},
			"head.h.layers[1]: with train.batch = 1 the output of batch_norm is its shift"},
		{[]string{"encoder.2.layers.0.k=9"}, "encoder[2].layers[0].k has no effect: top_k keeps 9 values of 4"},
	} {
		got := model(t, load(t, text), "m", c.sets...).Warnings()
		if c.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || c.want == "" || !strings.Contains(got[0], c.want) {
			t.Errorf("%q: got %q, want %q", c.sets, got, c.want)
		}
	}
}

// The training ends before the last weights of the schedules: a term never gets them.
func TestWeightsThatChangeAfterTheEndAreAWarning(t *testing.T) {
	const text = `[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }, { kind = "l1", weight = { kind = "points", epochs = [2, 2, 6], weights = [1, 3, 1] } },
  { kind = "l2", weight = { kind = "linear", to = 1.0, epochs = 4 } }]
`
	for epochs, want := range map[string]string{"3": "l1 after epoch 6, l2 after epoch 4;", "5": "last value: l1 after epoch 6;", "6": ""} {
		got := model(t, load(t, text), "m", "train.epochs="+epochs).Warnings()
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || want == "" || !strings.Contains(got[0], "the training ends after epoch "+epochs) || !strings.Contains(got[0], want) {
			t.Errorf("%s epochs: got %q, want %q", epochs, got, want)
		}
	}
}

// A weight that jumps exactly at the end of the training is used by no step, a continuous one reaches its last value there.
func TestAWeightThatJumpsAtTheEndIsAWarning(t *testing.T) {
	for weight, warned := range map[string]bool{
		`{ kind = "step", from = 1.0, to = 0.5, epochs = 6 }`:                 true,
		`{ kind = "step", from = 0.0, to = 0.5, epochs = 6 }`:                 true,
		`{ kind = "step", from = 1.0, to = 0.5, epochs = 5 }`:                 false,
		`{ kind = "step", from = 0.5, to = 0.5, epochs = 6 }`:                 false,
		`{ kind = "points", epochs = [2, 6, 6], weights = [1, 1, 0.5] }`:      true,
		`{ kind = "points", epochs = [2, 6], weights = [1, 0] }`:              false,
		`{ kind = "points", epochs = [0], weights = [1] }`:                    false,
		`{ kind = "linear", from = 1.0, to = 0.0, epochs = 6 }`:               false,
		`{ kind = "cosine", from = 0.0, to = 1e-3, epochs = 6 }`:              false,
		`{ kind = "points", epochs = [5.999, 6], weights = [1e-9, 1000000] }`: false,
	} {
		text := "[model.m]\ndataset = \"fashion-mnist\"\nencoder = [{ kind = \"dense\", units = 4 }]\nloss = [{ kind = \"mse\" }, { kind = \"l1\", weight = " + weight + " }]\n"
		got := model(t, load(t, text), "m", "train.epochs=6").Warnings()
		if (len(got) > 0) != warned || warned && !strings.Contains(got[0], "last value: l1 after epoch 6;") {
			t.Errorf("%s: got %q, want a warning: %v", weight, got, warned)
		}
	}
}

func TestTheShippedModelsAreWithoutWarnings(t *testing.T) {
	f := load(t, string(shipped(t)))
	for _, name := range f.Names() {
		if got := model(t, f, name).Warnings(); len(got) > 0 && !strings.Contains(got[0], "early stopping") {
			t.Errorf("%q", got)
		}
	}
}

// Gradient surgery compares gradients of the same parameters: without a parameter that two of its terms share it does nothing.
func TestSurgeryWithoutASharedParameterIsAWarning(t *testing.T) {
	const text = `[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 4 }, { kind = "relu" }]
head.a = { layers = [{ kind = "dense", units = 10 }] }
head.b = { layers = [{ kind = "dense", units = 10 }] }
loss = [{ kind = "mse" }, { kind = "cross_entropy", on = "a" }, { kind = "cross_entropy", on = "b", name = "other" }]
hook.surgery = {}
`
	for sets, want := range map[string]int{
		"":                            0,
		`freeze=["encoder.*"]`:        1, // the decoder and the heads have one term each
		`freeze=["encoder.0.weight"]`: 0, // the bias is left
		`freeze=["encoder.*"];hook.surgery.terms=["cross_entropy", "other"]`:                                                                                                       1,
		`player={ x = { trains = ["encoder.*", "decoder.*"], losses = ["mse"] }, y = { trains = ["head.*"], losses = ["cross_entropy", "other"] } }`:                               1,
		`player={ x = { trains = ["encoder.*", "decoder.*"], losses = ["mse", "other"] }, y = { trains = ["head.*"], losses = ["cross_entropy", "other"] } }`:                      0,
		`freeze=["encoder.*"];loss=[{ kind = "mse" }, { kind = "l1", on = "output" }, { kind = "cross_entropy", on = "a" }, { kind = "cross_entropy", on = "b", name = "other" }]`: 0,
	} {
		var changes []string
		if sets != "" {
			changes = strings.Split(sets, ";")
		}
		got := model(t, load(t, text), "m", changes...).Warnings()
		got = slices.DeleteFunc(got, func(w string) bool { return !strings.Contains(w, "hook.surgery has no effect") })
		expect.Equal(t, len(got), want, sets, got)
	}
}

// What a student gets wrong without a word: the shape of the images tells the rest.
func TestSilentMistakesAreWarnings(t *testing.T) {
	const encoder, gaussian = "encoder = [{ kind = \"dense\", units = 4 }]\n", "encoder = [{ kind = \"gaussian\", units = 2 }]\n"
	for _, c := range []struct{ text, want string }{
		{encoder + "dataset = \"fashion-mnist\"\ndecoder = []\nhead.class = { layers = [{ kind = \"dense\", units = 10, activation = \"softmax\" }] }\nloss = [{ kind = \"cross_entropy\" }]",
			`loss[0] (cross_entropy) applies a softmax itself, but head.class.layers[0] (dense) gives values in [0,1]`},
		{encoder + "dataset = \"fashion-mnist\"\ndecoder = []\nhead.class = { layers = [{ kind = \"dense\", units = 10 }, { kind = \"tanh\" }] }\nloss = [{ kind = \"cross_entropy\" }]",
			`head.class.layers[1] (tanh) gives values in [-1,1]`},
		{encoder + "dataset = \"fashion-mnist\"\ndecoder = []\nhead.class = { layers = [{ kind = \"dense\", units = 10 }] }\nloss = [{ kind = \"cross_entropy\" }]", ""},
		{gaussian, `encoder[0] (gaussian) draws codes from a distribution that no term compares with its prior; add { kind = "gaussian_kl" }`},
		{"encoder = [{ kind = \"rectified_gaussian\", units = 2 }]", `add { kind = "rectified_kl" }`},
		{gaussian + `loss = [{ kind = "mse" }, { kind = "l2_activity", on = "encoder.0.mean" }]`, ""},
		{gaussian + `loss = [{ kind = "mse" }, { kind = "gaussian_kl" }]`, "the codes will collapse to the prior; for the evidence lower bound write weight = 1024 / (2 s²)"},
		{gaussian + "decoder = [{ kind = \"dense\", activation = \"sigmoid\" }]\nloss = [{ kind = \"bce\" }, { kind = \"gaussian_kl\", weight = 2 }]", "for the evidence lower bound write weight = 2048"},
		{gaussian + "decoder = [{ kind = \"dense\", activation = \"sigmoid\" }]\nloss = [{ kind = \"bce\", weight = 1024 }, { kind = \"gaussian_kl\", weight = 4 }]", ""},
	} {
		got := strings.Join(model(t, load(t, "[model.m]\n"+c.text+"\n"), "m").Warnings(), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s warns %q, want %q", c.text, got, c.want)
		}
	}
	err := load(t, "[model.m]\n"+gaussian+"loss = [{ kind = \"mse\" }, { kind = \"kl\" }]\n").Check()
	expect.Error(t, err, `the divergence of a layer gaussian from its prior is kind = "gaussian_kl"`)
}

func TestRunningAveragesThatDoNotSettleAreAWarning(t *testing.T) {
	m := model(t, load(t, "[model.m]\nencoder = [{ kind = \"dense\", units = 4, bias = false }, { kind = \"batch_norm\" }]\ntrain = { epochs = 4, batch = 100 }\n"), "m")
	for samples, warned := range map[int]bool{400: true, 7400: true, 7500: false} {
		got := strings.Join(m.Unsettled(samples), "\n")
		if (got != "") != warned || warned && !strings.Contains(got, "need about 300 steps") || samples == 400 && !strings.Contains(got, "the training has 16; set momentum = 0.81") {
			t.Errorf("%d samples: %q", samples, got)
		}
	}
}

func TestALearningRateFarAboveTheDefaultIsAWarning(t *testing.T) {
	const text = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 4 }]\n"
	for set, want := range map[string]int{"optimizer.learning_rate=0.1": 0, "optimizer.learning_rate=10": 1, "optimizer.kind=adadelta": 0, "optimizer={kind=\"sgd\",learning_rate=2.0}": 0} {
		if got := model(t, load(t, text), "m", set).Warnings(); len(got) != want || want > 0 && !strings.Contains(got[0], "optimizer.learning_rate is 10, and the default of adam is 0.001") {
			t.Errorf("%s: %q", set, got)
		}
	}
}
