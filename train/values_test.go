package train

import (
	"context"
	"errors"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph/tape"
)

// views is a model that compares two views, without their augmentations.
const views = `encoder=[{kind="dense",units=3}]
decoder=[]
loss=[{kind="nt_xent",on="code"}]
[[model.m.view]]
`

// A term that is only defined on [0,1] is meaningless for other values: below 0 a cross entropy is unbounded.
func TestImagesOutsideTheUnitIntervalAreRefusedIfATermNeedsIt(t *testing.T) {
	load := func(scale float32) LoadData {
		return func(context.Context, *config.Dataset) (*data.Set, error) {
			pixels := make([]float32, 20*64)
			for i := range pixels {
				pixels[i] = scale * float32(i%7) / 6
			}
			images, err := data.NewFloats([]int{8, 8}, pixels, nil)
			return &data.Set{Name: "mine", Train: images, Shape: images.Shape}, err
		}
	}
	for _, c := range []struct {
		settings string
		scale    float32
		says     string // "" is fine
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
