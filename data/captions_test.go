package data

import (
	"context"
	"slices"
	"strings"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// Every caption has the words of the positions of its figure, in any order of the limbs, and no combination of the test samples is one of training.
func TestCaptionsSayWhereTheLimbsAre(t *testing.T) {
	c := &Captions{Count: 300, Tests: 200, Seed: 3}
	set, err := Load(context.Background(), c, Dirs{}, Need{Train: true, Test: true, Columns: []string{CaptionColumn}})
	fatal.If(t, err)
	seen := [2]map[int]bool{{}, {}}
	orders := map[string]bool{}
	for k, m := range []*Images{set.Train, set.Test} {
		words := gathered(t, m, CaptionColumn)
		for i, label := range m.Labels() {
			seen[k][label] = true
			var limbs, order []string
			for l := 0; l < captionLength; l += 3 {
				texts := lists.Map(words[i*captionLength+l:i*captionLength+l+3], func(word float32) string { return captionWords[int(word)] })
				limbs, order = append(limbs, strings.Join(texts, " ")), append(order, texts[0]+texts[1])
			}
			orders[strings.Join(order, " ")] = true
			var want []string
			for l, text := range strings.Fields(set.Classes[label]) {
				if l%3 == 0 {
					want = append(want, text)
				} else {
					want[l/3] += " " + text
				}
			}
			slices.Sort(limbs)
			slices.Sort(want)
			if !slices.Equal(limbs, want) {
				t.Fatalf("sample %d: %q, want %q in any order", i, limbs, want)
			}
			image := m.Subset([]int{i}).Float32()
			lit := 0
			for _, v := range image {
				if v == 1 {
					lit++
				}
			}
			if lit != 24+4*limbLength { // nothing is cut off by the move
				t.Fatalf("sample %d: %d pixels, want %d", i, lit, 24+4*limbLength)
			}
		}
	}
	for label := range seen[1] {
		if seen[0][label] {
			t.Errorf("the combination %d is in both splits", label)
		}
	}
	if len(seen[1]) < 40 || len(seen[0]) < 100 || len(orders) != 24 {
		t.Errorf("%d and %d combinations in %d orders of limbs", len(seen[0]), len(seen[1]), len(orders))
	}
}
