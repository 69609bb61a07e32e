package train

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph/tape"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/losses"
)

// multiplied returns the model of the tests with a multiplier that controls the sparseness.
func multiplied(t *testing.T) string {
	t.Helper()
	text := strings.Replace(everything, "kind = \"kl\"\nweight = 0.001", `kind = "hoyer"
target = 1.0
weight = { kind = "multiplier", limit = 0.6, rate = 0.01, from = 0.001 }`, 1)
	if text == everything {
		t.Fatal("the model of the tests has no kl")
	}
	return text
}

// The weights equal the formula, computed from the terms of the steps. With one batch per epoch, each line of metrics is one
// step.
func TestAMultiplierFollowsItsTerm(t *testing.T) {
	m := model(t, multiplied(t), "train.batch=1000000", "train.epochs=5", "hook.early_stopping=false")
	r := trained(t, m, Options{})
	rule := m.Losses[1].Weight.(*losses.Multiplier)
	weight := rule.From
	for i, line := range lines(t, r.Run) {
		value := line["hoyer"].(float64) / float64(float32(weight))
		if value < 0.1 || value > 1 {
			t.Fatalf("step %d: the term without its weight is %v, want a mean of 1 - sparseness", i+1, value)
		}
		weight = rule.Next(weight, value)
	}
	from, err := readState(r.Run + "/state.safetensors")
	fatal.If(t, err)
	if got := from.Weights; len(got) != 3 || got[0] != 0 || math.Abs(got[1]-weight) > 1e-7*weight || got[2] != 0 {
		t.Errorf("after 5 steps the weights are %v, want [0 %v 0]", got, weight)
	}
}

// views is a model that compares two views, without their augmentations.
const views = `encoder=[{kind="dense",units=3}]
decoder=[]
loss=[{kind="nt_xent",on="code"}]
[[model.m.view]]
`

// A term that is defined only on [0,1] is meaningless for other values: for values below 0, a cross entropy has no lower
// bound.
func TestImagesOutsideTheUnitIntervalAreRefusedIfATermNeedsIt(t *testing.T) {
	load := func(scale float32) LoadData {
		return func(context.Context, *config.Dataset) (*data.Set, error) {
			pixels := lists.Of(20*64, func(i int) float32 { return scale * float32(i%7) / 6 })
			images, err := data.NewFloats([]int{8, 8}, pixels, nil)
			return &data.Set{Name: "mine", Train: images, Shape: images.Shape}, err
		}
	}
	for _, c := range []struct {
		settings string
		scale    float32
		says     string // expected error; "" for none
	}{
		{`encoder=[{kind="dense",units=3,activation="sigmoid"}]`, 10, ""},
		{`encoder=[{kind="dense",units=3,activation="sigmoid"}]
loss=[{kind="mse"},{kind="kl"}]`, -10, ""},
		{`encoder=[{kind="dense",units=3}]
decoder=[{kind="dense",activation="sigmoid"}]
loss=[{kind="bce"}]`, 1, ""},
		{`encoder=[{kind="dense",units=3}]
decoder=[{kind="dense",activation="sigmoid"}]
loss=[{kind="bce"}]`, 10, "has values from 0 to 10, but loss[0] (bce) needs the images in [0,1]"},
		{`encoder=[{kind="flatten"}]
loss=[{kind="mse"},{kind="kl"}]`, 1, ""},
		{`encoder=[{kind="flatten"}]
loss=[{kind="mse"},{kind="kl"}]`, -2, "has values from -2 to -0, but loss[1] (kl) needs the code in [0,1]"},
		{views + `augment=["flip", "noise"]`, 10, "has values from 0 to 10, but view[0].augment[1] (noise) clips images to [0,1]; save them as uint8"},
		{views + `augment=[{kind="blur",probability=0.0}, "flip"]`, 10, ""},
		{views + `augment=["brightness","contrast","blur","noise"]`, 1, ""},
	} {
		m := model(t, "[model.m]\ndataset=\"bars\"\ntrain={epochs=1,batch=10}\n"+c.settings+"\n")
		_, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t), Load: load(c.scale)})
		var wrong *data.Error
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s of %g: %v", c.settings, c.scale, err)
		case c.says != "" && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s of %g: got %v, want %q", c.settings, c.scale, err, c.says)
		}
	}
}
