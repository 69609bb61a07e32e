package text_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/data/text"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// contexts returns a data set of lines with the defaults.
func contexts(file string, change func(*text.Contexts)) *text.Contexts {
	e, _ := data.Registry.Lookup("contexts")
	c := e.New().(*text.Contexts)
	c.File, c.Unit, c.Least, c.Subsample = file, "line", 1, 0
	change(c)
	return c
}

// column returns all values of a column.
func column(images *data.Images, name string) []float32 {
	c, _ := images.Column(name)
	all := lists.Range(0, images.Len())
	values := make([]float32, images.Len()*c.Size())
	images.Gather(values, name, all)
	return values
}

// Every word has those around it, and the sum of the weights of a pair of words is that of the counts with the weights 1, 1 - 1/window, ...
func TestContextsAreTheWordsAround(t *testing.T) {
	lines := []string{"a b c a d rare b", "b a. a, c! d d", "c"}
	dir := folder(t, map[string]string{"x.txt": strings.Join(lines, "\n")})
	for size := 1; size < 6; size++ {
		set := load(t, contexts(filepath.Join(dir, "x.txt"), func(c *text.Contexts) { c.Context, c.Least = size, 2 }))
		got, want := map[[2]string]float64{}, map[[2]string]float64{}
		words, around, near := set.Train.Float32(), column(set.Train, "context"), column(set.Train, "near")
		for i, word := range words {
			for k, weight := range near[2*size*i:][:2*size] {
				got[[2]string{set.Tokens.Name(int32(word)), set.Tokens.Name(int32(around[2*size*i+k]))}] += float64(weight)
			}
		}
		for _, line := range lines[:2] {
			list := strings.Fields(strings.NewReplacer(".", "", ",", "", "!", "", "rare", "").Replace(line))
			for i, a := range list {
				for k, b := range list {
					if d := max(i-k, k-i); d > 0 && d <= size {
						want[[2]string{a, b}] += 1 - float64(d-1)/float64(size)
					}
				}
			}
		}
		for pair, weight := range want {
			expect.Near(t, got[pair], weight, 1e-6, "context", size, pair)
		}
		for pair, weight := range got {
			if weight > 0 && want[pair] == 0 {
				t.Errorf("context %d: %v has the weight %v, want none", size, pair, weight)
			}
		}
		expect.Equal(t, len(words), 12)
	}
}

// Shares of kept occurrences and of drawn words are those of the formulas.
func TestFrequentWordsAreLeftOutAndDrawnByTheirPower(t *testing.T) {
	counts := map[string]float64{"a": 80000, "b": 15000, "c": 5000}
	var list []string
	for word, n := range counts {
		list = append(list, slices.Repeat([]string{word}, int(n))...)
	}
	dir := folder(t, map[string]string{"x.txt": strings.Join(list, " ")})
	for _, power := range []float64{0.75, 0, 1} {
		set := load(t, contexts(dir, func(c *text.Contexts) { c.Unit, c.Subsample, c.Power = "", 0.1, power }))
		all, drawn, sum := map[string]float64{}, map[string]float64{}, 0.0
		for _, word := range set.Train.Float32() {
			all[set.Tokens.Name(int32(word))]++
		}
		const some = 20000 // the order is random
		for _, word := range column(set.Train, "noise")[:some] {
			drawn[set.Tokens.Name(int32(word))]++
		}
		for _, n := range counts {
			sum += math.Pow(n, power)
		}
		for word, n := range counts {
			expect.Near(t, drawn[word]/some, math.Pow(n, power)/sum, 0.02, "power", power, word)
		}
		for word, n := range counts {
			f := n / 100000 / 0.1
			expect.Near(t, all[word]/n, min(1, math.Sqrt(1/f)+1/f), 0.02, "of", word, "are kept")
		}
	}
}

// The samples of entries = true are the entries of the matrix, and with smooth all of it.
func TestEntriesAreThoseOfTheMatrix(t *testing.T) {
	e, _ := data.Registry.Lookup("cooccurrence")
	of := func(entries bool, smooth float64) *data.Set {
		s := e.New().(*text.Cooccurrence)
		s.Grammar, s.Entries, s.Smooth, s.Weights = 300, entries, smooth, "harmonic"
		return load(t, s)
	}
	for _, smooth := range []float32{0, 0.5} {
		matrix, entries := of(false, 0), of(true, float64(smooth))
		n, x := len(matrix.Train.ValueNames()), matrix.Train.Float32()
		words, around, counts := entries.Train.Float32(), column(entries.Train, "context"), column(entries.Train, "count")
		for i, word := range words {
			at := int(word)*n + int(around[i])
			if want := float32(float64(x[at]) + float64(smooth)); counts[i] <= 0 || math.Abs(float64(want-counts[i])) > 1e-6*float64(want) {
				t.Fatalf("smooth %v, entry %d: got %v, want %v", smooth, i, counts[i], want)
			}
			x[at] = 0
		}
		if slices.Max(x) > 0 || smooth > 0 && len(words) != n*n {
			t.Errorf("smooth %v: %d of %d entries are samples", smooth, len(words), n*n)
		}
	}
}

func TestEveryWordOfAFurtherTextIsASample(t *testing.T) {
	dir := folder(t, map[string]string{"new.txt": "The sailors steer; the the unseen pier", "one.txt": "pier", "other.txt": "unseen"})
	c := contexts("", func(c *text.Contexts) { c.Grammar, c.Unit, c.Subsample = 500, "", 1e-4 })
	set := load(t, c)
	for file, want := range map[string]string{"new.txt": "the sailors steer the the pier", "one.txt": "pier", "other.txt": ""} {
		rows, err := data.ReadRows(background, filepath.Join(dir, file), set.Shape, data.WithVocabulary(c, set.Tokens))
		if want == "" {
			expect.Error(t, err, "has no word of the vocabulary", file)
			continue
		}
		fatal.If(t, err)
		got := lists.Map(rows.Float32(), func(word float32) string { return set.Tokens.Name(int32(word)) })
		expect.Equal(t, strings.Join(got, " "), want, file)
		expect.Slice(t, got, rows.Names, file)
	}
}
