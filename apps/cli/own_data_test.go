package cli

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/checkpoint"
)

// follow runs the commands of a transcript in testdata/own_data.
func (b *bench) follow(name string) {
	b.Helper()
	text, err := os.ReadFile("testdata/own_data/" + name)
	fatal.If(b, err)
	lines := strings.Split(string(text), "\n")
	for len(lines) > 0 {
		command, ok := strings.CutPrefix(lines[0], "$ ")
		if lines = lines[1:]; !ok {
			continue
		}
		end := slices.IndexFunc(lines, func(l string) bool { return l == "" || l[0] == '$' || l[0] == '#' })
		b.step(command, lines[:max(end, 0)])
		lines = lines[max(end, 0):]
	}
}

// step runs one command and compares its output with the transcript.
func (b *bench) step(command string, said []string) {
	b.Helper()
	code := 0
	for _, line := range said {
		if text, ok := strings.CutPrefix(line, "exit "); ok {
			code, _ = strconv.Atoi(text)
		}
	}
	r := b.must(code, strings.Fields(command)...)
	for _, line := range said {
		switch kind, text, _ := strings.Cut(line, " "); kind {
		case "out":
			b.contains("tessera "+command, r.stdout, text)
		case "err":
			b.contains("tessera "+command, r.stderr, text)
		case "file":
			if !b.exists(text) {
				b.Errorf("tessera %s: there is no %s", command, text)
			}
		case "exit":
		default:
			b.Fatalf("the transcript has the line %q", line)
		}
	}
}

func TestFirstAfternoonWithDataOfOnesOwn(t *testing.T) {
	b := newBench(t)
	models, err := os.ReadFile("testdata/own_data/models.toml")
	fatal.If(t, err)
	b.write("models.toml", string(models))
	o := writeOwnData(b)
	b.follow("first-steps.txt")
	b.follow("transcript.txt")
	b.photos(t)
	b.measurements(t, o)
	b.activations(t, o)
}

// rows reads an output file.
func (b *bench) rows(name string, shape ...int) *data.Rows {
	b.Helper()
	rows, err := data.ReadRows(b.Context(), b.path(name), shape, nil)
	fatal.If(b, err)
	return rows
}

// photos checks the names, labels and shapes of encoded and decoded photos.
func (b *bench) photos(t *testing.T) {
	codes := b.rows("photos.npz", 16)
	if codes.Len() != 300 || codes.Names[0] != "cells/c000.jpg" || codes.Names[299] != "fibres/2025/may/c299.png" || !slices.Equal(codes.Classes, []string{"cells", "crystals", "fibres"}) {
		t.Errorf("%d codes, names %q to %q, classes %q", codes.Len(), codes.Names[0], codes.Names[len(codes.Names)-1], codes.Classes)
	}
	for i, label := range codes.Labels() {
		expect.Equal(t, label, slices.IndexFunc(codes.Classes, func(c string) bool { return strings.HasPrefix(codes.Names[i], c) }), codes.Names[i], "has the label")
	}
	b.photoNumbers(t)
	one := b.rows("one.csv", 16)
	expect.Slice(t, one.Names, []string{"c000.jpg"}, "the first photo alone")
	expect.Slice(t, one.Float32(), codes.Float32()[:16], "the first photo alone")
	decoded := b.rows("photos.npy", 20, 20, 3)
	pictures := b.rows("decoded", 20, 20, 3)
	for i, v := range decoded.Float32() {
		if d := v - pictures.Float32()[i]; math.Abs(float64(d)) > 0.5/255+1e-6 {
			t.Fatalf("value %d: %g, in a picture %g", i, v, pictures.Float32()[i])
		}
		if i > 5000 {
			break
		}
	}
}

// photoNumbers checks the codes of the photos and their metrics. Package data tests the conversion of photos to pixels against
// Pillow.
func (b *bench) photoNumbers(t *testing.T) {
	models, err := config.Load("models.toml", []byte(b.read("models.toml")))
	fatal.If(t, err)
	model, err := models.Model("photos")
	fatal.If(t, err)
	pixels, err := data.ReadRows(t.Context(), b.path("photos"), []int{20, 20, 3}, model.Dataset.Source)
	fatal.If(t, err)
	var samples [][]float64
	for photo := range slices.Chunk(pixels.Float32(), 20*20*3) {
		sample := lists.Map(photo, func(v float32) float64 { return float64(v) })
		samples = append(samples, sample)
	}
	want := b.recompute("runs/photos", samples, func(v float64) float64 { return 1 / (1 + math.Exp(-v)) })
	b.close(t, "photos.npz", want.codes)
	b.agrees(t, "runs/photos", "photos", want)
}

// affine is a layer y = x W + b of a run, in float64.
type affine struct {
	weight, bias []float64
}

func (a affine) of(x []float64) []float64 {
	y := slices.Clone(a.bias)
	for i, v := range x {
		for j := range y {
			y[j] += v * a.weight[i*len(y)+j]
		}
	}
	return y
}

// parameters reads the tensors of a run in float64.
func (b *bench) parameters(run string) func(name string) []float64 {
	b.Helper()
	f, err := checkpoint.Decode([]byte(b.read(run + "/model.safetensors")))
	fatal.If(b, err)
	return func(name string) []float64 {
		tensor, ok := f.Tensor(name)
		if !ok {
			b.Fatalf("%s has no tensor %s", run, name)
		}
		values := lists.Map(tensor.Data, func(v float32) float64 { return float64(v) })
		return values
	}
}

// recomputed contains the results of a run's dense model for some samples, computed by the test in float64.
type recomputed struct {
	codes, outputs                 [][]float64
	mse, explained, cosine, active float64
}

// recompute encodes and decodes samples. last is the activation of the decoder, nil for none.
func (b *bench) recompute(run string, samples [][]float64, last func(float64) float64) (r recomputed) {
	p := b.parameters(run)
	encoder, decoder := affine{p("encoder.0.weight"), p("encoder.0.bias")}, affine{p("decoder.0.weight"), p("decoder.0.bias")}
	mean := make([]float64, len(samples[0]))
	n := float64(len(samples))
	for _, x := range samples {
		for j, v := range x {
			mean[j] += v / n
		}
	}
	residual, total := 0.0, 0.0
	for _, x := range samples {
		h := encoder.of(x)
		for j := range h {
			if h[j] = max(h[j], 0); h[j] > 0 {
				r.active += 1 / n
			}
		}
		y := decoder.of(h)
		if last != nil {
			for j, v := range y {
				y[j] = last(v)
			}
		}
		var xy, xx, yy float64
		for j := range x {
			residual += (x[j] - y[j]) * (x[j] - y[j])
			total += (x[j] - mean[j]) * (x[j] - mean[j])
			xy, xx, yy = xy+x[j]*y[j], xx+x[j]*x[j], yy+y[j]*y[j]
		}
		r.cosine += xy / math.Sqrt(xx*yy) / n
		r.codes, r.outputs = append(r.codes, h), append(r.outputs, y)
	}
	r.mse, r.explained = residual/n/float64(len(mean)), 1-residual/total
	return r
}

// agrees compares the results of `eval` for a run and a file with recomputed numbers.
func (b *bench) agrees(t *testing.T, run, file string, want recomputed) {
	t.Helper()
	var got map[string]any
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", run, "--in", file, "--json").stdout), &got))
	for name, w := range map[string]float64{"mse": want.mse, "explained_variance": want.explained, "cosine": want.cosine, "active_units": want.active} {
		if g, ok := got[name].(float64); !ok || math.Abs(g-w) > 1e-5*max(1, math.Abs(w)) {
			t.Errorf("%s: %s is %v, want %v", run, name, got[name], w)
		}
	}
	for _, name := range []string{"max_approx", "mse_clipped", "atom_area"} {
		expect.Equal(t, run == "runs/photos", got[name] != nil, run, name, got[name], "applicable")
	}
}

// close compares the values of a file with recomputed rows.
func (b *bench) close(t *testing.T, name string, want [][]float64) {
	t.Helper()
	for i, v := range b.rows(name, len(want[0])).Float32() {
		if w := want[i/len(want[0])][i%len(want[0])]; math.Abs(float64(v)-w) > 1e-4*max(1, math.Abs(w)) {
			t.Errorf("%s: value %d is %g, want %g", name, i, v, w)
			return
		}
	}
}

// measurements checks the scaling, codes with labels, and decoded values, which have the units of the file.
func (b *bench) measurements(t *testing.T, o ownData) {
	n, scaled := float64(len(o.measurements)), make([][]float64, len(o.measurements))
	shift, factor := b.parameters("runs/measurements")("data/shift"), b.parameters("runs/measurements")("data/factor")
	for j := range 6 {
		mean, squares := 0.0, 0.0
		for _, row := range o.measurements {
			mean += row[j] / n
		}
		for _, row := range o.measurements {
			squares += (row[j] - mean) * (row[j] - mean) / n
		}
		if d := 1 / math.Sqrt(squares); math.Abs(shift[j]-mean) > 1e-5*max(1, math.Abs(mean)) || math.Abs(factor[j]-d) > 1e-5*d {
			t.Errorf("column %d: shift %g, factor %g, want %g and %g", j, shift[j], factor[j], mean, d)
		}
		for i, row := range o.measurements {
			scaled[i] = append(scaled[i], (row[j]-shift[j])*factor[j])
		}
	}
	r := b.recompute("runs/measurements", scaled, nil)
	b.agrees(t, "runs/measurements", "measurements.csv", r)
	b.close(t, "measurements.npz", r.codes)
	b.close(t, "codes.csv", r.codes)
	for i, row := range r.outputs {
		for j := range row {
			r.outputs[i][j] = row[j]/factor[j] + shift[j]
		}
	}
	b.close(t, "decoded.csv", r.outputs)
	b.columns()
	codes := b.rows("measurements.npz", 16)
	expect.Slice(t, codes.Classes, species, "classes")
	lines, err := csv.NewReader(strings.NewReader(b.read("codes.csv"))).ReadAll()
	fatal.If(t, err)
	for i, label := range codes.Labels() {
		expect.Equal(t, species[label], o.species[i], "row", i)
		expect.Equal(t, lines[i+1][0], o.species[i], "row", i)
	}
}

// columns checks that decoded vectors have the column names of their data set, or numbers if its file no longer exists.
func (b *bench) columns() {
	b.Helper()
	names := func(file string) string {
		first, _, _ := strings.Cut(b.read(file), "\n")
		return first
	}
	want := names("measurements.csv")
	if got := names("decoded.csv"); !strings.HasSuffix(got, strings.TrimSuffix(want, ",species")) {
		b.Errorf("the decoded columns are %q, want those of %q", got, want)
	}
	fatal.If(b, os.Rename(b.path("measurements.csv"), b.path("away.csv")))
	r := b.must(0, "decode", "runs/measurements", "--in", "codes.csv", "--out", "numbered.csv")
	b.contains("standard error", r.stderr, "numbered.csv has numbers as names of columns", "measurements.csv")
	if got := names("numbered.csv"); !strings.HasSuffix(got, "0,1,2,3,4,5") {
		b.Errorf("without the data set the columns are %q", got)
	}
	fatal.If(b, os.Rename(b.path("away.csv"), b.path("measurements.csv")))
}

// activations checks float16 vectors, a single vector, and the warning about values with another range.
func (b *bench) activations(t *testing.T, o ownData) {
	r := b.recompute("runs/activations", o.activations, nil)
	b.agrees(t, "runs/activations", "activations.npy", r)
	b.close(t, "activations-codes.npy", r.codes)
	b.close(t, "activations-decoded.npy", r.outputs)
	b.close(t, "vector-code.npy", r.codes[:1])
	expect.Equal(t, b.must(0, "encode", "runs/activations", "--in", "activations.npy", "--out", "again.npy").stderr, "", "a warning about the training samples themselves")
}
