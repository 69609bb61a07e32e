package text_test

import (
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/data/text"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws"
)

func TestGeneratedTextsObeyTheLaws(t *testing.T) {
	for _, name := range []string{"text", "cooccurrence", "tokens", "contexts"} {
		t.Run(name, func(t *testing.T) {
			laws.Check(t, laws.Source, func() data.Source {
				e, _ := data.Registry.Lookup(name)
				s := e.New()
				fatal.If(t, laws.Set(s, "grammar", 200))
				return s
			})
		})
	}
}

// Every word is known, its meaning is that of the text, and a verb has the number of its subject, the first agent; there are sentences in which
// the agent before it has the other number.
func TestSentencesAgree(t *testing.T) {
	s := sequences("", "words", 24, "")
	s.Grammar = 4000
	set := load(t, s)
	class := map[string]text.Word{}
	for _, w := range text.GrammarWords() {
		if _, twice := class[w.Text]; twice {
			t.Errorf("%q is in two classes", w.Text)
		}
		class[w.Text] = w
	}
	expect.Equal(t, set.Tokens.Texts(), len(class)+1)
	crossed := 0
	for _, images := range []*data.Images{set.Train, set.Test} {
		x, labels := images.Float32(), images.Labels()
		for i := range images.Len() {
			list := lists.Map(x[i*24:(i+1)*24], func(v float32) int32 { return int32(v) })
			sentence := set.Tokens.Decode(list)
			if !slices.Contains(list, set.Tokens.End()) {
				t.Errorf("%q is too long", sentence)
			}
			var subject, last *text.Word
			determiner := text.Word{}
			for _, word := range strings.Fields(strings.TrimSuffix(sentence, ".")) {
				w, known := class[word]
				switch {
				case !known || w.Meaning != "" && w.Meaning != set.Classes[labels[i]]:
					t.Fatalf("%q: %q is not of the meaning %s", sentence, word, set.Classes[labels[i]])
				case w.Kind == "determiner":
					determiner = w
				case slices.Contains([]string{"agent", "object", "place"}, w.Kind) && determiner.Text != "the" && determiner.Plural != w.Plural:
					t.Fatalf("%q: %q after %q", sentence, word, determiner.Text)
				case (w.Kind == "relation" || w.Kind == "verb") && w.Plural != subject.Plural:
					t.Fatalf("%q: %q has not the number of %q", sentence, word, subject.Text)
				}
				if w.Kind == "verb" && last.Plural != subject.Plural {
					crossed++
				}
				if w.Kind == "agent" {
					if last = &w; subject == nil {
						subject = last
					}
				}
			}
		}
	}
	if share := float64(crossed) / float64(set.Train.Len()+set.Test.Len()); share < 0.1 || share > 0.2 {
		t.Errorf("in %.3f of the sentences an agent of the other number is before the verb, want about 0.15", share)
	}
}

func TestGeneratedTextsAreStreams(t *testing.T) {
	of := func(n int) *data.Set {
		return load(t, bag("", func(b *text.Bag) { b.Grammar, b.Least, b.Most = n, 1, 1 }))
	}
	small, large := of(40), of(400)
	if n := small.Train.Len(); n != 40 || small.Test.Len() != 10 || !slices.Equal(small.Train.Labels(), large.Train.Labels()[:n]) || slices.Equal(small.Test.Labels(), small.Train.Labels()[:10]) {
		t.Errorf("got %d and %d texts with the labels %v and %v", n, small.Test.Len(), small.Train.Labels(), small.Test.Labels())
	}
	if !slices.Equal(small.Classes, []string{"farm", "kitchen", "school", "sea"}) || len(small.Files) > 0 {
		t.Errorf("got the classes %q and files %v", small.Classes, small.Files)
	}
	err := bag("x.txt", func(b *text.Bag) { b.Grammar = 1 }).Check()
	expect.Error(t, err, "grammar: generates texts", "a file and generated texts")
}
