package export_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"tessera/apps/export"
	"tessera/apps/export/onnx"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/wire"
)

// dims returns the lengths of the axes of an input or output, with 0 for the batch.
func dims(t *testing.T, v onnx.Value) (list []int64) {
	t.Helper()
	for _, d := range v.Type.Tensor.Shape.Dims {
		switch {
		case d.Length != nil:
			list = append(list, *d.Length)
		case d.Name == "batch":
			list = append(list, 0)
		default:
			t.Errorf("%s has an axis %+v", v.Name, d)
		}
	}
	return list
}

// The files of a classifier with a decoder are read back and checked, for each part: the inputs, the outputs and the
// metadata.
func TestAnONNXFileHasTheNamesShapesAndDeclarationOfTheModel(t *testing.T) {
	spec, err := shipped(t).Model("semi-supervised")
	fatal.If(t, err)
	r := made(t, spec)
	r.Classes, r.ColumnNames = []string{"shirt", "boot"}, []string{"a", "b"}
	images, code := []int64{0, 28, 28}, []int64{0, 100}
	classes := []int64{0, 10}
	for part, want := range map[string][2]map[string][]int64{
		"model":   {{"input": images}, {"code": code, "output": images, "class": classes}},
		"encoder": {{"input": images}, {"code": code}},
		"decoder": {{"code": code}, {"output": images}},
		"heads":   {{"code": code}, {"class": classes}},
		"class":   {{"code": code}, {"class": classes}},
	} {
		var b bytes.Buffer
		fatal.If(t, export.Write(&b, r, "onnx", part))
		m := &onnx.Model{}
		fatal.If(t, wire.Read(b.Bytes(), m))
		for i, list := range [][]onnx.Value{m.Graph.Inputs, m.Graph.Outputs} {
			got := map[string][]int64{}
			for _, v := range list {
				got[v.Name] = dims(t, v)
			}
			if !reflect.DeepEqual(got, want[i]) {
				t.Errorf("%s: got %v, want %v", part, got, want[i])
			}
		}
		checkFile(t, m, r, part)
	}
	expect.AnyError(t, export.Write(&bytes.Buffer{}, r, "onnx", "torso"), "a part that the model lacks is exported")
}

// checkFile checks versions, metadata and parameters, and that every value is computed before it is read.
func checkFile(t *testing.T, m *onnx.Model, r *export.Run, part string) {
	t.Helper()
	if m.FormatVersion != 8 || !reflect.DeepEqual(m.Opsets, []onnx.Opset{{Version: 17}}) || m.Producer != "tessera" {
		t.Errorf("%s: format %d, opsets %v of %q", part, m.FormatVersion, m.Opsets, m.Producer)
	}
	metadata := map[string]string{}
	for _, p := range m.Metadata {
		metadata[p.Key] = p.Value
	}
	if metadata["declaration"] != string(r.Spec.Text()) || metadata["part"] != part || metadata["model"] != r.Spec.Name || metadata["shape"] != "[28,28]" ||
		metadata["class_names"] != `{"labels":["shirt","boot"]}` || metadata["value_names"] != `["a","b"]` {
		t.Errorf("%s: got the metadata %v", part, metadata)
	}
	known := map[string]bool{}
	for _, v := range m.Graph.Inputs {
		known[v.Name] = true
	}
	for _, c := range m.Graph.Initializers {
		known[c.Name] = true
		if p, err := r.Parameter(c.Name); err == nil && !slices.Equal(floatsOf(c.Raw), p.Data) {
			t.Errorf("%s: %s has other values than the model", part, c.Name)
		}
	}
	for _, n := range m.Graph.Nodes {
		for _, x := range n.Inputs {
			if !known[x] {
				t.Errorf("%s: %s reads %s, which nothing computes before", part, n.Name, x)
			}
		}
		for _, y := range n.Outputs {
			if known[y] {
				t.Errorf("%s: %s is computed twice", part, y)
			}
			known[y] = true
		}
	}
	for _, v := range m.Graph.Outputs {
		if !known[v.Name] {
			t.Errorf("%s: nothing computes %s", part, v.Name)
		}
	}
}

func floatsOf(raw []byte) []float32 {
	values := lists.Of(len(raw)/4, func(i int) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) })
	return values
}

// The table is written only if onnxruntime is installed. Every shipped model must have a row.
func TestTheTableOfDifferencesHasEveryShippedModel(t *testing.T) {
	page, err := os.ReadFile(differences)
	fatal.If(t, err)
	for _, name := range shipped(t).Names() {
		if !bytes.Contains(page, []byte("\n"+name+",")) {
			t.Errorf("%s has no row of %s: run go test ./apps/export -update", differences, name)
		}
	}
}
