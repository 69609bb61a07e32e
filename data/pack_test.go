package data

import (
	"bytes"
	"context"
	"reflect"
	"testing"

	"tessera/internal/fatal"
)

// packedSet returns a small packed set: bytes with labels in another order, floats with a scaling.
func packedSet(t testing.TB) (*Set, []byte) {
	t.Helper()
	train, err := NewBytes([]int{2, 2}, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, []int{0, 1, -1})
	fatal.If(t, err)
	test, err := NewFloats([]int{2, 2}, []float32{0.5, -1, 2, 1e-30}, nil)
	fatal.If(t, err)
	s := &Set{Name: "s", Shape: []int{2, 2}, Train: train.Subset([]int{2, 0}), HasTest: true, Classes: []string{"a", "b"}, Notes: []string{"n"},
		Test: test.Scaled(&Scaling{Shift: []float32{0, 0, 0, 1}, Factor: []float32{2, 2, 2, 2}, Clip: true, Mix: make([]float32, 16), Unmix: make([]float32, 16)}), Files: []File{{Path: "f", SHA256: "s"}}, Scale: Scale{&MinMax{}}, doubt: &Error{Dataset: "s", Problem: "p", Hint: "h"}}
	var b bytes.Buffer
	fatal.If(t, s.Pack(&b))
	return s, b.Bytes()
}

// packedMatrix returns a packed sparse matrix with names, an empty row and labels, without its first row.
func packedMatrix(t testing.TB) (*Set, []byte) {
	t.Helper()
	m, err := NewEntries([]int{0, 1, 3, 3}, []int32{0, 0, 2}, []float32{9, 4, -0.5}, 3)
	fatal.If(t, err)
	m.entries.rowNames, m.columns, m.labels = []string{"x", "y", "z"}, []string{"a", "b", "c"}, []int{0, 1, -1}
	s := &Set{Name: "ratings", Shape: []int{3}, Train: m.Subset([]int{1, 2})}
	var b bytes.Buffer
	fatal.If(t, s.Pack(&b))
	return s, b.Bytes()
}

// sameImages compares all observable properties of images.
func sameImages(t *testing.T, got, want *Images) {
	t.Helper()
	if (got == nil) != (want == nil) {
		t.Fatalf("got %v, want %v", got, want)
	}
	if got == nil {
		return
	}
	if got.Checksum() != want.Checksum() || !reflect.DeepEqual(got.Labels(), want.Labels()) || !reflect.DeepEqual(got.Parts, want.Parts) ||
		!reflect.DeepEqual(got.Scaling(), want.Scaling()) || (got.bytes == nil) != (want.bytes == nil) || got.Sparse() != want.Sparse() ||
		!reflect.DeepEqual(got.ValueNames(), want.ValueNames()) || !reflect.DeepEqual(got.RowNames(), want.RowNames()) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAPackedSetIsTheSameSet(t *testing.T) {
	s, b := packedSet(t)
	entry, _ := Registry.Lookup("swimmer")
	swimmer, err := entry.New().Load(context.Background(), nil, Both)
	fatal.If(t, err)
	ratings, packedRatings := packedMatrix(t)
	for _, want := range []*Set{s, swimmer, ratings} {
		var again bytes.Buffer
		fatal.If(t, want.Pack(&again))
		got, err := Unpack(again.Bytes())
		fatal.If(t, err)
		sameImages(t, got.Train, want.Train)
		sameImages(t, got.Test, want.Test)
		g, w := *got, *want
		g.Train, g.Test, w.Train, w.Test = nil, nil, nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	for _, b := range [][]byte{b, packedRatings} {
		for n := range b {
			if _, err := Unpack(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes are a set", n, len(b))
			}
		}
	}
}

func FuzzUnpack(f *testing.F) {
	_, b := packedSet(f)
	f.Add(b)
	_, b = packedMatrix(f)
	f.Add(b)
	f.Add([]byte(packMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Unpack(b)
		if err != nil {
			return
		}
		for _, m := range []*Images{s.Train, s.Test} {
			if m != nil {
				m.Float32()
				m.Labels()
			}
		}
	})
}
