package cli

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/lists"
)

// TestTraverseAndInterpolateALinearModel compares both commands with what a linear decoder must give.
func TestTraverseAndInterpolateALinearModel(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.pca]
kind       = "pca"
components = 5
dataset    = { name = "bars", count = 120 }

[model.blind]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 4 }]
decoder = []
view    = [{ augment = ["flip"] }]
loss    = [{ kind = "nt_xent", on = "code" }]
train   = { epochs = 1 }

[model.faint]
dataset   = { name = "bars", count = 40 }
encoder   = [{ kind = "dense", units = 4 }]
decoder   = [{ kind = "dense", init = { kind = "normal", stddev = 1e-6 } }, { kind = "reshape", shape = [8, 8] }]
loss      = [{ kind = "mse" }]
optimizer = { kind = "sgd", learning_rate = 1e-9 }
train     = { epochs = 1 }
`)
	b.must(0, "train", "pca")
	b.must(0, "train", "blind")
	b.must(0, "train", "faint")
	b.contains("rows that look alike", b.must(0, "traverse", "runs/faint", "-o", "faint.png").stderr, "no unit has an effect of a level of grey")
	b.must(0, "sample", "runs/pca", "--count", "3", "-o", "three.npy")
	b.must(0, "encode", "runs/pca", "--in", "three.npy", "-o", "codes.npy")
	b.must(0, "decode", "runs/pca", "--in", "codes.npy", "-o", "back.npy")
	b.must(0, "encode", "runs/blind", "--in", "three.npy", "-o", "seen.npy")
	b.contains("decode", b.must(2, "decode", "runs/blind", "--in", "seen.npy", "-o", "none.npy").stderr, "the model has no decoder")
	near := func(what string, got, want []float32) {
		t.Helper()
		for i := range want {
			if len(got) != len(want) || math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Errorf("%s: got %d values, want %d; value %d differs", what, len(got), len(want), i)
				return
			}
		}
	}
	back := b.values("back.npy", 8, 8)

	b.must(0, "interpolate", "runs/pca", "--in", "three.npy", "--images", "0,1,2", "--steps", "5", "-o", "path.npy")
	path := b.values("path.npy", 8, 8)
	var want []float32
	for pair := range 2 {
		for step := range 5 {
			for i := range 64 {
				w := float32(step) / 4
				want = append(want, (1-w)*back[pair*64+i]+w*back[(pair+1)*64+i])
			}
		}
	}
	near("interpolate", path, want)

	b.must(0, "traverse", "runs/pca", "--in", "three.npy", "--image", "1", "--units", "3,0", "--steps", "4", "-o", "units.npy")
	units := b.values("units.npy", 8, 8)
	codes := b.values("codes.npy", 5)
	if len(units) != 2*4*64 {
		t.Fatalf("traverse: got %d values, want 2 rows of 4 images", len(units))
	}
	// the atoms are the differences of decoded unit codes from decoded zeros
	b.write("unit.csv", "0,1,2,3,4\n0,0,0,0,0\n0,0,0,1,0\n1,0,0,0,0\n")
	b.must(0, "decode", "runs/pca", "--in", "unit.csv", "-o", "atoms.npy")
	decoded := b.values("atoms.npy", 8, 8)
	for row, unit := range []int{3, 0} {
		images := units[row*4*64 : (row+1)*4*64]
		atom := make([]float32, 64)
		at := 0 // the pixel where the atom is largest
		for i := range atom {
			if atom[i] = decoded[(row+1)*64+i] - decoded[i]; math.Abs(float64(atom[i])) > math.Abs(float64(atom[at])) {
				at = i
			}
		}
		values := make([]float32, 4) // of the unit, from that pixel
		for step := range values {
			values[step] = codes[5+unit] + (images[step*64+at]-back[64+at])/atom[at]
			expected := lists.Of(64, func(i int) float32 { return back[64+i] + (values[step]-codes[5+unit])*atom[i] })
			near("traverse", images[step*64:(step+1)*64], expected)
		}
		for step := 1; step < 3; step++ { // equal steps over a range that has both signs, as the codes of a PCA have
			if d := values[step] - values[0] - float32(step)/3*(values[3]-values[0]); math.Abs(float64(d)) > 1e-4 || values[0] >= 0 || values[3] <= 0 {
				t.Errorf("unit %d takes the values %v", unit, values)
			}
		}
	}
	if stderr := b.must(0, "traverse", "runs/pca", "--most", "3", "-o", "units.png").stderr; strings.Contains(stderr, "level of grey") {
		t.Error(stderr)
	}
	b.must(0, "traverse", "runs/pca", "-o", "all.npy")
	if all := b.values("all.npy", 8, 8); len(all) != 5*9*64 { // the mean code of all units
		t.Errorf("got %d values, want 5 rows of 9 images", len(all))
	}
	b.must(0, "interpolate", "runs/pca", "-o", "two.png")
	if grid := b.read("two.png"); !strings.HasPrefix(grid, "\x89PNG") || slices.Equal([]byte(grid), []byte(b.read("units.png"))) {
		t.Error("two.png is not the grid of the interpolation")
	}
	for text, want := range map[string]string{
		"traverse runs/pca --units 5 -o y.npy":     "--units: got 5, want 0 to 4",
		"traverse runs/pca --image 1,2 -o y.npy":   "--image: got 2 images",
		"traverse runs/pca --image 120 -o y.npy":   "--image: got 120, want 0 to 119",
		"interpolate runs/pca --images 1 -o y.npy": "got one image",
		"interpolate runs/pca --images 0,1 -o y.x": "the name must end in",
		"interpolate runs/blind -o y.npy":          "runs/blind: the model has no decoder",
		"traverse runs/blind -o y.npy":             "runs/blind: the model has no decoder",
	} {
		b.contains(text, b.must(exitUsage, strings.Fields(text)...).stderr, want)
	}
}
