package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// speaker predicts the tokens of a sequence with given probabilities.
type speaker struct {
	*affine
	language Language
	p        [][]float64 // by the token that is read
}

func (s *speaker) Language() *Language { return &s.language }

func (s *speaker) ValueOf(_ string, columns map[string][]float32) (logits []float32, err error) {
	for _, token := range columns["images"] {
		for _, p := range s.p[int(token)] {
			logits = append(logits, float32(math.Log(p)+3)) // a constant changes no softmax
		}
	}
	return logits, nil
}

// Perplexity is the inverse of the geometric mean of the probabilities of the tokens that follow, and bits are halvings of their product.
func TestLanguageIsJudgedByTheProbabilitiesOfWhatFollows(t *testing.T) {
	p := [][]float64{{0.5, 0.25, 0.25}, {0.125, 0.75, 0.125}, {0.2, 0.2, 0.6}}
	sequences, lengths := []float32{0, 0, 1, 1, 2, 2, 1, 0, 0, 0}, []float32{5, 3} // the second has two places of padding
	bytes := func(token int) int { return []int{1, 2, 0}[token] }                  // the third is no text
	for name, c := range map[string]struct {
		of               Language
		perplexity, bits float64
		missing          string
	}{
		"lengths": {Language{Value: "next", Shift: 1, Length: "length", Text: true, Bytes: bytes},
			math.Pow(0.5*0.25*0.75*0.125*0.2*0.125, -1.0/6), -math.Log2(0.5*0.25*0.75*0.125*0.2*0.125) / 8, ""},
		"no lengths": {Language{Value: "next", Shift: 1, Text: true, Bytes: bytes},
			math.Pow(0.5*0.25*0.75*0.125*0.2*0.125*0.5*0.5, -1.0/8), -math.Log2(0.5*0.25*0.75*0.125*0.2*0.125*0.5*0.5) / 10, ""},
		"two later": {Language{Value: "next", Shift: 2, Length: "length", Text: true, Bytes: bytes},
			math.Pow(0.25*0.25*0.125*0.2, -1.0/4), -math.Log2(0.25*0.25*0.125*0.2) / 5, ""},
		"words":    {Language{Value: "next", Shift: 1, Length: "length", Bytes: bytes}, math.Pow(0.5*0.25*0.75*0.125*0.2*0.125, -1.0/6), 0, "do not give the text back"},
		"training": {Language{Value: "next", Shift: 1, Length: "length", Text: true}, math.Pow(0.5*0.25*0.75*0.125*0.2*0.125, -1.0/6), 0, "not known during training"},
		"nothing":  {Language{Value: "next", Shift: 5, Length: "length", Text: true}, 0, 0, "no sample has a token to predict"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &speaker{newAffine(rand.New(rand.NewPCG(1, 1)), []int{1, 5}, 2), c.of, p}
			chosen, err := Select("language")
			fatal.If(t, err)
			r, err := Evaluate(t.Context(), s, Sample{Images: sequences, Columns: map[string][]float32{"length": lengths}}, chosen)
			fatal.If(t, err)
			for i, want := range []float64{c.perplexity, c.bits} {
				v := r.Values[i]
				if want == 0 {
					expect.Contains(t, v.Missing, c.missing, v.Name, v)
				} else if math.Abs(v.Number-want) > 1e-6*want {
					t.Errorf("%s: got %v, want %v", v.Name, v.Number, want)
				}
			}
		})
	}
}
