package posthoc

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// oracle is the contents of testdata/calibration.json, computed by SciPy and scikit-learn.
type oracle struct {
	Cases []struct {
		Classes     int
		Labels      []int
		Logits      []float32
		Temperature float64
		Platt       []float64 // probabilities
		Fresh       []float64 // probabilities of other samples
		Isotonic    []float64 // their calibrated probabilities, before division by their sum
	}
	X, Y, Grid, Ties []float64
}

func readOracle(t *testing.T) (o oracle) {
	t.Helper()
	text, err := os.ReadFile("testdata/calibration.json")
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	fatal.If(t, err)
	return o
}

func TestTheTemperatureIsSciPysOptimum(t *testing.T) {
	for i, c := range readOracle(t).Cases {
		got, err := Fit(Temperature, c.Logits, c.Labels)
		fatal.If(t, err)
		if d := math.Abs(got.Fitted.(*TemperatureScaling).Temperature - c.Temperature); !(d < 1e-6) || got.Samples != len(c.Labels) {
			t.Errorf("case %d: got %v, want %v", i, got, c.Temperature)
		}
		row := slices.Clone(c.Logits[:c.Classes])
		got.Apply(row, c.Classes)
		expect.Near(t, float64(row[1]), float64(c.Logits[1])/c.Temperature, 1e-5, "case", i, "applied", row[1])
	}
}

func TestPlattsScalingIsThatOfScikitLearnAndSciPy(t *testing.T) {
	for i, c := range readOracle(t).Cases {
		got, err := Fit(Platt, c.Logits, c.Labels)
		fatal.If(t, err)
		logits, p := slices.Clone(c.Logits), make([]float64, len(c.Logits))
		got.Apply(logits, c.Classes)
		for r := range c.Labels {
			vectors.Softmax(p[r*c.Classes:(r+1)*c.Classes], logits[r*c.Classes:(r+1)*c.Classes])
		}
		for j, want := range c.Platt {
			if math.Abs(p[j]-want) > 1e-5 {
				t.Fatalf("case %d: probability %d: got %v, want %v", i, j, p[j], want)
			}
		}
	}
}

func TestIsotonicRegressionIsThatOfScikitLearn(t *testing.T) {
	o := readOracle(t)
	g := IsotonicRegression(o.X, o.Y)
	for i, x := range o.Grid {
		if d := math.Abs(g.At(x) - o.Ties[i]); !(d < 1e-12) {
			t.Errorf("with ties, at %v: got %v, want %v", x, g.At(x), o.Ties[i])
		}
	}
	for i, c := range o.Cases {
		got, err := Fit(Isotonic, c.Logits, c.Labels)
		fatal.If(t, err)
		curves := got.Fitted.(*IsotonicCurves).Curves
		for j, p := range c.Fresh {
			// scikit-learn computes in the precision of the probabilities, which is float64 here.
			if d := math.Abs(curves[j%c.Classes].At(p) - c.Isotonic[j]); !(d < 1e-9) {
				t.Fatalf("case %d, value %d: got %v, want %v", i, j, curves[j%c.Classes].At(p), c.Isotonic[j])
			}
		}
		row := slices.Clone(c.Logits[:c.Classes])
		got.Apply(row, c.Classes)
		sum := 0.0
		for _, z := range row {
			sum += math.Exp(float64(z))
		}
		expect.Near(t, sum, 1, 1e-5, "case", i, "the probabilities add up to")
	}
}

func TestSamplesThatDetermineNoCalibrationAreRefused(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		method string
		logits []float32
		labels []int
		want   string
	}{
		"unknown method":     {"sigmoid", []float32{1, 0}, []int{0}, `unknown method "sigmoid", want one of temperature, isotonic, platt`},
		"all right":          {Temperature, []float32{1, 0, 0, 1}, []int{0, 1}, "every sample is predicted right"},
		"worse than chance":  {Temperature, []float32{1, 0, 0, 1}, []int{1, 0}, "say nothing about the classes"},
		"one class":          {Isotonic, []float32{1, 0, 0, 1}, []int{1, 1}, "1 classes, want at least 2"},
		"none is known":      {Platt, []float32{1, 0, 0, 1}, []int{-1, -1}, "0 classes"},
		"infinite":           {Platt, []float32{1, 0, 0, inf}, []int{1, 0}, "a logit of sample 1 is +Inf"},
		"no such class":      {Platt, []float32{1, 0, 0, 1}, []int{1, 2}, "sample 1 has the class 2"},
		"all right of 3":     {Platt, []float32{9, 0, 0, 0, 9, 0, 0, 0, 9}, []int{0, 1, 2}, "no minimum"},
		"a class is missing": {Platt, []float32{1, 0, 0.3, 0, 1, -0.2, 0.2, 0.1, 0.5, 0.1, 0.2, -0.4, 0.7, 0.2, 0.1, 0.3, 0.6, 0.4}, []int{0, 1, 1, 0, 0, 1}, "no sample is of class 2"},
		"no samples":         {Platt, nil, nil, "want at least 2"},
	} {
		expect.Error(t, expect.Err(Fit(c.method, c.logits, c.labels)), c.want, name)
	}
}

func TestWhatIsKeptIsChecked(t *testing.T) {
	good := readOracle(t).Cases[0]
	for _, method := range Methods() {
		c, err := Fit(method, good.Logits, good.Labels)
		fatal.If(t, err)
		text, err := json.Marshal(Head{Calibration: c})
		fatal.If(t, err)
		var back Head
		if err := json.Unmarshal(text, &back); err != nil || back.Check(2) != nil {
			t.Errorf("%s: %v, %v", method, err, back.Check(2))
		}
		a, b := slices.Clone(good.Logits), slices.Clone(good.Logits)
		c.Apply(a, 2)
		back.Calibration.Apply(b, 2)
		expect.Slice(t, a, b, method, "read back it gives other logits")
		if method != Temperature && back.Check(3) == nil {
			t.Errorf("%s of 2 classes passes for a head of 3", method)
		}
	}
	for _, c := range []Calibration{{Fitted: &TemperatureScaling{}}, {Fitted: &TemperatureScaling{Temperature: math.NaN()}}, {Method: "?"},
		{Fitted: &TemperatureScaling{Temperature: math.Inf(1)}}, {Fitted: &PlattScaling{Scales: []float64{1, math.Inf(-1)}, Biases: []float64{0, 0}}},
		{Fitted: &PlattScaling{Scales: []float64{1, 1}, Biases: []float64{0, math.NaN()}}},
		{Fitted: &PlattScaling{Scales: []float64{1, 1}, Biases: []float64{0}}}, {Fitted: &IsotonicCurves{Curves: []Curve{{X: []float64{1, 0}, Y: []float64{0, 1}}, {}}}}} {
		if (Head{Calibration: &c}).Check(2) == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// Samples without a class and samples without a prediction are in no cell of the matrix.
func TestTheConfusionCountsClassesAndPredictions(t *testing.T) {
	nan := float32(math.NaN())
	logits := []float32{2, 1, 0, 0, 3, 1, 5, 5, 0, 9, 0, 0, nan, 0, 0, 1, 1, 2}
	got := Confusion(logits, []int{0, 0, 1, -1, 2, 2}, 3)
	for c, want := range [][]int{{1, 1, 0}, {1, 0, 0}, {0, 0, 1}} {
		expect.Slice(t, got[c], want, "class", c)
	}
}
