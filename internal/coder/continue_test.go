package coder

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
)

// Tokens are drawn in proportion to the softmax of the logits among those that the settings leave.
func TestTokensAreDrawnFromTheSoftmaxOfWhatIsLeft(t *testing.T) {
	logits := []float32{1, 3, 2, 9, 0}
	may := func(token int32) bool { return token != 3 }
	weight := func(token int32, temperature float64) float64 { return math.Exp(float64(logits[token]) / temperature) }
	for _, c := range []struct {
		how  Sampling
		left []int32
	}{
		{Sampling{Temperature: 1}, []int32{0, 1, 2, 4}},
		{Sampling{Temperature: 2, TopP: 1}, []int32{0, 1, 2, 4}},
		{Sampling{Temperature: 1, TopK: 2}, []int32{1, 2}},
		{Sampling{Temperature: 1, TopP: 0.6}, []int32{1}},
		{Sampling{Temperature: 1, TopP: 0.8}, []int32{1, 2}},
		{Sampling{}, []int32{1}},
	} {
		const n = 20000
		r, counts := rand.New(rand.NewPCG(1, 2)), map[int32]float64{}
		for range n {
			counts[c.how.draw(logits, r.Float64(), may)]++
		}
		sum := 0.0
		for _, token := range c.left {
			sum += weight(token, max(c.how.Temperature, 1e-9))
		}
		total := 0.0
		for _, token := range c.left {
			p := 1.0
			if len(c.left) > 1 {
				p = weight(token, c.how.Temperature) / sum
			}
			expect.Near(t, counts[token]/n, p, 5*math.Sqrt(p*(1-p)/n), c.how, "token", token, "has the share")
			total += counts[token]
		}
		expect.Equal(t, total, n, c.how, n-total, c.left)
	}
	expect.Equal(t, (Sampling{Temperature: 1}).draw(logits, math.Nextafter(1, 0), may), 4, "the largest number draws")
}

// A piece of a text ends before what may still become a stop text or a character.
func TestWhatMayBecomeAStopTextIsHeldBack(t *testing.T) {
	for _, c := range []struct {
		text string
		stop []string
		want int
	}{{"", nil, 0}, {"x", []string{"yx"}, 0}, {"ab\n", []string{"\n\n"}, 1}, {"abc", []string{"cd", "bcd"}, 2}, {"abcab", []string{"abcabc"}, 5}, {"a\xc3", nil, 1}, {"é", []string{"e"}, 0}} {
		expect.Equal(t, unsettled(c.text, c.stop), c.want, c.text, c.stop)
	}
	expect.Equal(t, firstOf("a b c", []string{"c", "b", "d"}), 2, "the first of several")
	expect.Equal(t, firstOf("a b c", nil), -1, "none")
}
