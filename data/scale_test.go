package data

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestScalingHasTheStatisticsOfTheFittedSamplesOnly(t *testing.T) {
	o := own(t)
	for _, c := range []struct {
		scale Scale
		want  [][]float32
	}{{Scale{Method: scaleStandardise}, o.Standardise}, {Scale{Method: scaleMinmax}, o.Minmax}} {
		images, err := NewFloats([]int{5}, slices.Concat(o.Samples...), nil)
		if err != nil {
			t.Fatal(err)
		}
		splits, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Scale: c.scale}).Split(Selection{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c.scale.Method, splits.Fit, c.want, 2e-6)
		back := splits.Fit.Float32()
		splits.Scaling.Undo(back)
		again, err := NewFloats([]int{5}, back, nil)
		if err != nil {
			t.Fatal(err)
		}
		holds(t, c.scale.Method+" undone", again, o.Samples, 5e-6)
		first, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Test: images, HasTest: true, Scale: c.scale}).Split(Selection{Limit: 4}, 1)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := c.scale.Fit(images.First(4))
		if err != nil || !slices.Equal(first.Scaling.Shift, alone.Shift) || !slices.Equal(first.Scaling.Factor, alone.Factor) ||
			slices.Equal(first.Scaling.Shift, splits.Scaling.Shift) {
			t.Errorf("%s: the statistics are not those of the four fitted samples", c.scale.Method)
		}
		if low, high := first.Test.Range(); c.scale.Method == scaleMinmax && (low != 0 || high != 1) {
			t.Errorf("minmax of other samples than the fitted ones reaches from %g to %g", low, high)
		}
		if x := first.Test.Float32()[0]; x != first.Fit.Float32()[0] {
			t.Errorf("%s: the test samples are scaled to %g, the fitted ones to %g", c.scale.Method, x, first.Fit.Float32()[0])
		}
	}
}

func TestScalesOfImagesAreOfChannels(t *testing.T) {
	values := []float32{1, 10, 2, 20, 3, 30, 4, 40} // two images of 1x2 with two channels
	images, err := NewFloats([]int{1, 2, 2}, values, nil)
	if err != nil {
		t.Fatal(err)
	}
	scaling, err := Scale{Method: scaleMinmax}.Fit(images)
	if err != nil || !slices.Equal(scaling.Shift, []float32{1, 10, 1, 10}) || !slices.Equal(scaling.Factor, []float32{1 / 3., 1 / 30., 1 / 3., 1 / 30.}) {
		t.Errorf("minmax: %+v, %v", scaling, err)
	}
	bytes, err := NewBytes([]int{1, 2}, []byte{0, 255, 51, 102}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := (Scale{Method: scaleBytes}).Fit(bytes); s != nil || err != nil {
		t.Errorf("bytes are scaled twice: %+v, %v", s, err)
	}
	half, err := Scale{Factor: 0.5}.Fit(bytes)
	if err != nil {
		t.Fatal(err)
	}
	scaled := bytes.Scaled(half)
	if low, high := scaled.Range(); low != 0 || high != 0.5 || scaled.Bytes(0) != nil || bytes.Bytes(0) == nil {
		t.Errorf("half of bytes: from %g to %g, bytes %v", low, high, scaled.Bytes(0))
	}
	constant, err := NewFloats([]int{2}, []float32{7, 1, 7, 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{scaleMinmax, scaleStandardise} {
		if s, err := (Scale{Method: method}).Fit(constant); err != nil || s.Factor[0] != 1 || s.Shift[0] != 7 {
			t.Errorf("%s of a constant: %+v, %v", method, s, err)
		}
	}
	for _, wrong := range []any{"twice", 0.0, int64(0), math.Inf(1), math.NaN(), 1e-300, true} {
		if err := new(Scale).FromTOML(wrong); err == nil {
			t.Errorf("scale = %v is taken", wrong)
		}
	}
	for _, s := range []Scale{{}, {Method: scaleMinmax}, {Method: scaleWhiten}, {Factor: 0.25}} {
		var back Scale
		if err := back.FromTOML(s.TOML()); err != nil || back != s {
			t.Errorf("%+v becomes %v, %+v, %v", s, s.TOML(), back, err)
		}
	}
}

func TestDoubtfulArraysSayWhatToWrite(t *testing.T) {
	dir := t.TempDir()
	floats := write(t, dir, "floats.npy", npyBytes("<f4", "False", "(1, 2, 2)", binary.LittleEndian, []float32{0, 17, 255, 3.5}))
	planes := make([]byte, 2*3*8*9)
	for i := range planes {
		planes[i] = byte(i % 251)
	}
	first := write(t, dir, "first.npy", npyBytes("|u1", "False", "(2, 3, 8, 9)", binary.LittleEndian, planes))
	load := func(path string, layout Files) (*Set, error) {
		layout.Images = path
		set, err := as("npy", layout).Load(background, nil, Both)
		if err != nil {
			t.Fatal(err)
		}
		return set, set.Doubt()
	}
	var bad *Error
	if _, err := load(floats, Files{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), `write scale = "bytes"`) {
		t.Errorf("floats up to 255: %v", err)
	}
	set, err := load(floats, Files{Scale: Scale{Method: scaleBytes}})
	if splits, split := set.Split(Selection{}, 1); err != nil || split != nil || splits.Fit.Float32()[2] != 1 {
		t.Errorf(`floats up to 255 with scale = "bytes": %v, %v`, err, split)
	}
	if _, err := load(floats, Files{Scale: Scale{Factor: 1}}); err != nil {
		t.Errorf("floats up to 255 with scale = 1: %v", err)
	}
	if _, err := load(first, Files{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), `write axes = "nchw"`) {
		t.Errorf("channels first: %v", err)
	}
	if set, err := load(first, Files{Axes: channelsLast}); err != nil || !slices.Equal(set.Shape, []int{3, 8, 9}) {
		t.Errorf("axes = nhwc: shape %v, %v", set.Shape, err)
	}
	set, err = load(first, Files{Axes: channelsFirst})
	if err != nil || !slices.Equal(set.Shape, []int{8, 9, 3}) {
		t.Fatalf("axes = nchw: shape %v, %v", set.Shape, err)
	}
	rows := write(t, dir, "rows.npy", npyBytes("|u1", "False", "(2, 216)", binary.LittleEndian, planes))
	if _, err := load(rows, Files{Height: 8, Width: 9, Axes: channelsFirst}); !errors.As(err, &bad) || !strings.Contains(err.Error(), `axes = "nchw" is for arrays of four axes`) {
		t.Errorf("rows with axes = nchw: %v", err)
	}
	for _, l := range []Files{{Height: 8, Width: 9}, {Height: 8, Width: 9, Axes: channelsLast}, {Height: 8, Width: 27, Axes: channelsFirst}, {Axes: channelsFirst}} {
		if _, err := load(rows, l); err != nil {
			t.Errorf("rows with %+v: %v", l, err)
		}
	}
	for i := range planes { // image, row, column, channel
		n, y, x, c := i/216, i/27%8, i/3%9, i%3
		if got, want := set.Train.Bytes(n)[i%216], planes[((n*3+c)*8+y)*9+x]; got != want {
			t.Fatalf("image %d, row %d, column %d, channel %d: got %d, want %d", n, y, x, c, got, want)
		}
	}
}
