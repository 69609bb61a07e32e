package tokens

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// fit fits a tokenizer to texts.
func fit(t *testing.T, kind *Tokenizer, limits Limits, texts ...string) *Tokenizer {
	t.Helper()
	fitted, err := kind.Fit(limits, func(do func(string, bool)) error {
		for _, text := range texts {
			do(text, true)
		}
		return nil
	})
	fatal.If(t, err)
	fatal.If(t, fitted.Check())
	return fitted
}

// The pairs of the paper of Sennrich et al., figure 1: e s, es t, l o, lo w are merged first, whichever of equally frequent ones comes first.
func TestMergesAreThoseOfTheDefinition(t *testing.T) {
	texts := strings.Repeat(" low", 5) + strings.Repeat(" lower", 2) + strings.Repeat(" newest", 6) + strings.Repeat(" widest", 3)
	fitted := fit(t, &Tokenizer{Kind: Pairs}, Limits{Size: 258 + 6}, texts)
	names := lists.Of(len(fitted.Merges), func(i int) string { return fitted.Name(int32(256 + i)) })
	if want := []string{"es", "est", " l", "ow", " low", " n"}; !slices.Equal(names, want) { // 9, 9, then " l", "lo" and "ow" 7 times: that of the smallest numbers
		t.Errorf("got the merges %q, want %q", names, want)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		pieces := map[string]int{}
		for range 30 {
			b := lists.Of(1+r.IntN(12), func(int) byte { return "abcd"[r.IntN(4)] })
			pieces[string(b)] += 1 + r.IntN(5)
		}
		if got, want := mergesOf(pieces, 40), plainMerges(pieces, 40); !slices.Equal(got, want) {
			t.Fatalf("pieces %v: got %v, want %v", pieces, got, want)
		}
	}
}

// plainMerges counts all pairs again for each merge.
func plainMerges(pieces map[string]int, most int) (merges [][2]int32) {
	lists := map[string][]int32{}
	for piece := range pieces {
		for _, b := range []byte(piece) {
			lists[piece] = append(lists[piece], int32(b))
		}
	}
	for len(merges) < most {
		counts := map[[2]int32]int{}
		for piece, list := range lists {
			for i := 1; i < len(list); i++ {
				counts[[2]int32{list[i-1], list[i]}] += pieces[piece]
			}
		}
		best, n := [2]int32{}, 1
		for pair, count := range counts {
			if count > n || count == n && n > 1 && slices.Compare(pair[:], best[:]) < 0 {
				best, n = pair, count
			}
		}
		if n < 2 {
			break
		}
		token := int32(256 + len(merges))
		merges = append(merges, best)
		for piece, list := range lists {
			var to []int32
			for i := 0; i < len(list); i++ {
				if i+1 < len(list) && [2]int32{list[i], list[i+1]} == best {
					to = append(to, token)
					i++
				} else {
					to = append(to, list[i])
				}
			}
			lists[piece] = to
		}
	}
	return merges
}

func TestBytesAndPairsEncodeAnyBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pairs := fit(t, &Tokenizer{Kind: Pairs}, Limits{Size: 400}, strings.Repeat("It is a truth universally acknowledged, that a single man ...\n\n  in possession of 12,000 pounds", 3))
	for range 2000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			if b[i] = byte(r.Uint32()); r.IntN(2) == 0 {
				b[i] = " \n\tab1.é"[r.IntN(8)]
			}
		}
		for _, one := range []*Tokenizer{pairs, {Kind: Bytes}} {
			if got := one.Decode(one.Encode(string(b))); got != string(b) {
				t.Fatalf("%s: %q became %q", one.Kind, b, got)
			}
		}
	}
	text := "a universally acknowledged truth"
	if n := len(pairs.Encode(text)); n > len(text)/2 {
		t.Errorf("%d tokens of %d bytes of a text like the fitted one", n, len(text))
	}
}

func TestWordsAndCharacters(t *testing.T) {
	words := fit(t, &Tokenizer{Kind: Words, Lower: true}, Limits{}, "Don't stop: the cafe\u0301 costs 3.50!", "The end. stop")
	expect.Slice(t, words.Names, []string{"stop", "the", "!", ".", "3.50", ":", "café", "costs", "don't", "end"})
	expect.Equal(t, words.Decode(words.Encode("The café, don't!")), "the café <unknown> don't!")
	plain := fit(t, &Tokenizer{Kind: Words, Lower: true, Plain: true}, Limits{Size: 6}, "b a a, c! c c d")
	expect.Slice(t, plain.Names, []string{"c", "a", "b"})
	characters := fit(t, &Tokenizer{Kind: Characters}, Limits{}, "añb\xff")
	expect.Equal(t, characters.Decode(characters.Encode("bañ\xffz")), "bañ\xff<unknown>")
	if list := words.Encode("stop"); len(list) != 1 || words.Name(list[0]) != "stop" || words.Decode([]int32{list[0], words.Pad(), words.End(), list[0]}) != "stop" {
		t.Errorf("got %v", list)
	}
	_, err := (&Tokenizer{Kind: Words}).Fit(Limits{Texts: 2}, func(do func(string, bool)) error { do("one", true); do("two", true); return nil })
	expect.Equal(t, err, ErrEmpty)
}
