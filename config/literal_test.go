package config_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// memory returns 20 random images of 6x5 pixels.
func memory(t *testing.T) *data.Memory {
	t.Helper()
	values := lists.Of(20*30, func(int) float32 { return rand.Float32() })
	m, err := data.FromFloats(values, []int{6, 5}, nil)
	fatal.If(t, err)
	return m
}

func TestALiteralIsTheModelOfTheSameText(t *testing.T) {
	bias, err := config.ParseSet("decoder.0.bias=false")
	fatal.If(t, err)
	got, err := config.Complete(&config.Model{
		Name:      "m",
		Dataset:   config.Dataset{Source: &data.Bars{Count: 50}, Selection: data.Selection{Validation: data.Validation{Fraction: 0.5}}},
		Encoder:   []config.Layer{{Layer: &layers.Dense{Units: 7, Activation: "relu"}}, {Kind: "dense", Layer: &layers.Dense{Units: 5, Activation: "sigmoid", Init: &layers.HeNormal{}}}},
		Decoder:   []config.Layer{{Layer: &layers.Dense{}}},
		Losses:    []config.Loss{{Loss: &losses.MSE{}}, {Weight: &losses.Constant{Value: 0.01}, Loss: &losses.KL{Target: 0.1}}},
		Optimizer: config.Optimizer{Optimizer: &optim.SGD{Rate: 0.2}, Schedule: config.Schedule{Schedule: &optim.Constant{}, WarmupEpochs: 2}},
		Hooks:     map[string]hooks.Hook{"average": &hooks.Average{}, "slow": &hooks.Average{Decay: 0.9999}},
		Train:     config.Train{Epochs: 3},
	}, bias)
	fatal.If(t, err)
	f, err := config.Load("models.toml", []byte(`[model.m]
dataset = { name = "bars", count = 50, validation = 0.5 }
encoder = [{ kind = "dense", units = 7, activation = "relu" }, { kind = "dense", units = 5, activation = "sigmoid", init = "he_normal" }]
decoder = [{ kind = "dense", bias = false }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.01, target = 0.1 }]
optimizer = { kind = "sgd", learning_rate = 0.2, schedule = { kind = "constant", warmup_epochs = 2 } }
hook.average = {}
hook.slow = { kind = "average", decay = 0.9999 }
train = { epochs = 3 }
`))
	fatal.If(t, err)
	want, err := f.Model("m")
	fatal.If(t, err)
	expect.Equal(t, string(got.Text()), string(want.Text()))
}

func TestALiteralOfImagesInMemoryIsChecked(t *testing.T) {
	images := memory(t)
	m, err := config.Complete(&config.Model{Dataset: config.Dataset{Source: images}, Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3}}}})
	fatal.If(t, err)
	if m.Name != config.LiteralName || m.Dataset.Source != data.Source(images) || len(m.Decoder) != 1 || len(m.Losses) != 1 || m.Train.Batch != 128 {
		t.Errorf("got %+v", m)
	}
	layout, err := m.Layout([]int{6, 5})
	if err != nil || layout.Decoder[0].Out[0] != 30 {
		t.Errorf("layout %+v, error %v", layout, err)
	}
	if _, err := config.Complete(m); err != nil { // a complete model can be completed again
		t.Errorf("completed twice: %v", err)
	}
	small := &config.Model{Dataset: config.Dataset{Source: images}, Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3}}},
		Decoder: []config.Layer{{Layer: &layers.Dense{Units: 29}}}}
	expect.Error(t, expect.Err(config.Complete(small)), "decoder[0] (dense): the decoder gives 29 values, but the images have 6x5 = 30", "a decoder of 29 values")
}

// In a struct literal a weight of 0 at the end of a schedule is a value, not a missing one. A final weight of 1 must be
// set.
func TestALiteralWeightFallsToZero(t *testing.T) {
	m, err := config.Complete(&config.Model{
		Dataset: config.Dataset{Source: memory(t)},
		Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3, Activation: "sigmoid"}}},
		Losses: []config.Loss{{Loss: &losses.MSE{}}, {Loss: &losses.L1{}, Weight: &losses.Linear{Between: losses.Between{From: 2, To: 0, Epochs: 4}}},
			{Loss: &losses.L1{}, Weight: &losses.Step{Between: losses.Between{To: 3}}}},
	})
	fatal.If(t, err)
	for epoch, want := range map[float64]float64{0: 2, 2: 1, 4: 0, 100: 0} {
		expect.Equal(t, m.Losses[1].Weight.At(epoch), want, "epoch", epoch)
	}
	if w := m.Losses[2].Weight; w.At(9) != 0 || w.At(10) != 3 {
		t.Errorf("a step takes the default of 10 epochs: got %v", w)
	}
	f, err := config.Load("models.toml", []byte(`[model.m]
encoder = [{ kind = "dense", units = 3 }]
loss    = [{ kind = "l1", weight = { kind = "linear", epochs = 4 } }]
`))
	if err == nil {
		_, err = f.Model("m")
	}
	expect.Error(t, err, `missing key "to"`, "a schedule without its end")
}

// A date as a label would give the head 20 million units.
func TestAHeadHasNoMoreUnitsThanThereCanBeClasses(t *testing.T) {
	head := func(label int) error {
		labels := make([]int, 20)
		labels[7] = label
		images, err := data.FromFloats(make([]float32, 20*30), []int{6, 5}, labels)
		fatal.If(t, err)
		_, err = config.Complete(&config.Model{Dataset: config.Dataset{Source: images},
			Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3}}},
			Heads:   map[string]config.Head{"class": {Layers: []config.Layer{{Layer: &layers.Dense{}}}}},
			Losses:  []config.Loss{{Loss: &losses.MSE{}}, {Loss: &losses.CrossEntropy{}, On: "class"}}})
		return err
	}
	for _, label := range []int{1 << 16, 20240101, math.MaxInt} {
		err := head(label)
		expect.Error(t, err, "head.class.layers[0] (dense): units: the number of classes comes from the largest label", "label", label)
	}
	expect.NoError(t, head(1<<16-1), "65,536 classes")
}

func TestTheLayoutOfAHandmadeModelNamesANilLayer(t *testing.T) {
	var none *layers.Dense
	for _, l := range []layers.Layer{nil, none} {
		m := &config.Model{Name: "m", Encoder: []config.Layer{{Kind: "dense", Layer: l}}, Decoder: []config.Layer{{Kind: "dense", Layer: l}}}
		expect.Error(t, expect.Err(m.Layout([]int{6, 5})), `model "m": encoder[0] (dense): there is no layer`, l)
	}
}

type unknownLayer struct{ layers.Dense }

func TestWhatIsWrongWithALiteralNamesTheField(t *testing.T) {
	var none *layers.Dense
	for want, m := range map[string]*config.Model{
		"the model is nil":                                        nil,
		`model "model": the encoder is empty`:                     {},
		`encoder[0] (dense): units: got -3, want`:                 {Encoder: []config.Layer{{Layer: &layers.Dense{Units: -3}}}},
		`encoder[0] (dense): missing key "units"`:                 {Encoder: []config.Layer{{Layer: &layers.Dense{}}}},
		`encoder[0]: missing key "kind"`:                          {Encoder: []config.Layer{{}}},
		`encoder[0]: got a nil *layers.Dense`:                     {Encoder: []config.Layer{{Layer: none}}},
		`encoder[0]: *config_test.unknownLayer is not registered`: {Encoder: []config.Layer{{Layer: &unknownLayer{}}}},
		`kind: got "conv2d", but the part is "dense"`:             {Encoder: []config.Layer{{Kind: "conv2d", Layer: &layers.Dense{Units: 3}}}},
		`train: epochs: got -1`:                                   {Encoder: []config.Layer{{Layer: &layers.Dense{Units: 3}}}, Train: config.Train{Epochs: -1}},
		`loss[0] (kl): target: got 2.0`:                           {Losses: []config.Loss{{Loss: &losses.KL{Target: 2}}}},
		`dataset (bars): count: got -4`:                           {Dataset: config.Dataset{Source: &data.Bars{Count: -4}}},
	} {
		_, err := config.Complete(m)
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "<nil>", "nil"), want) {
			t.Errorf("got %v\nwant %q", err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "^^^") || strings.Contains(err.Error(), ":1:")) {
			t.Errorf("a place in a text that nobody wrote: %v", err)
		}
	}
}
