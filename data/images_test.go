package data

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// counting returns n images of the given shape. The byte at position j of image i is 7 i + j modulo 256, and the label is 10
// i.
func counting(t *testing.T, n int, shape ...int) *Images {
	t.Helper()
	pixels, err := product(shape)
	fatal.If(t, err)
	b, labels := make([]byte, n*pixels), make([]int, n)
	for i := range n {
		labels[i] = 10 * i
		for j := range pixels {
			b[i*pixels+j] = byte(7*i + j)
		}
	}
	images, err := NewBytes(shape, b, labels)
	fatal.If(t, err)
	return images
}

func TestBytesAreScaledBy255AndFloatsAreTakenAsTheyAre(t *testing.T) {
	b := make([]byte, 256)
	f := make([]float32, 256)
	for i := range b {
		b[i], f[i] = byte(i), float32(i)-100.5
	}
	scaled, err := NewBytes([]int{16, 16}, b, nil)
	fatal.If(t, err)
	plain, err := NewFloats([]int{16, 16}, f, nil)
	fatal.If(t, err)
	for i, v := range scaled.Float32() {
		expect.Equal(t, v, float32(float64(i)/255), "byte", i, "became")
	}
	expect.Slice(t, plain.Float32(), f, "floats were changed")
	if plain.Bytes(0) != nil || scaled.Labels() != nil {
		t.Error("floats have bytes, or images without labels have labels")
	}
}

func TestFirstTakesAsManyAsThereAre(t *testing.T) {
	all := counting(t, 5, 1, 1)
	for _, images := range []*Images{all, all.Subset([]int{4, 3, 2, 1, 0})} {
		for n, want := range map[int]int{-3: 0, 0: 0, 2: 2, 5: 5, math.MaxInt: 5} {
			if first := images.First(n); first.Len() != want || !slices.Equal(first.Float32(), images.Float32()[:want]) {
				t.Errorf("the first %d are %v", n, first.Float32())
			}
		}
	}
}

// Subsets of subsets, selected by indices and from the front in any order, contain the same images as a list of indices that
// is selected in the same way.
func TestSubsetsHoldTheImagesThatAPlainListSays(t *testing.T) {
	const n = 40
	all := counting(t, n, 3, 2)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		images, list := all, make([]int, n)
		for i := range list {
			list[i] = i
		}
		for range 1 + r.IntN(4) {
			if r.IntN(2) == 0 {
				high := 1 + r.IntN(len(list))
				images, list = images.First(high), list[:high]
				continue
			}
			indices := make([]int, 1+r.IntN(len(list)))
			next := make([]int, len(indices))
			for k := range indices {
				indices[k] = r.IntN(len(list))
				next[k] = list[indices[k]]
			}
			images, list = images.Subset(indices), next
		}
		if images.Len() != len(list) {
			t.Fatalf("%d images, want %d", images.Len(), len(list))
		}
		labels := images.Labels()
		batch := make([]float32, 6)
		for i, original := range list {
			images.Batch(batch, []int{i})
			for j, v := range batch {
				if want := float32(7*original+j) / 255; 7*original+j < 256 && v != want {
					t.Fatalf("image %d (originally %d), value %d: %v, want %v", i, original, j, v, want)
				}
			}
			if labels[i] != 10*original || images.Bytes(i)[0] != byte(7*original) {
				t.Fatalf("image %d: label %d, first byte %d, want those of image %d", i, labels[i], images.Bytes(i)[0], original)
			}
		}
	}
}

func TestABatchHoldsItsImagesInTheOrderOfTheIndices(t *testing.T) {
	images := counting(t, 5, 2, 2)
	batch := make([]float32, 3*4)
	images.Batch(batch, []int{4, 0, 4})
	for k, i := range []int{4, 0, 4} {
		for j := range 4 {
			expect.Equal(t, batch[4*k+j], float32(7*i+j)/255, "value", j, "of image", k)
		}
	}
}

func TestImagesRefuseSizesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		shape  []int
		values int
		labels []int
	}{
		{[]int{2, 2}, 7, nil},
		{[]int{0, 2}, 0, nil},
		{[]int{-1, -4}, 4, nil},
		{[]int{1 << 40, 1 << 40}, 0, nil},
		{[]int{2, 2}, 8, []int{1}},
	} {
		expect.AnyError(t, expect.Err(NewBytes(c.shape, make([]byte, c.values), c.labels)), "shape", c.shape, c.values, "values", len(c.labels), "labels")
	}
	expect.AnyError(t, expect.Err(counting(t, 2, 4).WithShape([]int{5})), "images of 4 values took a shape of 5")
}
