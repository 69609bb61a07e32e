package cli

import (
	"math"
	"strings"
	"testing"

	"tessera/internal/lists"
)

// Values outside [0,1] are clipped in a picture. The command warns about them.
func TestDecodedValuesThatBytesDoNotHoldAreNamed(t *testing.T) {
	b := newBench(t)
	values := lists.Of(20*6*5, func(i int) float32 { return float32(1000 * math.Abs(math.Sin(float64(i)))) })
	b.write("images.npy", npyText("<f4", "(20, 6, 5)", values))
	b.write("models.toml", "[model.m]\ndataset = { name = \"npy\", images = \"images.npy\", scale = \"minmax\" }\nencoder = [{ kind = \"dense\", units = 3 }]\ntrain = { epochs = 1 }\n")
	b.must(0, "train", "m", "--out", "run")
	b.must(0, "encode", "run", "--in", "images.npy", "--out", "codes.npy")
	for out, warned := range map[string]bool{"decoded": true, "decoded.idx": true, "decoded.npy": false} {
		if r := b.must(0, "decode", "run", "--in", "codes.npy", "--out", out); strings.Contains(r.stderr, "is clipped") != warned {
			t.Errorf("%s: %q", out, r.stderr)
		}
	}
}
