package page

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"math/rand/v2"
	"runtime"
	"testing"

	"tessera/apps/show/figures"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// decoded decodes a picture as a browser does.
func decoded(t *testing.T, p string) (width, height int, grey func(x, y int) uint32) {
	t.Helper()
	file, err := base64.StdEncoding.DecodeString(string(p))
	fatal.If(t, err)
	drawn, err := png.Decode(bytes.NewReader(file))
	fatal.If(t, err)
	return drawn.Bounds().Dx(), drawn.Bounds().Dy(), func(x, y int) uint32 { r, _, _, _ := drawn.At(x, y).RGBA(); return r >> 8 }
}

func TestLargeImagesAreShrunkToMeans(t *testing.T) {
	const side = 2 * largestSide
	values := make([]float32, side*side)
	values[0], values[1], values[side], values[side+1] = 1, 1, 0, 0 // the first square of four: mean 0.5
	width, height, grey := decoded(t, newPainter([]int{side, side}).draw(figures.Unit, values))
	expect.Equal(t, width, largestSide, "the picture")
	expect.Equal(t, height, largestSide, "the picture")
	expect.Equal(t, grey(0, 0), 128, "the mean of 1, 1, 0, 0 is drawn as")
	expect.Equal(t, grey(1, 0), 0, "a square of zeros is drawn as")
}

func TestASpriteKeepsToItsBudget(t *testing.T) {
	a := &metrics.Atoms{Shape: []int{16, 16}, Count: 60, Values: make([]float32, 60*256)}
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range a.Values {
		a.Values[i] = noise.Float32()
	}
	whole := spriteOf(a, 1<<20)
	expect.Equal(t, whole.Shown, 60)
	expect.Equal(t, whole.Columns, 10)
	budget := len(whole.Picture) / 3
	if small := spriteOf(a, budget); len(small.Picture) > budget || small.Shown < 10 || small.Shown > 25 {
		t.Errorf("%d atoms take %d of %d bytes", small.Shown, len(small.Picture), budget)
	}
}

// Of two units, the second one is used by only one of six images.
func TestTheUseOfUnits(t *testing.T) {
	codes := []float32{1, 0, 2, 0, 3, 0, 4, 9, 0, 0, 2, 0}
	u := usageOf(codes, 2, []float64{1, 10}, []int{0, 0, 0, 1, 1, -1}, 2)
	first, second := u.each[0], u.each[1]
	if first.active != 5.0/6 { // in image 3 it has 4/90 of the largest use, above 1 %; image 4 has none
		t.Errorf("unit 0 is active in %g of the images, want 5/6", first.active)
	}
	if second.max != 90 || len(second.top) != 1 || second.top[0] != 3 || second.mean != 15 {
		t.Errorf("unit 1: %+v", second)
	}
	if got := first.top; len(got) != 5 || got[0] != 3 || got[1] != 2 || got[2] != 1 { // 4, 3, 2, 2, 1: of equal ones the first
		t.Errorf("unit 0 is used most by %v", got)
	}
	expect.Equal(t, u.byOne[0][0], 2, "mean uses by class", u.byOne)
	expect.Equal(t, u.byOne[1][1], 45, "mean uses by class", u.byOne)
	sum := 0
	for _, n := range first.counts {
		sum += n
	}
	expect.Equal(t, sum, 5, "the histogram of unit 0 counts", sum, "images")
}

// Only units that are shown are correlated: the correlations of all pairs of 20,000 units would take 3.2 GB.
func TestTheUseOfManyUnitsTakesLittleMemory(t *testing.T) {
	const units = 20_000
	codes := make([]float32, 3*units)
	for _, j := range []int{0, mostUnits - 1, mostUnits} { // equal uses
		codes[j] = 1
		codes[2*units+j] = 3
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	u := usageOf(codes, units, nil, nil, 0)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 100<<20 {
		t.Errorf("the use of %d units took %d bytes", units, took)
	}
	if near := u.each[0].near; len(near) != 1 || near[0].unit != mostUnits-1 {
		t.Errorf("neighbours of unit 0: got %v, want the unit %d", near, mostUnits-1)
	}
}

// Of a vector with more values than pixels, no value is lost, and the largest one is seen.
func TestTheLargestValuesOfALongVectorAreSeen(t *testing.T) {
	vector := make([]float32, 2000)
	vector[7], vector[1999] = 1, -2
	p := newPainter([]int{2000})
	small := p.small(vector)
	if len(small) != p.shape[1] || small[0] != 1 || small[len(small)-1] != -2 {
		t.Errorf("got %d values, the first %v, the last %v", len(small), small[0], small[len(small)-1])
	}
}
