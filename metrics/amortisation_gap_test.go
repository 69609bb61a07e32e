package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// planted returns images of sparse sums of non-negative atoms, with their codes.
func planted(r *rand.Rand, n, k, pixels int) (atoms *Atoms, images, codes []float32) {
	atoms = &Atoms{Shape: []int{1, pixels}, Count: k, Values: make([]float32, k*pixels)}
	for i := range atoms.Values {
		atoms.Values[i] = 2 * r.Float32()
	}
	codes = make([]float32, n*k)
	for i := range codes {
		if r.IntN(4) == 0 {
			codes[i] = r.Float32()
		}
	}
	return atoms, matrixProduct(codes, atoms.Values, k, pixels), codes
}

// gapOf measures the gap of codes; their reconstructions are the sums of the atoms.
func gapOf(t *testing.T, atoms *Atoms, images, codes []float32) (gap, share Value) {
	t.Helper()
	pixels := atoms.Pixels()
	m, err := (&AmortisationGap{}).Start(&Subject{Atoms: atoms, Shape: atoms.Shape, Units: atoms.Count, Images: len(images) / pixels})
	fatal.If(t, err)
	fatal.If(t, m.Add(&Batch{Images: images, Codes: codes, Outputs: matrixProduct(codes, atoms.Values, atoms.Count, pixels)}))
	v, err := m.Values(context.Background())
	fatal.If(t, err)
	return v[0], v[len(v)-1]
}

// The true codes have no error, so that no codes are better. If all codes are a tenth too small, their error is 1 % of the
// images' mean square, at the same sparsity: the best codes have a much smaller error.
func TestTheAmortisationGapIsTheErrorThatBetterCodesWouldSave(t *testing.T) {
	atoms, images, codes := planted(rand.New(rand.NewPCG(1, 2)), 60, 8, 30)
	square := 0.0
	for _, v := range images {
		square += float64(v) * float64(v) / float64(len(images))
	}
	if gap, _ := gapOf(t, atoms, images, codes); gap.Number > 1e-12 || gap.Number < -1e-3*square {
		t.Errorf("true codes have a gap of %v, want at most 0 and little below (mean square %v)", gap.Number, square)
	}
	small := lists.Map(codes, func(v float32) float32 { return 0.9 * v })
	gap, share := gapOf(t, atoms, images, small)
	if gap.Number < 0.008*square || gap.Number > 0.01*square*(1+1e-5) || share.Number < 0.8 || share.Number > 1 {
		t.Errorf("codes that are a tenth too small have a gap of %v (share %v), want almost %v", gap.Number, share.Number, 0.01*square)
	}
}

// With orthogonal atoms, the best code for a penalty p is max(0, x - p). A thresholding encoder computes this code and has no
// gap.
func TestAnEncoderThatThresholdsOrthogonalAtomsHasNoGap(t *testing.T) {
	const k, n, p = 6, 40, 0.2
	r := rand.New(rand.NewPCG(3, 4))
	atoms := &Atoms{Shape: []int{1, k}, Count: k, Values: make([]float32, k*k)}
	images, codes := make([]float32, n*k), make([]float32, n*k)
	for j := range k {
		atoms.Values[j*k+j] = 4 // its length does not matter
	}
	for i := range images {
		images[i] = r.Float32()
		codes[i] = max(0, images[i]-p) / 4
	}
	gap, share := gapOf(t, atoms, images, codes)
	if math.Abs(share.Number) > 2e-3 {
		t.Errorf("gap %v, share %v, want about 0", gap.Number, share.Number)
	}
}

func TestTheAmortisationGapIsOfSumsOfAtomsOnly(t *testing.T) {
	atoms, images, codes := planted(rand.New(rand.NewPCG(5, 6)), 10, 4, 12)
	codes[3] = -0.5
	if gap, _ := gapOf(t, atoms, images, codes); gap.Missing == "" {
		t.Error("negative codes have a gap")
	}
	codes[3] = 0.5
	m, _ := (&AmortisationGap{}).Start(&Subject{Atoms: atoms, Shape: atoms.Shape, Units: 4, Images: 10})
	_ = m.Add(&Batch{Images: images, Codes: codes, Outputs: make([]float32, len(images))})
	v, err := m.Values(context.Background())
	fatal.If(t, err)
	if v[0].Missing == "" {
		t.Error("outputs that are no sums of the atoms have a gap")
	}
}

// A penalty for bright images makes the codes of dark ones 0, which are not sparse. The search must not begin there.
func TestTheAmortisationGapOfDarkAndBrightImages(t *testing.T) {
	atoms, images, codes := planted(rand.New(rand.NewPCG(7, 8)), 60, 8, 30)
	for i := range images {
		images[i] += 0.05 // no code is exact, so that the best ones are dense
	}
	for i := 15 * 30; i < len(images); i++ {
		images[i] *= 1e-3
	}
	for i := 15 * 8; i < len(codes); i++ {
		codes[i] *= 1e-3
	}
	gap, share := gapOf(t, atoms, images, codes)
	if share.Missing != "" || share.Number < -1 || share.Number > 1 {
		t.Errorf("gap %+v, share %+v, want a share in [-1,1]", gap, share)
	}
}

// Codes with one unit per image are as sparse as codes can be. Penalised codes of similar atoms are not, before they are 0.
func TestTheAmortisationGapNeedsPenalisedCodesAsSparseAsTheEncoders(t *testing.T) {
	const n, k = 40, 6
	r := rand.New(rand.NewPCG(9, 10))
	atoms, images, codes := &Atoms{Shape: []int{1, k}, Count: k, Values: make([]float32, k*k)}, make([]float32, n*k), make([]float32, n*k)
	for i := range atoms.Values {
		atoms.Values[i] = 1
		if i%k == i/k {
			atoms.Values[i] = 1.1
		}
	}
	for i := range images {
		images[i] = 1 + 0.1*r.Float32()
	}
	for i := range n {
		codes[i*k+i%k] = 1
		for j := i * k; i%2 == 1 && j < (i+1)*k; j++ {
			images[j] *= 1e-4
		}
	}
	if gap, _ := gapOf(t, atoms, images, codes); gap.Missing == "" {
		t.Errorf("got a gap of %v", gap.Number)
	}
}

// One image (1, 0.2, 0.15) and atoms (1, 0.2, 0) and (1, 0, 0.2): the code has one unit only near the penalty that makes it 0.
func TestTheAmortisationGapOfCodesThatOnlyALargePenaltyMakesSparse(t *testing.T) {
	atoms := &Atoms{Shape: []int{1, 3}, Count: 2, Values: []float32{1, 0.2, 0, 1, 0, 0.2}}
	if gap, _ := gapOf(t, atoms, []float32{1, 0.2, 0.15}, []float32{1, 0}); gap.Missing != "" {
		t.Errorf("got %+v", gap)
	}
}

func TestTheAmortisationGapNeedsImages(t *testing.T) {
	m, err := (&AmortisationGap{}).Start(&Subject{Atoms: &Atoms{Shape: []int{1, 2}, Count: 1, Values: []float32{1, 2}}, Shape: []int{1, 2}, Units: 1})
	fatal.If(t, err)
	expect.Error(t, expect.Err(m.Values(context.Background())), "no samples")
}
