package export_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/apps/export"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// differences is the table of shipped models: the largest differences between onnxruntime and Tessera.
const differences = "../../docs/onnx.csv"

var update = flag.Bool("update", false, "write docs/onnx.csv")

// tolerance is the maximum difference between outputs in onnxruntime and in Tessera.
const tolerance = 1e-5

// shipped reads models.toml.
func shipped(t *testing.T) *config.File {
	t.Helper()
	const path = "../../models.toml"
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	f, err := config.Load(path, text)
	fatal.If(t, err)
	return f
}

// uniform returns n numbers in [0,1).
func uniform(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	values := lists.Of(n, func(int) float32 { return r.Float32() })
	return values
}

// made returns an untrained network, or a baseline after one iteration on random images. Parameters that start at 0 or
// 1 are changed, so that the test detects an export that omits them.
func made(t *testing.T, spec *config.Model) *export.Run {
	t.Helper()
	r := &export.Run{Trained: &train.Trained{Spec: spec}, Name: spec.Name}
	if spec.Baseline != nil {
		r.Baseline = fitted(t, spec.Baseline)
		return r
	}
	shape, ok := spec.Dataset.Source.Shape(data.Dirs{})
	if !ok {
		t.Fatalf("%s: the shape of its images is not known", spec.Name)
	}
	m, err := graph.New(spec, shape)
	fatal.If(t, err)
	moved(m)
	r.Model = m
	return r
}

// moved changes the biases, running averages and scales of a model, and tables of zeros.
func moved(m *graph.Model) {
	for i, p := range m.Parameters {
		if len(p.Shape) == 1 || !slices.ContainsFunc(p.Data, func(v float32) bool { return v != 0 }) {
			for j, u := range uniform(uint64(i), len(p.Data)) {
				p.Data[j] += 0.1 * u
			}
		}
	}
}

var errEnough = errors.New("one iteration is enough")

// fitted returns a baseline fitted to small images.
func fitted(t *testing.T, method classical.Method) classical.Model {
	t.Helper()
	const side, images = 12, 130
	m, err := method.New([]int{side, side}, 1)
	fatal.If(t, err)
	rows, err := classical.NewMatrix(uniform(3, images*side*side), side*side)
	fatal.If(t, err)
	_, err = classical.Fit(context.Background(), m, rows, func(classical.Progress) error { return errEnough })
	if !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	return m
}

// row is one row of docs/onnx.csv.
type row struct {
	model, part string
	difference  float64
	problem     string // the reason why there is no ONNX form, "" if there is one
}

// Every shipped model gives the same results in onnxruntime as in Tessera, for batches of 1 and 7.
func TestShippedModelsAgreeInONNXRuntime(t *testing.T) {
	runtime := startONNXRuntime(t)
	threads := team.New(1)
	defer threads.Close()
	f := shipped(t)
	var rows []row
	for _, name := range f.Names() {
		spec, err := f.Model(name)
		fatal.If(t, err)
		r := made(t, spec)
		coder := r.Coder(engine.Backend{Team: threads})
		whole := compared(t, runtime, r, coder, "model")
		rows = append(rows, whole)
		if whole.problem != "" { // the decoder alone has a form
			rows = append(rows, compared(t, runtime, r, coder, "decoder"))
		}
	}
	if *update && !t.Failed() {
		fatal.If(t, os.WriteFile(differences, []byte(onnxTable(rows)), 0o666))
	}
}

// compared exports a part of a run and compares its outputs in onnxruntime with Tessera's.
func compared(t *testing.T, o *onnxRuntime, r *export.Run, coder metrics.Coder, part string) row {
	t.Helper()
	result := row{model: r.Name, part: part}
	var file bytes.Buffer
	if err := export.Write(&file, r, "onnx", part); err != nil {
		result.problem = err.Error()
		return result
	}
	path, err := o.save(r.Name+"-"+part, file.Bytes())
	fatal.If(t, err)
	allowed := tolerance
	if r.Baseline == nil {
		for p := range r.Layout.Layers() {
			if u, ok := p.Layer.(*layers.Unrolled); ok && u.Method == "splitting" {
				allowed = tolerance / min(1, u.Rho) // the inverse enlarges rounding where atoms are nearly equal
			}
		}
	}
	input, shape := "input", r.Shape()
	if part != "model" && part != "encoder" {
		input, shape = "code", []int{coder.Units()}
	}
	for _, batch := range []int{1, 7} {
		x := uniform(uint64(batch), batch*volume.Of(shape))
		if r.Baseline == nil {
			for _, p := range r.Layout.Encoder {
				if l, ok := p.Layer.(layers.Indexing); ok { // layers that look up values need whole numbers
					for i, v := range x {
						x[i] = float32(int(1000*math.Abs(float64(v))) % l.Indices())
					}
				}
			}
		}
		columns, further := map[string][]float32{losses.Images: x}, []array(nil)
		if named, ok := coder.(*graph.Coder); ok && part == "model" {
			for _, value := range named.Values() {
				for _, c := range named.Columns(value) {
					if columns[c.Name] == nil && c.Name != losses.Images { // a drawn column
						columns[c.Name] = uniform(uint64(len(columns)), batch*c.Size())
						for _, w := range r.Trained.Spec.Wanted(r.Layout) {
							if w.Column != c.Name || w.Holds(0.5) {
								continue
							}
							for i, v := range columns[c.Name] { // numbers of tokens, lengths
								for columns[c.Name][i] = float32(int(1000 * v)); !w.Holds(columns[c.Name][i]) && columns[c.Name][i] > 0; {
									columns[c.Name][i] = float32(int(columns[c.Name][i]) / 2)
								}
							}
						}
						dims := r.Layout.Shape(c.Name)
						further = append(further, packed("column."+c.Name, append([]int{batch}, dims...), columns[c.Name]))
					}
				}
			}
		}
		outputs, err := o.run(path, input, append([]int{batch}, shape...), x, further...)
		if err != nil {
			t.Errorf("%s, %s: %v", r.Name, part, err)
			return result
		}
		for name, y := range outputs {
			want, err := expected(coder, input, name, columns)
			fatal.If(t, err)
			mask := slices.ContainsFunc(r.Trained.Spec.Losses, func(l config.Loss) bool { return l.Mask == name }) // a mask is 0 outside of training
			if len(want) > 1 && slices.Min(want) == slices.Max(want) && !mask {
				t.Errorf("%s: %s is %v everywhere, which shows nothing", r.Name, name, want[0])
			}
			d := difference(y.floats(), want)
			if result.difference = max(result.difference, d); !(d <= allowed) {
				t.Errorf("%s, %s, batch of %d: %s differs by %g", r.Name, part, batch, name, d)
			}
		}
	}
	_ = os.Remove(path)
	return result
}

// expected returns the output as computed by Tessera.
func expected(c metrics.Coder, input, name string, columns map[string][]float32) ([]float32, error) {
	x := columns[losses.Images]
	if input == "code" && name == "output" {
		return c.Decode(x)
	}
	if named, ok := c.(metrics.ColumnCoder); ok && input == "input" {
		return named.ValueOf(name, columns)
	}
	codes, err := c.Encode(x)
	if err != nil || name == "code" {
		return codes, err
	}
	return c.Decode(codes)
}

// difference returns the largest absolute difference between a and b, infinite if their lengths differ.
func difference(a, b []float32) (largest float64) {
	if len(a) != len(b) || len(a) == 0 {
		return math.Inf(1)
	}
	for i, x := range a {
		d := math.Abs(float64(x) - float64(b[i]))
		if math.IsNaN(d) {
			return d
		}
		largest = max(largest, d)
	}
	return largest
}

// onnxTable returns the table of models in docs/onnx.csv.
func onnxTable(rows []row) string {
	var b strings.Builder
	b.WriteString("model,part,largest difference\n")
	for _, r := range rows {
		cell := fmt.Sprintf("%.1e", r.difference)
		if r.problem != "" {
			_, reason, _ := strings.Cut(r.problem, r.part+": ")
			reason, _, _ = strings.Cut(reason, ";")
			cell = fmt.Sprintf("%q", "none: "+reason)
		}
		fmt.Fprintf(&b, "%s,%s,%s\n", r.model, r.part, cell)
	}
	return b.String()
}
