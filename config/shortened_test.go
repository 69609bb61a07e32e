package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// After a layer that leaves tokens out in training, a layer with parameters for all tokens gives an error with a
// position.
func TestTheShapesOfTheTrainingAreChecked(t *testing.T) {
	for _, c := range []struct{ encoder, want string }{
		{`{ kind = "flatten" }, { kind = "dense", units = 4 }`, "encoder[3] (dense): in training encoder.1 (mask_patches) leaves out tokens, and encoder.3.weight would have the shape [32 4] instead of [64 4]"},
		{`{ kind = "dense", units = 4 }`, "encoder[2] (dense): in training encoder.1 (mask_patches) leaves out tokens"},
		{`{ kind = "position" }, { kind = "take_token", mean = true }`, "encoder[2] (position)"},
		{`{ kind = "reshape", shape = [4, 16] }, { kind = "take_token", mean = true }`, "encoder[2] (reshape)"},
		{`{ kind = "transformer" }, { kind = "take_token", mean = true }`, ""},
		{`{ kind = "transformer" }, { kind = "mask_tokens", mask = "encoder.1.mask" }, { kind = "flatten" }, { kind = "dense", units = 4 }`, ""},
	} {
		f, err := Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 40 }\nencoder = [{ kind = \"patches\" }, { kind = \"mask_patches\", ratio = 0.5 }, "+c.encoder+"]\n"))
		fatal.If(t, err)
		_, err = f.Model("m")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "mask_tokens")) {
			t.Errorf("%s: got %v, want %q", c.encoder, err, c.want)
		}
	}
}

func TestADecoderThatKeepsTheTokensLeftOutIsRefused(t *testing.T) {
	f, err := Load("models.toml", []byte(`
[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "patches" }, { kind = "mask_patches", ratio = 0.5 }]
decoder = [{ kind = "token_dense", units = 16, from = "encoder.1" }]
`))
	fatal.If(t, err)
	expect.Error(t, expect.Err(f.Model("m")), "the output has the shape")
}

// A layer that looks up whole numbers checks the values of its column, also inside blocks, and if layers that only rearrange
// values come before it.
func TestWholeNumbersAreCheckedWhereverALayerReadsThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.csv")
	fatal.If(t, os.WriteFile(path, []byte("a,b,u,v\n1,2,1,0\n3,4,0,7\n"), 0o600))
	const embedding = `{ kind = "embedding", vocabulary = 5, units = 3 }, { kind = "flatten" }`
	for list, want := range map[string]bool{
		`{ kind = "reshape", shape = [2, 1] }, { kind = "flatten" }, ` + embedding:                                                            true,
		`{ kind = "concat", layers = [` + embedding + `] }`:                                                                                   true,
		`{ kind = "concat", layers = [{ kind = "residual", layers = [` + embedding + `, { kind = "dense", units = 2 }] }] }`:                  true,
		`{ kind = "flatten" }, { kind = "concat", layers = [{ kind = "reshape", shape = [2, 1] }, { kind = "flatten" }, ` + embedding + `] }`: true,
	} {
		f, err := Load("models.toml", []byte(strings.NewReplacer("FILE", path, "LIST", list).Replace(`
[model.m]
dataset = { name = "csv", file = "FILE", columns = { images = ["a", "b"], ids = ["u", "v"] } }
encoder = [{ kind = "dense", units = 3 }]
head.y = { from = "ids", layers = [LIST, { kind = "dense", units = 1 }] }
loss = [{ kind = "mse" }, { kind = "l1", on = "y" }]
`)))
		fatal.If(t, err)
		m, err := f.Model("m")
		fatal.If(t, err)
		layout, err := m.Layout([]int{2})
		fatal.If(t, err)
		found := slices.ContainsFunc(m.Wanted(layout), func(w Wanted) bool { return w.Column == "ids" && w.Layer && !w.Holds(7) && w.Holds(4) })
		expect.Equal(t, found, want, list, m.Wanted(layout))
	}
}

func TestLayersThatCannotReadTheirInputAreRefused(t *testing.T) {
	for list, want := range map[string]string{
		`{ kind = "dense", units = 4 }, { kind = "embedding", vocabulary = 5, units = 3 }`:                          `encoder[2] (embedding): embedding looks up whole numbers, but encoder.1 (dense) computes other numbers`,
		`{ kind = "dense", units = 4 }, { kind = "flatten" }, { kind = "embedding", vocabulary = 5, units = 3 }`:    `encoder[3] (embedding): embedding looks up whole numbers, but encoder.1 (dense) computes other numbers`,
		`{ kind = "relative", layers = [{ kind = "embedding", vocabulary = 5, units = 3 }] }`:                       `encoder[1].layers[0] (embedding): embedding looks up whole numbers, but a relative block scales its input`,
		`{ kind = "replace", mask = "images", by = 5 }, { kind = "embedding", vocabulary = 5, units = 3 }`:          `encoder[2] (embedding): embedding looks up whole numbers from 0 to 4, but encoder.1 (replace) gives 5`,
		`{ kind = "residual", layers = [{ kind = "decorrelate", column = "c" }, { kind = "dense", units = 256 }] }`: `encoder[1].layers[0] (decorrelate): decorrelate must be the encoder's first layer`,
	} {
		f, err := Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 40 }\ndecoder = []\nloss = [{ kind = \"l1\", on = \"code\" }]\nencoder = [{ kind = \"flatten\" }, "+list+"]\n"))
		if err == nil {
			_, err = f.Model("m")
		}
		expect.Error(t, err, want, list)
	}
}

// A hook computes the layer from the images before the training: another input would be ignored.
func TestAPreparedLayerReadsTheImages(t *testing.T) {
	for from, refused := range map[string]bool{"images": false, "noise": true} {
		f, err := Load("models.toml", []byte("[model.m]\ndataset = { name = \"bars\", count = 40 }\ncolumn.noise = { kind = \"uniform\", like = \"images\" }\ndecoder = []\n"+
			"head.y = { from = \"noise\", layers = [{ kind = \"dense\", units = 1 }] }\n"+
			"loss = [{ kind = \"l1\", on = \"code\" }, { kind = \"l1\", on = \"y\" }]\nencoder = [{ kind = \"pado\", from = \""+from+"\" }, { kind = \"dense\", units = 2 }]\n"))
		if err == nil {
			_, err = f.Model("m")
		}
		if says := err != nil && strings.Contains(err.Error(), "pado must be the encoder's first layer and read the images"); says != refused || !refused && err != nil {
			t.Errorf("from = %q: got %v", from, err)
		}
	}
}
