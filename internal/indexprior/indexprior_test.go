package indexprior

import (
	"context"
	"math"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// stripes returns the indices of images of 2 x 2 tokens: n times 7 7 / 2 2 and n times 2 2 / 7 7, and the codes of one value,
// ten times the index.
func stripes(n int) (indices, codes []float32) {
	for range n {
		indices = append(indices, 7, 7, 2, 2, 2, 2, 7, 7)
	}
	for _, k := range indices {
		codes = append(codes, 10*k)
	}
	return indices, codes
}

// The weights are the frequencies with 1 added to each count, by hand: entry 0 has the index 7, entry 1 the index 2.
func TestThePriorOfIndicesMultipliesFrequencies(t *testing.T) {
	p, err := Fit(stripesOf(3))
	fatal.If(t, err)
	at := 0.5                           // (3 + 1) / (6 + 2), at every token
	same, different := 7.0/8.0, 1.0/8.0 // of six neighbours on the left: (6 + 1) / (6 + 2), (0 + 1) / (6 + 2)
	below, other := same, different     // of six neighbours above, which always differ
	weights, drawn := make([]float64, 2), []int{0, 0, 1, 0}
	for token, want := range [][2]float64{
		{at, at},                                    // no neighbour
		{at * same, at * different},                 // entry 0 on the left
		{at * other, at * below},                    // entry 0 above
		{at * different * other, at * same * below}, // entry 1 on the left, entry 0 above
	} {
		p.weights(weights, drawn, token)
		for k := range want {
			expect.Near(t, weights[k], want[k], 1e-15, "token", token, "entry", k)
		}
	}
}

// Frequencies of single places would draw each of the 16 images equally often.
func TestThePriorOfIndicesKnowsNeighbours(t *testing.T) {
	p, err := Fit(stripesOf(500))
	fatal.If(t, err)
	const n = 1000
	codes, err := p.Draw(context.Background(), n, 1)
	if err != nil || len(codes) != 4*n {
		t.Fatalf("%d codes, %v", len(codes), err)
	}
	counts := map[[4]float32]int{}
	for i := 0; i < len(codes); i += 4 {
		counts[[4]float32(codes[i:])]++
	}
	for _, image := range [][4]float32{{70, 70, 20, 20}, {20, 20, 70, 70}} {
		if c := counts[image]; c < 440 || c > 560 { // 500 with a deviation of 16
			t.Errorf("%v: drawn %d times of %d, want about half", image, c, n)
		}
	}
	few, err := p.Draw(context.Background(), 3, 1)
	if err != nil || [12]float32(few) != [12]float32(codes) {
		t.Errorf("fewer codes are other codes: %v, %v", few, err)
	}
}

// By hand, for two images a b b and b b a of three tokens in one row, and for the same indices as one image of 2 x 3 tokens.
func TestThePriorOfIndicesReadsAnyGrid(t *testing.T) {
	indices, codes := []float32{4, 9, 9, 9, 9, 4}, []float32{40, 90, 90, 90, 90, 40}
	const a, b = 0, 1 // entries: index 4 and index 9
	for _, c := range []struct {
		rows  int
		drawn []int
		want  [][2]float64 // weights of a and b at each token: p_t, left, above
	}{
		// On the left of a: b once. On the left of b: a once, b twice. Each count plus 1: 1/3 and 2/3, 2/5 and 3/5.
		{1, []int{a, b, a}, [][2]float64{{1. / 2, 1. / 2}, {1. / 4 * 1 / 3, 3. / 4 * 2 / 5}, {1. / 2 * 2 / 3, 1. / 2 * 3 / 5}}},
		// The same on the left: the end of the first row is not left of the second. Above a: b once. Above b: a and b, each once.
		{2, []int{a, b, b, b, a, a}, [][2]float64{{2. / 3, 1. / 3}, {1. / 3 * 1 / 3, 2. / 3 * 2 / 5}, {1. / 3 * 2 / 3, 2. / 3 * 3 / 5},
			{1. / 3 * 1 / 3, 2. / 3 * 1 / 2}, {1. / 3 * 2 / 3 * 2 / 3, 2. / 3 * 3 / 5 * 1 / 2}, {2. / 3 * 1 / 3 * 2 / 3, 1. / 3 * 2 / 5 * 1 / 2}}},
	} {
		p, err := Fit(indices, codes, c.rows, 3)
		fatal.If(t, err)
		weights := make([]float64, 2)
		for token, want := range c.want {
			p.weights(weights, c.drawn, token)
			expect.Near(t, weights[a], want[a], 1e-15, c.rows, "x 3, token", token, "the weights", weights, want)
			expect.Near(t, weights[b], want[b], 1e-15, c.rows, "x 3, token", token, "the weights", weights, want)
		}
		if drawn, err := p.Draw(context.Background(), 2, 1); err != nil || len(drawn) != 2*3*c.rows {
			t.Errorf("%d x 3: %d values of two codes, %v", c.rows, len(drawn), err)
		}
	}
}

func TestAPriorOfIndicesNeedsAnImage(t *testing.T) {
	for _, indices := range [][]float32{nil, {1, 2, 3}} {
		if p, err := Fit(indices, indices, 2, 2); err == nil {
			t.Errorf("%d indices of 2 x 2 tokens: got %v, want an error", len(indices), p)
		}
	}
}

func TestThePriorOfIndicesDrawsNoNegativeNumberOfImages(t *testing.T) {
	p, err := Fit(stripesOf(1))
	fatal.If(t, err)
	if codes, err := p.Draw(context.Background(), -1, 1); err == nil || !strings.Contains(err.Error(), "got -1 images to draw, want at least 0") {
		t.Errorf("got %v, %v", codes, err)
	}
	if codes, err := p.Draw(context.Background(), 0, 1); err != nil || len(codes) != 0 {
		t.Errorf("no image: got %v, %v", codes, err)
	}
}

func TestThePriorOfIndicesRefusesOtherCodes(t *testing.T) {
	indices, codes := stripes(1)
	codes[3] = 5
	expect.Error(t, expect.Err(Fit(indices, codes, 2, 2)), "token 3 with the index 2 has other values", "two values of one index")
	indices[0] = float32(math.NaN())
	expect.Error(t, expect.Err(Fit(indices[:1], codes[:1], 1, 1)), "the index NaN", "NaN")
}

// stripesOf returns the arguments of Fit for stripes.
func stripesOf(n int) (indices, codes []float32, rows, columns int) {
	indices, codes = stripes(n)
	return indices, codes, 2, 2
}
