package hooks

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestDecomposedImagesAreThoseOfPackageMorph(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const n = 70
	shape := []int{9, 7}
	bytes, floats := make([]byte, n*63), make([]float32, n*63)
	for i := range bytes {
		bytes[i], floats[i] = byte(r.IntN(256)), r.Float32()
	}
	ofBytes, _ := data.NewBytes(shape, bytes, nil)
	ofFloats, _ := data.NewFloats(shape, floats, nil)
	for _, images := range []*data.Images{ofBytes, ofFloats} {
		for _, of := range []morph.Decomposition{{Method: morph.AMD, Levels: 2, Start: 1, Step: 1}, {Method: morph.PADO, Levels: 3, Start: 1, Step: 1, Original: true}} {
			d, err := decompose(of, images)
			fatal.If(t, err)
			want, _, err := of.Apply(images.Float32(), shape)
			fatal.If(t, err)
			row := len(want) / n
			for _, kept := range []bool{false, true} {
				if kept {
					d.cache()
				}
				indices := r.Perm(n)
				got := make([]float32, len(want))
				d.Batch(got, indices)
				for k, i := range indices {
					if !slices.Equal(got[k*row:(k+1)*row], want[i*row:(i+1)*row]) {
						t.Fatalf("%s, kept: %v: image %d differs", of.Method, kept, i)
					}
				}
			}
			if (d.bytes != nil) == (d.floats != nil) || (d.bytes != nil) != (images == ofBytes) {
				t.Error("levels are not kept as what the images are")
			}
			low, gain := d.ranges()
			for c := range low {
				least, most := math.Inf(1), math.Inf(-1)
				for i := c; i < len(want); i += len(low) {
					least, most = min(least, float64(want[i])), max(most, float64(want[i]))
				}
				expect.Equal(t, float64(low[c]), least, of.Method, "channel", c, "low")
				expect.Near(t, float64(gain[c])*(most-least), 1, 1e-6, of.Method, "channel", c, "low")
			}
		}
	}
}

// The hook sets low and gain of a new layer, and does not change a layer whose parameters are frozen or from another run.
func TestANewTrainingRescalesTheChannels(t *testing.T) {
	f := newFake(t, []float32{0, 0, 0, 1})
	made, err := data.NewFloats([]int{2, 2}, []float32{0, 0, 0, 1, 0.5, 0.5, 0.5, 0.5}, nil)
	fatal.If(t, err)
	f.images, f.preparation = made, morph.Decomposition{Method: morph.PADO, Levels: 1, Start: 1, Step: 1, Original: true}
	low, gain := f.parameters[0], f.parameters[1]
	low.Path, gain.Path = "encoder.0.low", "encoder.0.gain"
	low.Data, gain.Data = make([]float32, 3), make([]float32, 3)
	for _, hook := range []*Decomposition{{Cache: true}, {}} {
		for _, free := range []bool{false, true} {
			low.Frozen, gain.Started = !free, !free
			low.Data[0], gain.Data[0] = 7, 7
			active, err := hook.Attach(f)
			fatal.If(t, err)
			expect.Equal(t, (active.Prepare != nil), hook.Cache, "cache", hook.Cache, "prepares images", active.Prepare != nil)
			fatal.If(t, active.Initialise())
			if want := map[bool][2]float32{false: {7, 7}, true: {0, 1}}[free]; low.Data[0] != want[0] || gain.Data[0] != want[1] {
				t.Errorf("free: %v: low %v and gain %v, want %v", free, low.Data, gain.Data, want)
			}
		}
	}
	f.preparation = nil
	expect.AnyError(t, expect.Err((&Decomposition{}).Attach(f)), "is attached to a layer that decomposes nothing")
}
