package data

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestImagesFromMemoryAreASource(t *testing.T) {
	values := []float32{0, 0.5, 1, 0.25, 1, 1, 0, 0}
	m, err := FromFloats(values, []int{2, 2}, []int{3, -1})
	fatal.If(t, err)
	set, err := m.Load(t.Context(), nil, Both)
	fatal.If(t, err)
	if shape, ok := m.Shape(nil); !ok || !slices.Equal(shape, []int{2, 2}) || m.HasTest() {
		t.Errorf("shape %v, test images %v", shape, m.HasTest())
	}
	if !slices.Equal(set.Train.Float32(), values) || !slices.Equal(set.Train.Labels(), []int{3, -1}) || set.Files[0].SHA256 != m.SHA256 {
		t.Errorf("got %v, labels %v, files %v", set.Train.Float32(), set.Train.Labels(), set.Files)
	}
	both, err := m.WithTest(values[:4], nil)
	fatal.If(t, err)
	if set, err = both.Load(t.Context(), nil, Both); err != nil || !set.HasTest || set.Test.Len() != 1 || set.Test.Labels() != nil {
		t.Errorf("with test images: %+v, %v", set, err)
	}
}

func TestTheChecksumCoversImagesShapeAndLabels(t *testing.T) {
	sums := map[string]bool{}
	for i, make := range []func() (*Memory, error){
		func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{2, 2}, nil) },
		func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0.5}, []int{2, 2}, nil) },
		func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{1, 4}, nil) },
		func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{2, 2}, []int{0}) },
		func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{2, 2}, []int{1}) },
	} {
		m, err := make()
		fatal.If(t, err)
		again, _ := make()
		if sums[m.SHA256] || again.SHA256 != m.SHA256 {
			t.Errorf("set %d: checksum %s is another's, or changes", i, m.SHA256)
		}
		sums[m.SHA256] = true
		expect.NoError(t, expect.Err(m.For(again)), "set", i)
		expect.AnyError(t, expect.Err(m.For(&Memory{SHA256: "0123"})), "set", i, "is taken for another")
	}
}

func TestImagesThatCannotBeAreErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for want, make := range map[string]func() (*Memory, error){
		"3 values":                 func() (*Memory, error) { return FromFloats([]float32{0, 1, 1}, []int{2, 2}, nil) },
		"no values":                func() (*Memory, error) { return FromFloats(nil, []int{2, 2}, nil) },
		"got [1 2 2 1], want":      func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{1, 2, 2, 1}, nil) },
		"got [], want":             func() (*Memory, error) { return FromFloats([]float32{0}, nil, nil) },
		"shape [-1 -2]":            func() (*Memory, error) { return FromFloats([]float32{0}, []int{-1, -2}, nil) },
		"2 labels for 1":           func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0}, []int{2, 2}, []int{1, 2}) },
		"image 0, row 1, column 1": func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, nan}, []int{2, 2}, nil) },
		"image 1, row 0, column 0": func() (*Memory, error) { return FromFloats([]float32{0, 1, 1, 0, inf, 0, 0, 0}, []int{2, 2}, nil) },
		"not in this process":      func() (*Memory, error) { return (&Memory{}).WithTest([]float32{1}, nil) },
		"images are not in this":   func() (*Memory, error) { _, err := (&Memory{}).Load(t.Context(), nil, Both); return nil, err },
	} {
		expect.As[*Error](t, expect.Err(make()), want)
	}
}

func TestTheLabelsInMemoryTellTheNumberOfClasses(t *testing.T) {
	values := make([]float32, 8)
	for _, c := range []struct {
		train, test []int
		want        int
		unlabelled  bool
	}{
		{nil, nil, 0, true},
		{[]int{-1, -1}, nil, 0, true},
		{[]int{0, 2}, nil, 3, false},
		{[]int{-1, 0}, []int{4, 1}, 5, false},
	} {
		m, err := FromFloats(values, []int{2, 2}, c.train)
		fatal.If(t, err)
		if c.test != nil {
			if m, err = m.WithTest(values, c.test); err != nil {
				t.Fatal(err)
			}
		}
		n, ok := Classes(m, nil)
		if n != c.want || ok != (c.want > 0) || IsUnlabelled(m) != c.unlabelled {
			t.Errorf("labels %v and %v: got %d classes (%v), unlabelled %v, want %d, %v", c.train, c.test, n, ok, IsUnlabelled(m), c.want, c.unlabelled)
		}
	}
	declared := &Memory{SHA256: "0123"} // of a config.toml: the images may have labels
	if n, ok := Classes(declared, nil); ok || IsUnlabelled(declared) {
		t.Errorf("images that are not in this process: %d classes, unlabelled %v", n, IsUnlabelled(declared))
	}
}
