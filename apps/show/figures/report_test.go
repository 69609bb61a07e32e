package figures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

func TestEqualInputsGiveEqualFiles(t *testing.T) {
	folder, extensions := t.TempDir(), []string{".svg", ".png", ".pdf"}
	if testing.Short() {
		extensions = extensions[:1]
	}
	for name, figure := range figures(t) {
		for _, extension := range extensions {
			var files [2][]byte
			for i := range files {
				f, err := figure()
				fatal.If(t, err)
				path := filepath.Join(folder, name+extension)
				fatal.If(t, f.Save(path))
				files[i], _ = os.ReadFile(path)
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Errorf("%s%s: drawn twice, two files", name, extension)
			}
			if extension == ".svg" {
				checkSVG(t, name, files[0])
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) > 0 {
		t.Errorf("left beside the figures: %v", left)
	}
}

// checkSVG checks that a text is valid XML, and that it contains no fonts or pictures that other machines could not show.
func checkSVG(t *testing.T, name string, text []byte) {
	t.Helper()
	read := xml.NewDecoder(bytes.NewReader(text))
	for {
		_, err := read.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Errorf("%s.svg: %v", name, err)
			return
		}
	}
	if bytes.Count(text, []byte("font-family:")) != bytes.Count(text, []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif")) {
		t.Errorf("%s.svg: a font without others in its place", name)
	}
	if bytes.Contains(text, []byte("image/jpg")) {
		t.Errorf("%s.svg: a PNG that is called a JPEG", name)
	}
}

func TestSaveRefusesWhatItCannotWrite(t *testing.T) {
	f, err := Penalties(0.1)
	fatal.If(t, err)
	expect.Error(t, f.Save("figure.gif"), ".svg or .pdf", "an unknown extension")
	expect.Is(t, f.Save(filepath.Join(t.TempDir(), "no", "figure.png")), fs.ErrNotExist, "into a folder that is not there")
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	nan := float32(math.NaN())
	four := []float32{1, 2, 3, 4}
	for name, draw := range map[string]func() (*Figure, error){
		"penalties at 1":    func() (*Figure, error) { return Penalties(1) },
		"penalties below 0": func() (*Figure, error) { return Penalties(-0.1) },
		"no images":         func() (*Figure, error) { return ImageRows() },
		"an empty row":      func() (*Figure, error) { return ImageRows(ImageRow{Shape: []int{2, 2}}) },
		"vectors":           func() (*Figure, error) { return ImageRows(ImageRow{Shape: []int{4}, Images: four}) },
		"half an image":     func() (*Figure, error) { return ImageRows(ImageRow{Shape: []int{2, 3}, Images: four}) },
		"an image of NaN":   func() (*Figure, error) { return ImageRows(ImageRow{Shape: []int{1, 1}, Images: []float32{nan}}) },
		"no codes":          func() (*Figure, error) { return Histograms() },
		"half a code":       func() (*Figure, error) { return Histograms(CodeRow{Units: 3, Codes: four}) },
		"a code of NaN":     func() (*Figure, error) { return Histograms(CodeRow{Units: 1, Codes: []float32{nan}}) },
		"no atoms":          func() (*Figure, error) { return Atoms(nil) },
		"atoms of no shape": func() (*Figure, error) { return Atoms(&metrics.Atoms{Count: 4, Values: four}) },
		"no vectors":        func() (*Figure, error) { return HeatMaps() },
		"a vector of NaN":   func() (*Figure, error) { return HeatMaps(ImageRow{Shape: []int{1}, Images: []float32{nan}}) },
		"half a vector":     func() (*Figure, error) { return Spectra(ImageRow{Shape: []int{3}, Images: four}) },
		"unequal rows": func() (*Figure, error) {
			return Spectra(ImageRow{Shape: []int{2}, Images: four}, ImageRow{Shape: []int{4}, Images: four})
		},
		"too few atoms": func() (*Figure, error) { return Atoms(&metrics.Atoms{Shape: []int{2, 2}, Count: 2, Values: four}) },
		"a bias of no image": func() (*Figure, error) {
			return Atoms(&metrics.Atoms{Shape: []int{2, 2}, Count: 1, Values: four, Bias: four[:1]})
		},
		"no points":            func() (*Figure, error) { return Curves(nil, nil) },
		"no points to compare": func() (*Figure, error) { return Pareto([]Point{{Values: numbers("mse", 0.1)}}, nil) },
		"no epochs":            func() (*Figure, error) { return Training(TrainingRun{Label: "empty"}) },
		"one layer":            func() (*Figure, error) { return Network(NetworkLayer{"alone", 3}) },
		"a layer of nothing":   func() (*Figure, error) { return Network(NetworkLayer{"input", 3}, NetworkLayer{"output", 0}) },
	} {
		if f, err := draw(); err == nil || f != nil {
			t.Errorf("%s: drawn", name)
		}
	}
}

func TestImagesAreMagnifiedWithoutSmoothing(t *testing.T) {
	f, err := ImageRows(ImageRow{Shape: []int{1, 2}, Images: []float32{0, 0.2, 1, 2}, Tone: Unit})
	fatal.If(t, err)
	const scale = 48 // two pixels fill an image with a side of 96 pixels
	picture := f.Image()
	grey := []uint8{0, 51, 255, 255}
	for i, want := range grey {
		left := margin + rule + i*scale + i/2*rule
		for _, at := range [][2]int{{0, 0}, {scale - 1, 0}, {0, scale - 1}, {scale - 1, scale - 1}} {
			if got := color.RGBAModel.Convert(picture.At(left+at[0], margin+rule+at[1])); got != (color.RGBA{want, want, want, 255}) {
				t.Errorf("pixel %d, corner %v: got %v, want %d", i, at, got, want)
			}
		}
	}
	for _, x := range []int{margin, margin + 1, margin + rule + 2*scale, margin + 2*rule + 4*scale} {
		expect.Equal(t, color.RGBAModel.Convert(picture.At(x, margin+20)), color.Color(separator), "column", x)
	}
}

func TestTonesMapValuesToGreys(t *testing.T) {
	rgb := func(r, g, b uint8) color.RGBA { return color.RGBA{r, g, b, 255} }
	for _, c := range []struct {
		name   string
		tone   Tone
		shape  []int
		values []float32
		pixel  int
		want   color.RGBA
	}{
		{"stretched: the least is black", Stretched, []int{1, 3}, []float32{-4, 0, 4}, 0, rgb(0, 0, 0)},
		{"stretched: the middle is grey", Stretched, []int{1, 3}, []float32{-4, 0, 4}, 1, rgb(128, 128, 128)},
		{"stretched: the greatest is white", Stretched, []int{1, 3}, []float32{-4, 0, 4}, 2, rgb(255, 255, 255)},
		{"stretched: one value is black", Stretched, []int{1, 2}, []float32{7, 7}, 1, rgb(0, 0, 0)},
		{"unit: below is cut", Unit, []int{1, 2}, []float32{-4, 4}, 0, rgb(0, 0, 0)},
		{"signed: without signs in greys", Signed, []int{1, 2}, []float32{1, 5}, 0, rgb(51, 51, 51)},
		{"signed: in greys despite rounding", Signed, []int{1, 3}, []float32{1, 5, -1e-6}, 0, rgb(51, 51, 51)},
		{"signed: rounding is black", Signed, []int{1, 3}, []float32{1, 5, -1e-6}, 2, rgb(0, 0, 0)},
		{"signed: a small negative value is no rounding", Signed, []int{1, 2}, []float32{5, -1e-4}, 0, rgb(255, 115, 77)},
		{"signed: positive is red", Signed, []int{1, 2}, []float32{1, -2}, 0, rgb(128, 57, 38)},
		{"signed: negative is blue", Signed, []int{1, 2}, []float32{1, -2}, 1, rgb(77, 140, 255)},
		{"signed: zero is black", Signed, []int{1, 3}, []float32{1, -2, 0}, 2, rgb(0, 0, 0)},
		{"three channels are colours", Unit, []int{1, 1, 3}, []float32{0, 1, 0.5}, 0, rgb(0, 255, 128)},
		{"two channels are their mean", Unit, []int{1, 1, 2}, []float32{0, 1}, 0, rgb(128, 128, 128)},
	} {
		r, n, err := newRaster(c.shape, 1, c.tone, c.values, rowWidth, largest)
		fatal.If(t, err)
		got := r.image(c.values, n).RGBAAt(rule+c.pixel*r.scale, rule)
		expect.Equal(t, got, c.want, c.name)
	}
}

func TestGridsAreWiderThanHighAndWasteFewCells(t *testing.T) {
	for n := 1; n < 500; n++ {
		c := gridColumns(n)
		rows := (n + c - 1) / c
		if rows > c || rows*c < n || rows*c-n >= c {
			t.Errorf("%d cells: %d columns, %d rows", n, c, rows)
		}
	}
	for n, want := range map[int]int{1: 1, 4: 2, 21: 7, 101: 13} {
		expect.Equal(t, gridColumns(n), want, n, "cells in")
	}
}

// The strip above an atom contains its number, as large as the cells allow. Every column is numbered, or some columns if the
// cells are narrow.
func TestAtomsAreNumberedAtAnySizeOfTheirCells(t *testing.T) {
	for _, c := range []struct{ side, count, every int }{{28, 100, 1}, {8, 16, 1}, {2, 1000, 1}, {1, 10_000, 3}} {
		grid := &raster{height: c.side, width: c.side, channels: 1, columns: gridColumns(c.count)}
		grid.scale = max(1, min((rowWidth-rule)/grid.columns-rule, largestAtom)/c.side)
		n := newNumbering(grid, c.count)
		widest := n.style.Width(fmt.Sprint(c.count - 1))
		if space := dots(n.every * grid.stepX()); widest > space || n.style.Font.Size < leastNumber || n.every < c.every {
			t.Errorf("%d atoms of %d pixels: %v points in every column of %d, %v wide in %v", c.count, c.side, n.style.Font.Size, n.every, widest, space)
		}
	}
	f, err := Atoms(&metrics.Atoms{Shape: []int{1, 1}, Count: 4, Values: []float32{1, 1, 1, 1}})
	fatal.If(t, err)
	drawn := f.Image()
	dark := func(column, row int) (n int) { // pixels of text in the strip above an atom
		strip := newNumbering(&raster{width: 1, scale: largestAtom, columns: 2}, 4).grid.strip
		for y := range strip {
			for x := range largestAtom {
				at := drawn.At(margin+column*(largestAtom+rule)+rule+x, margin+row*(largestAtom+rule+strip)+rule+y)
				if g := color.GrayModel.Convert(at).(color.Gray); g.Y < 100 {
					n++
				}
			}
		}
		return n
	}
	seen := map[int]bool{}
	for i := range 4 {
		n := dark(i%2, i/2)
		if n == 0 || seen[n] {
			t.Errorf("%d dark pixels above atom %d, %v above the others", n, i, seen)
		}
		seen[n] = true
	}
}

func TestBarsShowTheEffectsOfUnits(t *testing.T) {
	draw := func(effects ...float64) image.Image {
		f, err := WeighedAtoms(&metrics.Atoms{Shape: []int{1, 1}, Count: 4, Values: []float32{1, 2, 3, 4}}, effects)
		fatal.If(t, err)
		return f.Image()
	}
	const cell = largestAtom + rule
	strip := newNumbering(&raster{width: 1, scale: largestAtom, columns: 2}, 4).grid.strip + bar - rule
	length := func(drawn image.Image, i int) (n int) {
		for x := range cell {
			if color.RGBAModel.Convert(drawn.At(margin+i%2*cell+x, margin+i/2*(cell+strip)+strip+rule-1)) == color.Color(barColor) {
				n++
			}
		}
		return n
	}
	drawn := draw(0, 4, 1, 2)
	for i, want := range []int{0, largestAtom, largestAtom / 4, largestAtom / 2} {
		expect.Equal(t, length(drawn, i), want, "unit", i, "a bar of")
	}
	if drawn = draw(0, 0, 0, 0); length(drawn, 0) != 0 {
		t.Error("a unit without an effect has a bar")
	}
	f, err := WeighedAtoms(&metrics.Atoms{Shape: []int{1, 1}, Count: 3, Values: []float32{1, 2, 3}, Bias: []float32{1}}, []float64{1, 2, 3})
	fatal.If(t, err)
	at := image.Pt(margin+cell+cell/2, margin+cell+strip+strip-rule)
	expect.Equal(t, color.RGBAModel.Convert(f.Image().At(at.X, at.Y)), color.Color(color.RGBA{255, 255, 255, 255}), "the bias, which is no unit, has a bar")
	for _, wrong := range [][]float64{{}, {1, 2, 3}, {1, 2, 3, -1}, {1, 2, 3, math.NaN()}, {1, 2, 3, math.Inf(1)}} {
		expect.AnyError(t, expect.Err(WeighedAtoms(&metrics.Atoms{Shape: []int{1, 1}, Count: 4, Values: []float32{1, 2, 3, 4}}, wrong)), "the effects", wrong)
	}
}

func TestTheAxisSaysWhichImagesTheErrorIsOf(t *testing.T) {
	test, all := []Point{{}}, []Point{{Split: "all"}}
	for want, points := range map[string][][]Point{
		"mse of test images": {test, nil}, "mse of all images": {all, nil}, "mse": {all, test},
	} {
		expect.Equal(t, mseOf(points...).label, want)
	}
}

func TestTheBiasIsTheLastCellInAFrame(t *testing.T) {
	f, err := Atoms(&metrics.Atoms{Shape: []int{1, 1}, Count: 3, Values: []float32{1, 2, 3}, Bias: []float32{-3}})
	fatal.If(t, err)
	const cell = largestAtom + rule // size of one of four cells in two rows
	strip := newNumbering(&raster{width: 1, scale: largestAtom, columns: 2}, 3).grid.strip
	picture := f.Image()
	for _, c := range []struct {
		what string
		x, y int
		want color.RGBA
	}{
		{"above the first atom", cell / 2, 0, separator},
		{"above the bias", cell + cell/2, cell + strip, frameColor},
		{"to the right of the bias", 2 * cell, cell + strip + cell/2, frameColor},
		{"above the bias's neighbour", cell / 2, cell + strip, separator},
		{"an atom of one value", rule, rule + strip, color.RGBA{255, 255, 255, 255}},
		{"the line between a number and a white atom", cell / 2, strip, separator},
		{"above that line", cell / 2, strip - rule, color.RGBA{255, 255, 255, 255}},
		{"a negative bias", cell + rule, cell + rule + 2*strip, color.RGBA{77, 140, 255, 255}},
	} {
		expect.Equal(t, color.RGBAModel.Convert(picture.At(margin+c.x, margin+c.y)), color.Color(c.want), c.what)
	}
}

func TestFiguresShowTheStudysImagesWhereThereAreSo(t *testing.T) {
	for _, c := range []struct {
		dataset string
		n       int
		want    []int
	}{
		{"fashion-mnist", 10000, []int{0, 1, 31, 3, 4, 5, 6, 7, 8, 9}},
		{"fashion-mnist", 20, []int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}},
		{"swimmer", 256, []int{0, 25, 51, 76, 102, 128, 153, 179, 204, 230}},
		{"own", 3, []int{0, 1, 2}},
	} {
		expect.Slice(t, DisplayIndices(c.dataset, c.n), c.want, c.n, "images of", c.dataset)
	}
}

func TestPenaltiesHaveTheStudysValues(t *testing.T) {
	for _, c := range []struct {
		name       string
		p, t, want float64
	}{
		{"kl", 0.3, 0.999, 4.22}, {"kl", 0.3, 0.001, 1.46}, {"kl", 0.3, 0.3, 0},
		{"epsilon_l1", 0.3, 0.3, 0.01}, {"epsilon_l1", 0, 1, 1}, {"l2", 0.3, 0.8, 0.25}, {"l2", 0, -1, 1},
		{"log", 0, 1, 0.693}, {"log", 0, -1, 0.693}, {"log", 0.3, 0.3, 0},
	} {
		i := slices.IndexFunc(penalties, func(s penalty) bool { return s.name == c.name })
		if got := penalties[i].value(c.p, c.t); math.Abs(got-c.want) > 0.006 {
			t.Errorf("%s(%v, %v) = %v, want %v", c.name, c.p, c.t, got, c.want)
		}
	}
}

func TestHistogramsCountEveryValueOnce(t *testing.T) {
	h, err := newHistograms(CodeRow{Units: 4, Codes: []float32{0, 0.255, 0.259, 1}})
	fatal.If(t, err)
	counts, largest := h.counts(h.Codes)
	if h.low != 0 || h.high != 1 || counts[0] != 1 || counts[25] != 2 || counts[99] != 1 || largest != 99 {
		t.Errorf("from %v to %v: %v, the largest in %d", h.low, h.high, counts, largest)
	}
	if h, _ = newHistograms(CodeRow{Units: 2, Codes: []float32{-2, 6}}); h.low != -2 || h.high != 6 {
		t.Errorf("codes outside of [0,1]: from %v to %v", h.low, h.high)
	}
	if h, _ = newHistograms(CodeRow{Units: 2, Codes: []float32{0, 0.04}}); h.low != 0 || h.high != float64(float32(0.04)) {
		t.Errorf("small codes: from %v to %v", h.low, h.high)
	}
	if h, _ = newHistograms(CodeRow{Units: 2, Codes: []float32{0, 0}}); h.low != 0 || h.high != 1 {
		t.Errorf("an all-zero code: from %v to %v", h.low, h.high)
	}
}

// A model is labelled in a scatter if its colour does not identify it: without a target, or if another model has its target.
func TestScattersNameModelsThatTheirColourDoesNotIdentify(t *testing.T) {
	at := func(label string, p, mse float64) Point {
		return Point{Label: label, P: p, Values: numbers("mse", mse, "max_approx", 0.1)}
	}
	ours := []Point{at("free", math.NaN(), 0.01), at("narrow", 0.1, 0.012), at("wide", 0.1, 0.018), at("alone", 0.2, 0.015)}
	path := filepath.Join(t.TempDir(), "scatter.svg")
	for _, c := range []struct {
		published []Point
		names     []string
	}{
		{nil, []string{"free", "narrow", "wide"}},
		{PublishedCurves(false), []string{"free"}},
	} {
		f, err := MSEScatter(ours, c.published)
		if err == nil {
			err = f.Save(path)
		}
		fatal.If(t, err)
		text, err := os.ReadFile(path)
		fatal.If(t, err)
		for _, point := range ours {
			expect.Equal(t, bytes.Contains(text, []byte(point.Label)), slices.Contains(c.names, point.Label), "with", len(c.published), "published points", point.Label, "is labelled")
		}
	}
}

// Of vectors of many named values the largest of each are drawn, in the order of the vectors.
func TestMapsOfManyNamedValuesHaveTheLargest(t *testing.T) {
	const width, vectors = 300, 4
	row := ImageRow{Caption: "atoms", Shape: []int{width}, Images: make([]float32, vectors*width), Values: make([]string, width)}
	for i := range width {
		row.Values[i] = fmt.Sprint("v", i)
		for j := range vectors {
			row.Images[j*width+i] = float32((i*(j+7))%width) * []float32{1, -1}[i%2]
		}
	}
	got := row.largest(vectors)
	expect.Equal(t, got.Caption, fmt.Sprintf("atoms, the largest values of each: %d of 300", len(got.Values)))
	for j := range vectors {
		for i, v := range row.Images[j*width : (j+1)*width] {
			larger := 0
			for _, other := range row.Images[j*width : (j+1)*width] {
				if math.Abs(float64(other)) > math.Abs(float64(v)) {
					larger++
				}
			}
			at := slices.Index(got.Values, row.Values[i])
			if larger < mostNames/vectors-8 && at < 0 { // ties of 8 vectors at most
				t.Errorf("vector %d: %s is missing", j, row.Values[i])
			}
			if at >= 0 && got.Images[j*len(got.Values)+at] != v {
				t.Errorf("vector %d, %s: got %v, want %v", j, row.Values[i], got.Images[j*len(got.Values)+at], v)
			}
		}
	}
	fatal.If(t, expect.Err(HeatMaps(row)))
	expect.Equal(t, len(row.Values), width, "the given row is unchanged")
}
