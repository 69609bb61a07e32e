package classical

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/losses"
)

// computed runs a program on the engine and returns its taps.
func computed(t *testing.T, m Model, given string, x []float32, batch int, wanted ...string) [][]float32 {
	t.Helper()
	module, err := Program(m, batch, given, wanted...)
	fatal.If(t, err)
	threads := team.New(1)
	defer threads.Close()
	plan, err := engine.Compile[float32](module, threads)
	fatal.If(t, err)
	defer plan.Close()
	fatal.If(t, errors.Join(plan.Bind(0, x), plan.Run()))
	taps := lists.Of(len(wanted), func(i int) []float32 { return slices.Clone(plan.Tap(i)) })
	return taps
}

func wantSame(t *testing.T, name string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", name, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d < 1e-5) {
			t.Fatalf("%s: value %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}

// If there are more centres than different samples, some centres coincide. The code still selects a single centre.
func TestTheProgramOfKMeansNamesOneOfEqualCentres(t *testing.T) {
	x := []float32{1, 0, 1, 0, 0, 1}
	m := newModel(t, &KMeans{Components: 3, Iterations: 10, Restarts: 1}, []int{2}, 1)
	fitAll(t, m, Matrix{x, 2})
	codes, err := m.Encode(x)
	fatal.If(t, err)
	taps := computed(t, m, imagesName, x, 3, losses.Code, losses.Output)
	wantSame(t, "codes", taps[0], codes)
	wantSame(t, "output", taps[1], x)
}

func TestProgramsComputeWhatTheModelsCompute(t *testing.T) {
	const side, images = 5, 40
	x := lists.Of(images*side*side, func(i int) float32 { return float32(math.Mod(float64(i)*math.Phi, 1)) })
	rows, err := NewMatrix(x, side*side)
	fatal.If(t, err)
	closed := 0
	for _, v := range variants() {
		m, err := v.method.New([]int{side, side}, 1)
		fatal.If(t, err)
		expect.AnyError(t, expect.Err(Program(m, 1, losses.Code, losses.Output)), v.name, "a model that is not fitted has a program")
		fatal.If(t, expect.Err(Fit(context.Background(), m, rows, nil)))
		codes, err := m.Encode(x)
		fatal.If(t, err)
		output, err := m.Decode(codes)
		fatal.If(t, err)
		wantSame(t, v.name, computed(t, m, losses.Code, codes, images, losses.Output)[0], output)
		if _, err := Program(m, 1, imagesName, losses.Code); err != nil {
			continue
		}
		closed++
		taps := computed(t, m, imagesName, x, images, losses.Code, losses.Output)
		wantSame(t, v.name+" code", taps[0], codes)
		wantSame(t, v.name+" output", taps[1], output)
	}
	if closed != 14 { // pca with and without holes, kmeans with and without restarts, nnsae, mixtures, factor analysis
		t.Errorf("%d encoders are closed expressions, want 14", closed)
	}
}

func TestProgramRefusesValuesThatABaselineLacks(t *testing.T) {
	m, err := (&PCA{Components: 2}).New([]int{2, 2}, 1)
	fatal.If(t, err)
	rows, err := NewMatrix([]float32{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 4)
	fatal.If(t, err)
	fatal.If(t, expect.Err(Fit(context.Background(), m, rows, nil)))
	for _, values := range [][2]string{{"class", losses.Output}, {losses.Code, "class"}} {
		expect.AnyError(t, expect.Err(Program(m, 1, values[0], values[1])), values)
	}
	expect.AnyError(t, expect.Err(Program(nil, 1, losses.Code, losses.Output)), "no model has a program")
}
