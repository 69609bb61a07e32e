package config

import (
	"reflect"
	"testing"

	"tessera/config/part/table"
	"tessera/layers"
)

// block has kinds of fields that no current part has: layers within a layer, and a table that may be absent.
type block struct {
	Layers []layers.Layer `toml:"layers" doc:"applied one after the other"`
	Skip   *skip          `toml:"skip" doc:"adds the input"`
}

type skip struct {
	Scale float64 `toml:"scale" want:"> 0" doc:"of the input"`
}

func (s *skip) Defaults() { s.Scale = 1 }

func decodeBlock(t *testing.T, text string) (*block, error) {
	t.Helper()
	root, found := table.Parse(table.NewSource("models.toml", text))
	if len(found) > 0 {
		t.Fatal(table.Report(found))
	}
	b := &block{}
	d := &table.Decoder{Language: language, Subject: subject("m")}
	d.Decode(root.Child("b"), b, "encoder[0]")
	return b, table.Report(d.Found)
}

func TestLayersWithinALayerAreReadAndWritten(t *testing.T) {
	text := `[b]

[[b.layers]]
kind = "dense"
units = 3
activation = "relu"
bias = true
init = "he_normal"

[[b.layers]]
kind = "leaky_relu"
slope = 0.2

[b.skip]
scale = 0.5
`
	b, found := decodeBlock(t, text)
	if found != nil {
		t.Fatal(found)
	}
	want := &block{
		Layers: []layers.Layer{&layers.Dense{Units: 3, Activation: "relu", Bias: true, Init: &layers.HeNormal{}}, &layers.LeakyRelu{Slope: 0.2}},
		Skip:   &skip{Scale: 0.5},
	}
	if !reflect.DeepEqual(b, want) {
		t.Errorf("got %+v", b)
	}
	if n, err := (&table.Writer{Language: language}).Tree(b); err != nil || string(n.TOML("b")) != text {
		t.Errorf("written as\n%s%v", n.TOML("b"), err)
	}
}

func TestTablesThatAreAbsentStayAbsent(t *testing.T) {
	if b, _ := decodeBlock(t, "[b]\n"); b.Skip != nil {
		t.Errorf("got %+v", b.Skip)
	}
	if b, _ := decodeBlock(t, "[b.skip]\n"); b.Skip == nil || b.Skip.Scale != 1 {
		t.Errorf("got %+v", b.Skip)
	}
}

func TestMistakesWithinALayerNameThePath(t *testing.T) {
	_, found := decodeBlock(t, "[b]\nlayers = [{ kind = \"relu\" }, { kind = \"dense\", unitz = 3 }]\nskip = { scale = 0 }\n")
	want := `models.toml:2:48: model "m": encoder[0].layers[1] (dense): unknown key "unitz"
    layers = [{ kind = "relu" }, { kind = "dense", unitz = 3 }]
                                                   ^^^^^ did you mean "units"?
models.toml:3:18: model "m": encoder[0].skip: scale: got 0, want a number > 0
    skip = { scale = 0 }
                     ^`
	if found == nil || found.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", found, want)
	}
}
