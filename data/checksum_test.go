package data

import (
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestEqualImagesHaveEqualChecksums(t *testing.T) {
	bytes := []byte{0, 51, 255, 102, 0, 0, 255, 255, 1, 2, 3, 4}
	a, err := NewBytes([]int{2, 2}, bytes, []int{0, 1, 2})
	fatal.If(t, err)
	same, err := NewFloats([]int{2, 2}, a.Float32(), []int{0, 1, 2})
	fatal.If(t, err)
	expect.Equal(t, a.Checksum(), same.Checksum(), "equal images have other checksums")
	expect.Equal(t, a.First(2).Checksum(), a.Subset([]int{0, 1}).Checksum(), "equal images have other checksums")
	seen := []string{a.Checksum()}
	unlabelled, _ := NewBytes([]int{2, 2}, bytes, nil)
	relabelled, _ := NewBytes([]int{2, 2}, bytes, []int{0, 1, 1})
	brighter := slices.Clone(bytes)
	brighter[7]--
	changed, _ := NewBytes([]int{2, 2}, brighter, []int{0, 1, 2})
	shaped, _ := a.WithShape([]int{4})
	for what, m := range map[string]*Images{"no labels": unlabelled, "other labels": relabelled, "another pixel": changed, "another shape": shaped,
		"another order": a.Subset([]int{1, 0, 2}), "fewer": a.First(2)} {
		if slices.Contains(seen, m.Checksum()) {
			t.Errorf("%s: the checksum of other images", what)
		}
		seen = append(seen, m.Checksum())
	}
}
