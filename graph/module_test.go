package graph_test

import (
	"slices"
	"testing"

	"tessera/engine/ir"
	"tessera/graph"
)

const layered = `
[model.layered]
encoder = [{ kind = "residual", layers = [{ kind = "batch_norm" }] }, { kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense" }]
`

// Every value that a layer computes names the layer, those of a block too; leaves belong to none.
func TestValuesNameTheirLayer(t *testing.T) {
	p, err := model(t, layered, "layered", 2, 3).Program(graph.Request{Batch: 5})
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Module()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, v := range m.Values() {
		if _, leaf := v.Op.(ir.Leaf); leaf == (v.Layer != "") {
			t.Errorf("%v%v has the layer %q", v.Op, v.Shape, v.Layer)
		}
		if v.Layer != "" && !slices.Contains(order, v.Layer) {
			order = append(order, v.Layer)
		}
	}
	if want := []string{"encoder.0 (residual)", "encoder.1 (dense)", "decoder.0 (dense)"}; !slices.Equal(order, want) {
		t.Errorf("got the layers %q, want %q", order, want)
	}
}
