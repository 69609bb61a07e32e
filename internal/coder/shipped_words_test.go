package coder_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/data/text"
	"tessera/internal/coder"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/vectors"
)

// classesOfWords returns the words of the generated texts that have a meaning, by class.
func classesOfWords() map[string][]string {
	classes := map[string][]string{}
	for _, w := range text.GrammarWords() {
		if w.Meaning != "" {
			class := fmt.Sprintf("%s of the %s, plural %v", w.Kind, w.Meaning, w.Plural)
			classes[class] = append(classes[class], w.Text)
		}
	}
	return classes
}

// shared returns the share of list that is in class.
func shared(list, class []string) float64 {
	n := 0
	for _, word := range list {
		if slices.Contains(class, word) {
			n++
		}
	}
	return float64(n) / float64(len(list))
}

// trainedWords trains a shipped model and checks it beside the other tests.
func trainedWords(t *testing.T, name string, check func(t *testing.T, run *tessera.Run)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		m, err := tessera.Shipped().Model(name)
		fatal.If(t, err)
		run, err := tessera.Train(context.Background(), m, tessera.Options{Out: t.TempDir() + "/run", Threads: 1})
		fatal.If(t, err)
		defer run.Close()
		check(t, run)
	})
}

// nearestOfClass returns the mean share of the nearest words of a word that have its class.
func nearestOfClass(t *testing.T, run *tessera.Run) float64 {
	sum, n := 0.0, 0
	for _, class := range classesOfWords() {
		for _, word := range class {
			near, err := run.Neighbours([]string{word}, nil, len(class)-1)
			fatal.If(t, err)
			list := lists.Map(near, func(one coder.Neighbour) string { return one.Token })
			sum, n = sum+shared(list, class), n+1
		}
	}
	return sum / float64(n)
}

// The largest words of a unit are a class, for nearly all of the 24 classes.
func TestUnitsOfPPMIAreTheClassesOfWords(t *testing.T) {
	trainedWords(t, "ppmi-nmf", func(t *testing.T, run *tessera.Run) {
		vectors, units, err := run.WordVectors()
		fatal.If(t, err)
		names, found := run.Tokens().Names, 0
		classes := classesOfWords()
		for _, class := range classes {
			for u := range units {
				order := lists.Range(0, len(names))
				slices.SortFunc(order, func(a, b int) int { return cmp.Compare(vectors[b*units+u], vectors[a*units+u]) })
				largest := lists.Map(order[:len(class)], func(i int) string { return names[i] })
				if shared(largest, class) == 1 {
					found++
					break
				}
			}
		}
		near := nearestOfClass(t, run)
		t.Logf("%d of %d classes are the largest words of a unit; of the nearest words %.3f have the class", found, len(classes), near)
		if found < len(classes)-2 || near < 0.99 {
			t.Errorf("%d of %d classes are the largest words of a unit; of the nearest words %.3f have the class", found, len(classes), near)
		}
	})
}

// Words of one class are nearest to each other, and the plural is a direction: a plural, less its singular, with another singular gives a plural
// of the meaning of that one.
func TestVectorsOfWordsKnowClassesAndAnalogies(t *testing.T) {
	for _, name := range []string{"skip-gram", "cbow", "glove"} {
		if testing.Short() && name != "skip-gram" {
			continue
		}
		trainedWords(t, name, func(t *testing.T, run *tessera.Run) {
			near, right, asked := nearestOfClass(t, run), 0, 0
			classes := classesOfWords()
			meanings := []string{"farm", "kitchen", "school", "sea"}
			for i, meaning := range meanings {
				one := func(meaning string, plural bool) string {
					return classes[fmt.Sprintf("agent of the %s, plural %v", meaning, plural)][0]
				}
				for _, other := range append(meanings[:i:i], meanings[i+1:]...) {
					list, err := run.Neighbours([]string{one(meaning, true), one(other, false)}, []string{one(meaning, false)}, 1)
					fatal.If(t, err)
					if asked++; slices.Contains(classes[fmt.Sprintf("agent of the %s, plural true", other)], list[0].Token) {
						right++
					}
				}
			}
			t.Logf("of the nearest words %.3f have the class, %d of %d analogies are right", near, right, asked)
			if near < 0.95 || right < asked-1 {
				t.Errorf("of the nearest words %.3f have the class, %d of %d analogies are right", near, right, asked)
			}
		})
	}
}

// A word that no training text has gets a vector from its n-grams of characters, by neighbours and by the encoder alike.
func TestNGramsOfCharactersGiveUnknownWordsVectors(t *testing.T) {
	var changes []config.Set
	for _, change := range []string{"dataset={grammar=300, context=2, maxn=4, pieces=20, buckets=500}", "train.epochs=1",
		"encoder=[{kind=\"embedding\", vocabulary=646, units=16, from=\"pieces\", mask=\"there\"}]"} {
		set, err := config.ParseSet(change)
		fatal.If(t, err)
		changes = append(changes, set)
	}
	spec, err := tessera.Shipped().Model("skip-gram", changes...)
	fatal.If(t, err)
	run, err := tessera.Train(context.Background(), spec, tessera.Options{Out: t.TempDir() + "/run", Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	file := filepath.Join(t.TempDir(), "new.txt")
	fatal.If(t, os.WriteFile(file, []byte("sailor unsailing"), 0o600))
	rows, err := data.ReadRows(context.Background(), file, run.Shape(), data.WithVocabulary(spec.Dataset.Source, run.Tokens()))
	fatal.If(t, err)
	codes, err := run.ValuesOf(context.Background(), "code", rows.Images)
	fatal.If(t, err)
	list, err := run.Neighbours([]string{"Unsailing"}, nil, run.Tokens().Texts())
	fatal.If(t, err)
	i := slices.IndexFunc(list, func(n coder.Neighbour) bool { return n.Token == "sailor" })
	if want := vectors.Cosine(codes[:16], codes[16:]); i < 0 || math.Abs(list[i].Similarity-want) > 1e-5 {
		t.Errorf("got %v, want the cosine %v of the codes", list, want)
	}
	expect.AnyError(t, expect.Err(run.Neighbours([]string{"two words"}, nil, 1)), "two words")
}
