package losses_test

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// valueOf returns the value and the gradient of a loss on x. leaves are the values of the other inputs, by name.
func valueOf(t *testing.T, l losses.Loss, x [][]float64, leaves map[string][][]float64) (value float64, slope [][]float64) {
	t.Helper()
	rows, columns := len(x), len(x[0])
	g, err := gradcheck.Compile(gradcheck.Loss(l, slices.Concat(x...), nil, rows, columns), true)
	fatal.If(t, err)
	defer g.Close()
	for name, values := range leaves {
		copy(g.Leaf(name).Values, slices.Concat(values...))
	}
	fatal.If(t, g.Run())
	return g.Output()[0], rowsOf(g.Leaf("x").Gradient(), columns)
}

func differs(got, want float64) bool { return !(math.Abs(got-want) <= 1e-12*(1+math.Abs(want))) }

// softmax returns the softmax of a row and the logarithm of its denominator, by plain loops.
func softmax(z []float64) (p []float64, logSum float64) {
	sum := 0.0
	for _, v := range z {
		sum += math.Exp(v - slices.Max(z))
	}
	logSum = slices.Max(z) + math.Log(sum)
	for _, v := range z {
		p = append(p, math.Exp(v-logSum))
	}
	return p, logSum
}

// labelled returns one-hot labels as a term reads them; negative labels are unknown and give rows of 0.
func labelled(labels []int, classes int) [][]float64 {
	rows := make([][]float64, len(labels))
	for i, c := range labels {
		if rows[i] = make([]float64, classes); c >= 0 {
			rows[i][c] = 1
		}
	}
	return rows
}

func TestCrossEntropyIsTheMeanOverImagesWithALabel(t *testing.T) {
	many := lists.Of(300, func(j int) float64 { return math.Sin(float64(j)) })
	for name, c := range map[string]struct {
		z      [][]float64
		labels []int
	}{
		"two classes":     {[][]float64{{1, -2}, {0.3, 0.4}, {-5, 3}}, []int{0, 1, 0}},
		"some unknown":    {[][]float64{{1, -2, 0}, {0.3, 0.4, 9}, {-5, 3, 2}}, []int{2, -1, 1}},
		"none known":      {[][]float64{{1, -2}, {0.3, 0.4}}, []int{-1, -1}},
		"one image":       {[][]float64{{1, -2, 3}}, []int{1}},
		"one class":       {[][]float64{{1}, {-2}}, []int{0, 0}},
		"many classes":    {[][]float64{many, many}, []int{299, 0}},
		"extreme logits":  {[][]float64{{1000, -1000}, {-1e6, 1e6}}, []int{1, 1}},
		"equal logits":    {[][]float64{{0, 0, 0, 0}}, []int{3}},
		"labels repeated": {[][]float64{{1, 2}, {1, 2}, {1, 2}}, []int{1, 1, 1}},
	} {
		want, known := 0.0, 0.0
		slopes := make([][]float64, len(c.z))
		for i, z := range c.z {
			if slopes[i] = make([]float64, len(z)); c.labels[i] < 0 {
				continue
			}
			p, logSum := softmax(z)
			want, known = want+logSum-z[c.labels[i]], known+1
			copy(slopes[i], p)
			slopes[i][c.labels[i]]--
		}
		want /= max(known, 1)
		got, slope := valueOf(t, &losses.CrossEntropy{}, c.z, map[string][][]float64{"labels": labelled(c.labels, len(c.z[0]))})
		if differs(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		for i := range slope {
			for j, v := range slope[i] {
				if w := slopes[i][j] / max(known, 1); differs(v, w) {
					t.Errorf("%s: the slope of unit %d of image %d is %v, want %v", name, j, i, v, w)
				}
			}
		}
	}
}

func TestNTXentIsTheCrossEntropyOfThePartner(t *testing.T) {
	for name, z := range map[string][][]float64{
		"one image":    {{1, 2, -1}, {0.5, 0, 3}},
		"three images": {{1, 2}, {0.3, -1}, {-2, 0.1}, {1.5, 2}, {0.1, -1}, {-2, -0.5}},
		"equal views":  {{1, 2}, {0.3, -1}, {1, 2}, {0.3, -1}},
		"one unit":     {{1}, {-2}, {3}, {-4}},
		"very short":   {{1e-6, 2e-6}, {3, -1}, {1, 0}, {0, -1e-5}},
	} {
		for _, temperature := range []float64{0.5, 0.07} {
			n, want := len(z), 0.0
			for i := range z {
				var s []float64
				partner := 0.0
				for k := range z {
					v := (z[i][0]*z[k][0] + dotRest(z[i], z[k])) / (length(z[i]) * length(z[k])) / temperature
					if k == (i+n/2)%n {
						partner = v
					}
					if k != i {
						s = append(s, v)
					}
				}
				_, logSum := softmax(s)
				want += (logSum - partner) / float64(n)
			}
			if got, _ := valueOf(t, &losses.NTXent{Temperature: temperature}, z, nil); !(math.Abs(got-want) <= 1e-9*(1+want)) {
				t.Errorf("%s at %v: got %v, want %v", name, temperature, got, want)
			}
		}
	}
}

func dotRest(a, b []float64) (sum float64) {
	for j := 1; j < len(a); j++ {
		sum += a[j] * b[j]
	}
	return sum
}

func length(a []float64) float64 { return math.Sqrt(a[0]*a[0] + dotRest(a, a)) }

// The value of a view can be 0, for example of a black image while all biases are 0: its similarities and its gradient are
// 0.
func TestNTXentHasNoGradientAtAZeroValue(t *testing.T) {
	l := &losses.NTXent{Temperature: 0.5}
	value, slope := valueOf(t, l, [][]float64{{0, 0}, {3, -1}, {1, 2}, {0.5, -1}}, nil)
	expect.Slice(t, slope[0], []float64{0, 0}, "the gradient at zero")
	for i := 1; i < 4; i++ {
		if s := length(slope[i]); !(s > 0 && s < 1) {
			t.Errorf("the gradient of view %d is %v", i, slope[i])
		}
	}
	if !(value > 0 && value < 5) {
		t.Errorf("the value is %v", value)
	}
}

func TestConsistencyIsTheMeanSquaredDistanceToTheTeacher(t *testing.T) {
	x, teacher := [][]float64{{1, 2, 3}, {0, -1, 0.5}}, [][]float64{{1, 1, 3.5}, {2, -1, 0}}
	got, slope := valueOf(t, &losses.Consistency{}, x, map[string][][]float64{"teacher": teacher})
	if want := (0 + 1 + 0.25 + 4 + 0 + 0.25) / 6; differs(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if v, want := slope[1][0], 2*(0.-2)/6; differs(v, want) {
		t.Errorf("the slope is %v, want %v", v, want)
	}
}

// Invalid settings of a struct literal are errors and do not give NaN.
func TestSettingsOutsideTheirRangeAreRefused(t *testing.T) {
	for _, l := range []losses.Loss{
		&losses.NTXent{}, &losses.NTXent{Temperature: -1}, &losses.NTXent{Temperature: math.NaN()},
		&losses.ActivityFloor{}, &losses.AsymmetricDecay{Norm: "smooth"}, &losses.Contractive{},
	} {
		if v, _, err := gradcheck.Evaluate(gradcheck.Loss(l, make([]float64, 8), make([]float64, 8), 4, 2)); err == nil {
			t.Errorf("%T %+v: no error, but %v", l, l, v)
		}
	}
}
