package data

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
)

// A coloured image is the plain one in every channel that its parts have.
func TestColouredSwimmersArePlainOnesInColour(t *testing.T) {
	plain, coloured := load(t, &Swimmer{}), load(t, &Swimmer{Coloured: true})
	x, y := plain.Train.Float32(), coloured.Train.Float32()
	for i, v := range x {
		if max(y[3*i], y[3*i+1], y[3*i+2]) != v {
			t.Fatalf("value %d: %v in grey, %v in colour", i, v, y[3*i:3*i+3])
		}
	}
	for i, want := range [][]float32{{1, 1, 1}, {1, 0, 0}, {1, 0, 0}, {1, 0, 0}, {1, 0, 0}, {0, 1, 0}} {
		at := slices.Index(plain.Parts[i], 1)
		expect.Slice(t, coloured.Parts[i][3*at:3*at+3], want, "part", i)
	}
	present, union := partsOf(y[:len(coloured.Parts[0])], coloured.Parts)
	if !union || !slices.Equal(present, []int{0, 1, 5, 9, 13}) {
		t.Errorf("the first image is made of %v (all of it: %v)", present, union)
	}
}

func TestChordsAreSumsOfNotes(t *testing.T) {
	s := &Notes{Notes: 13, Bins: 64, Count: 300, Density: 0.3, Seed: 2}
	set := load(t, s)
	f := 3 * math.Pow(2, 5/12.) // note 5, by the definition
	best := slices.Max(set.Parts[5])
	for b, got := range set.Parts[5] {
		want := 0.0
		for h := 1; float64(h)*f < 64; h++ {
			want += math.Exp(-math.Pow(float64(b)-float64(h)*f, 2)/2) / float64(h)
		}
		want0 := 0.0
		for h := 1; float64(h)*f < 64; h++ {
			want0 += math.Exp(-math.Pow(4-float64(h)*f, 2)/2) / float64(h) // bin 4, the next to the fundamental
		}
		expect.Near(t, float64(got), want/want0, 1e-6, "bin", b)
		expect.Equal(t, best, 1, "bin", b)
	}
	x := set.Train.Float32()
	if largest := slices.Max(x); largest != 1 || slices.Min(x) < 0 {
		t.Errorf("values reach from %v to %v, want from 0 to 1", slices.Min(x), largest)
	}
	expect.AnyError(t, expect.Err((&Notes{Notes: 60, Bins: 64, Count: 1, Density: 0.5}).Load(background, nil, Both)), "a note above the highest frequency is taken")
	s.Count = 20
	few := load(t, s).Train.Float32()
	expect.Near(t, float64(few[5]/few[6]), float64(x[5]/x[6]), 1e-4, "a smaller set does not begin as a larger one: ratios")
}

func TestTextsMixTheirTopics(t *testing.T) {
	s := &Topics{Topics: 3, Words: 30, Count: 400, Length: 200, Mixture: 0.3, Sparsity: 0.1, Seed: 3}
	set := load(t, s)
	x := set.Train.Float32()
	mean := make([]float64, 30)
	for i := range 400 {
		sum := float32(0)
		for w, v := range x[i*30 : (i+1)*30] {
			if v != float32(math.Round(float64(v))) {
				t.Fatalf("text %d has %v times word %d", i, v, w)
			}
			sum += v
			mean[w] += float64(v) / (400 * 200)
		}
		if sum != 200 {
			t.Fatalf("text %d has %v words, want 200", i, sum)
		}
	}
	for w := range mean { // each topic has a third of all words
		want := float64(set.Parts[0][w]+set.Parts[1][w]+set.Parts[2][w]) / 3
		expect.Near(t, mean[w], want, 0.04, "word", w, "frequency", mean[w], "want about")
	}
	s.Count = 10
	if few := load(t, s).Train.Float32(); !slices.Equal(few, x[:len(few)]) {
		t.Error("a smaller set is not the beginning of a larger one")
	}
}

// With tiny parameters a topic has one word and a text one topic.
func TestTextsOfTinyParametersHaveOneTopic(t *testing.T) {
	set := load(t, &Topics{Topics: 4, Words: 20, Count: 40, Length: 10, Mixture: 1e-6, Sparsity: 1e-6, Seed: 1})
	for k, part := range set.Parts {
		if slices.Max(part) != 1 || slices.IndexFunc(part, func(v float32) bool { return v != 0 && v != 1 }) >= 0 {
			t.Errorf("topic %d: got %v, want one word", k, part)
		}
	}
	x, used := set.Train.Float32(), map[int]bool{}
	for i := range 40 {
		word := slices.Index(x[i*20:(i+1)*20], 10)
		if word < 0 {
			t.Fatalf("text %d: got %v, want one word ten times", i, x[i*20:(i+1)*20])
		}
		used[word] = true
	}
	if len(used) < 2 {
		t.Error("all texts have the same topic")
	}
}
