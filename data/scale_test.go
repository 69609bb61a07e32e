package data

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestScalingHasTheStatisticsOfTheFittedSamplesOnly(t *testing.T) {
	o := own(t)
	for _, c := range []struct {
		name  string
		scale Scale
		want  [][]float32
	}{{"standardise", scaleNamed("standardise"), o.Standardise}, {"minmax", scaleNamed("minmax"), o.Minmax}} {
		images, err := NewFloats([]int{5}, slices.Concat(o.Samples...), nil)
		fatal.If(t, err)
		splits, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Scale: c.scale}).Split(Selection{}, 1)
		fatal.If(t, err)
		holds(t, c.name, splits.Fit, c.want, 2e-6)
		back := splits.Fit.Float32()
		splits.Scaling.Undo(back)
		again, err := NewFloats([]int{5}, back, nil)
		fatal.If(t, err)
		holds(t, c.name+" undone", again, o.Samples, 5e-6)
		first, err := (&Set{Name: "x", Shape: []int{5}, Train: images, Test: images, HasTest: true, Scale: c.scale}).Split(Selection{Limit: 4}, 1)
		fatal.If(t, err)
		alone, err := c.scale.Fit(images.First(4))
		if err != nil || !slices.Equal(first.Scaling.Shift, alone.Shift) || !slices.Equal(first.Scaling.Factor, alone.Factor) ||
			slices.Equal(first.Scaling.Shift, splits.Scaling.Shift) {
			t.Errorf("%s: the statistics are not those of the four fitted samples", c.name)
		}
		if low, high := first.Test.Range(); c.name == "minmax" && (low != 0 || high != 1) {
			t.Errorf("minmax of other samples than the fitted ones reaches from %g to %g", low, high)
		}
		expect.Equal(t, first.Test.Float32()[0], first.Fit.Float32()[0], c.name, "the test samples are scaled to")
	}
}

// scaleNamed returns a scaling with its defaults.
func scaleNamed(name string) Scale {
	e, _ := Scalings.Lookup(name)
	return Scale{e.New()}
}

func TestScalesOfImagesAreOfChannels(t *testing.T) {
	values := []float32{1, 10, 2, 20, 3, 30, 4, 40} // two images of 1x2 with two channels
	images, err := NewFloats([]int{1, 2, 2}, values, nil)
	fatal.If(t, err)
	scaling, err := Scale{&MinMax{}}.Fit(images)
	if err != nil || !slices.Equal(scaling.Shift, []float32{1, 10, 1, 10}) || !slices.Equal(scaling.Factor, []float32{1 / 3., 1 / 30., 1 / 3., 1 / 30.}) {
		t.Errorf("minmax: %+v, %v", scaling, err)
	}
	bytes, err := NewBytes([]int{1, 2}, []byte{0, 255, 51, 102}, nil)
	fatal.If(t, err)
	if s, err := (Scale{&Bytes255{}}).Fit(bytes); s != nil || err != nil {
		t.Errorf("bytes are scaled twice: %+v, %v", s, err)
	}
	half, err := Scale{&Factor{By: 0.5}}.Fit(bytes)
	fatal.If(t, err)
	scaled := bytes.Scaled(half)
	if low, high := scaled.Range(); low != 0 || high != 0.5 || scaled.Bytes(0) != nil || bytes.Bytes(0) == nil {
		t.Errorf("half of bytes: from %g to %g, bytes %v", low, high, scaled.Bytes(0))
	}
	constant, err := NewFloats([]int{2}, []float32{7, 1, 7, 3}, nil)
	fatal.If(t, err)
	for _, method := range []string{"minmax", "standardise"} {
		if s, err := scaleNamed(method).Fit(constant); err != nil || s.Factor[0] != 1 || s.Shift[0] != 7 {
			t.Errorf("%s of a constant: %+v, %v", method, s, err)
		}
	}
	for _, wrong := range []Scale{{&Factor{}}, {&Factor{By: math.Inf(1)}}, {&Factor{By: math.NaN()}}, {&Factor{By: 1e-300}},
		{&MinMax{}, &Log1p{}}, {&Log1p{}, &Bytes255{}}, {&RowNorm{Norm: "l3"}}, {&RowNorm{Norm: "l1", To: -1}}, {&TFIDF{}}, {&PPMI{}}} {
		if _, err := wrong.Fit(constant); err == nil || wrong.OfValues() == nil {
			t.Errorf("scale = %v is taken", wrong)
		}
	}
}

func TestDoubtfulArraysSayWhatToWrite(t *testing.T) {
	dir := t.TempDir()
	floats := write(t, dir, "floats.npy", npyBytes("<f4", "False", "(1, 2, 2)", binary.LittleEndian, []float32{0, 17, 255, 3.5}))
	planes := lists.Of(2*3*8*9, func(i int) byte { return byte(i % 251) })
	first := write(t, dir, "first.npy", npyBytes("|u1", "False", "(2, 3, 8, 9)", binary.LittleEndian, planes))
	load := func(path string, layout Files) (*Set, error) {
		layout.Images = path
		set, err := as("npy", layout).Load(background, nil, Both)
		fatal.If(t, err)
		return set, set.Doubt()
	}
	expect.As[*Error](t, expect.Err(load(floats, Files{})), `write scale = "bytes"`, "floats up to 255")
	set, err := load(floats, Files{Scale: Scale{&Bytes255{}}})
	if splits, split := set.Split(Selection{}, 1); err != nil || split != nil || splits.Fit.Float32()[2] != 1 {
		t.Errorf(`floats up to 255 with scale = "bytes": %v, %v`, err, split)
	}
	expect.NoError(t, expect.Err(load(floats, Files{Scale: Scale{&Factor{By: 1}}})), "floats up to 255 with scale = 1")
	expect.As[*Error](t, expect.Err(load(first, Files{})), `write axes = "nchw"`, "channels first")
	if set, err := load(first, Files{Axes: channelsLast}); err != nil || !slices.Equal(set.Shape, []int{3, 8, 9}) {
		t.Errorf("axes = nhwc: shape %v, %v", set.Shape, err)
	}
	set, err = load(first, Files{Axes: channelsFirst})
	if err != nil || !slices.Equal(set.Shape, []int{8, 9, 3}) {
		t.Fatalf("axes = nchw: shape %v, %v", set.Shape, err)
	}
	rows := write(t, dir, "rows.npy", npyBytes("|u1", "False", "(2, 216)", binary.LittleEndian, planes))
	expect.As[*Error](t, expect.Err(load(rows, Files{Height: 8, Width: 9, Axes: channelsFirst})), `axes = "nchw" is for arrays of four axes`, "rows with axes = nchw")
	for _, l := range []Files{{Height: 8, Width: 9}, {Height: 8, Width: 9, Axes: channelsLast}, {Height: 8, Width: 27, Axes: channelsFirst}, {Axes: channelsFirst}} {
		expect.NoError(t, expect.Err(load(rows, l)), "rows with", l)
	}
	for i := range planes { // image, row, column, channel
		n, y, x, c := i/216, i/27%8, i/3%9, i%3
		if got, want := set.Train.Bytes(n)[i%216], planes[((n*3+c)*8+y)*9+x]; got != want {
			t.Fatalf("image %d, row %d, column %d, channel %d: got %d, want %d", n, y, x, c, got, want)
		}
	}
}

// The values of scikit-learn and NumPy are in testdata, with their script.
func TestScalingsOfCountsHaveTheValuesOfScikitLearn(t *testing.T) {
	var all struct {
		Fit, Other [][]float32
		Cases      []struct {
			Scale Scale
			Want  [][]float32
		}
	}
	text, err := os.ReadFile("testdata/scalings.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	fatal.If(t, err)
	dense := func(rows [][]float32) *Images {
		m, err := NewFloats([]int{7}, slices.Concat(rows...), nil)
		fatal.If(t, err)
		return m
	}
	sparse := func(rows [][]float32) *Images {
		starts, columns, values := []int{0}, []int32(nil), []float32(nil)
		for _, row := range rows {
			for j, v := range row {
				if v != 0 {
					columns, values = append(columns, int32(j)), append(values, v)
				}
			}
			starts = append(starts, len(values))
		}
		m, err := NewEntries(starts, columns, values, 7)
		fatal.If(t, err)
		return m.WithZeros()
	}
	for kind, of := range map[string]func(rows [][]float32) *Images{"dense": dense, "sparse": sparse} {
		for _, c := range all.Cases {
			text, _ := json.Marshal(c.Scale)
			set := &Set{Name: "x", Shape: []int{7}, Train: of(all.Fit), Test: of(all.Other), HasTest: true, Scale: c.Scale}
			splits, err := set.Split(Selection{}, 1)
			fatal.If(t, err, kind, text)
			holds(t, kind+" "+string(text), splits.Fit, c.Want[:len(all.Fit)], 2e-6)
			holds(t, kind+" "+string(text), splits.Test, c.Want[len(all.Fit):], 2e-6)
			expect.Equal(t, splits.Test.Zeros(), (kind == "sparse"), kind, text, "the zeros are stored")
			var packed bytes.Buffer
			scaled := &Set{Name: "x", Shape: []int{7}, Train: splits.Fit, Scale: c.Scale}
			fatal.If(t, scaled.Pack(&packed))
			if back, err := Unpack(packed.Bytes()); err != nil || !slices.Equal(back.Train.Float32(), splits.Fit.Float32()) || back.Train.Zeros() != splits.Fit.Zeros() {
				t.Errorf("%s: %s: packed and unpacked it is another set: %v", kind, text, err)
			}
		}
		for _, s := range []Scale{scaleNamed("standardise"), scaleNamed("whiten"), {&RowNorm{Norm: "l1", To: 1}, &Standardise{Centre: true}}} {
			if _, err := s.Fit(of(all.Fit)); kind == "sparse" && (err == nil || !strings.Contains(err.Error(), "makes other values of the zeros")) {
				t.Errorf("%v: got %v, want an error that the zeros are not stored", s, err)
			}
		}
	}
	negative, err := NewFloats([]int{2}, []float32{1, -2, 3, 4}, nil)
	fatal.If(t, err)
	for _, name := range []string{"log1p", "tfidf", "ppmi"} {
		expect.Error(t, expect.Err(scaleNamed(name).Fit(negative)), "sample 0, value 1: got -2, want numbers", name, "of negative numbers")
	}
}
