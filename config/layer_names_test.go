package config

import (
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A layer that has a name can be called by it wherever its path can stand, and the model equals the one with the path.
func TestALayerIsCalledByItsName(t *testing.T) {
	const named = `
[model.m]
dataset    = "bars"
encoder    = [{ kind = "dense", units = 6 }, { kind = "dense", units = 6, name = "low" }, { kind = "gaussian", units = 6, name = "trunk" }, { kind = "dense", units = 6, share = "low", from = "trunk" },
              { kind = "condition", by = "trunk.mean" }, { kind = "dense", units = 4, name = "top", from = ["low", "previous"] }]
decoder    = [{ kind = "tied", weight = "low.weight", from = "low" }, { kind = "dense" }]
loss       = [{ kind = "mse" }, { kind = "l2_activity", on = "trunk.mean" }, { kind = "mse", on = "low", against = "trunk" }, { kind = "gaussian_kl", on = "trunk" },
              { kind = "contrastive", on = "h", with = "low" }, { kind = "weight_decay", on = "low.*" }]
constraint = [{ kind = "nonneg", on = "low.weight" }]
freeze     = ["trunk.log*"]
head.h     = { from = ["trunk.mean", "low"], layers = [{ kind = "dense", units = 6, name = "inside" }] }
hook       = { average = {}, prune = { on = "low.weight", fraction = 0.5 } }
[model.m.player]
one = { trains = ["encoder.0.*", "low.*", "trunk.*", "top.*", "inside.*", "decoder.*"] }
`
	m := model(t, load(t, named), "m")
	plainText := strings.NewReplacer(`, name = "low"`, "", `, name = "trunk"`, "", `, name = "top"`, "", `, name = "inside"`, "",
		`"low`, `"encoder.1`, `"trunk`, `"encoder.2`, `"top`, `"encoder.5`, `"inside`, `"head.h.0`).Replace(named)
	for _, d := range Differences(model(t, load(t, plainText), "m"), m) {
		if !strings.HasSuffix(d.Key, ".name") {
			t.Errorf("%s", d)
		}
	}
	again := model(t, load(t, string(m.Text())), "m")
	if d := Differences(m, again); len(d) > 0 {
		t.Errorf("the text of the model differs: %v", d)
	}
	layout, err := m.Layout([]int{8, 8})
	fatal.If(t, err)
	for name, path := range map[string]string{"trunk": "encoder.2", "inside": "head.h.0", "trunk.mean": "encoder.2.mean"} {
		if !slices.Contains(layout.Named(), name) || !slices.Equal(layout.Shape(name), layout.Shape(path)) || layout.Shape(name) == nil {
			t.Errorf("%s has shape %v, want that of %s: %v", name, layout.Shape(name), path, layout.Shape(path))
		}
	}
}

func TestNamesOfLayersAreValid(t *testing.T) {
	for name, want := range map[string]string{
		"code": "the name is reserved", "encoder": "the name is reserved", "a.b": "parameter paths contain the name", "h": "a head or a hook has this name",
		"noise": "a drawn column has this name", "low": `"low" is also the name of encoder.0`,
	} {
		err := load(t, `
[model.m]
encoder = [{ kind = "dense", units = 6, name = "low" }, { kind = "dense", units = 6, name = "`+name+`" }]
head.h  = { from = "noise", layers = [{ kind = "dense", units = 6 }] }
column  = { noise = { kind = "normal", shape = [2] } }
loss    = [{ kind = "mse" }, { kind = "l2_activity", on = "h" }]
`).Check()
		expect.Error(t, err, "encoder[1] (dense): name: ", name)
		expect.Error(t, err, want, name)
	}
}

// A child leaves out what its parent declares by the value false, and changes a term by its name.
func TestAChildDropsWhatItInherits(t *testing.T) {
	f := load(t, `
[model.parent]
about   = "of the parent"
encoder = [{ kind = "dense", units = 6 }]
head.h  = { from = "noise", layers = [{ kind = "dense", units = 6 }] }
column  = { noise = { kind = "normal", shape = [2] }, keep = { kind = "bernoulli", like = "images", probability = 0.5 } }
loss    = [{ kind = "mse", mask = "keep" }, { kind = "l2_activity", on = "h" }, { kind = "l1", name = "sparse", weight = 0.1 }]
hook    = { average = {} }
[model.child]
extends = "parent"
head.h  = false
column  = { noise = false }
hook    = { average = false }
loss    = { l2_activity = false, sparse = { weight = 0.5 } }
[model.grandchild]
extends = "child"
loss    = { sparse = false }
`)
	m := model(t, f, "child")
	if len(m.Heads) > 0 || len(m.Drawn) != 1 || len(m.Hooks) > 0 || m.About != "" || !slices.Equal(m.Terms(), []string{"mse", "sparse"}) || m.Losses[1].Weight.At(0) != 0.5 {
		t.Errorf("got %s", m.Text())
	}
	if m := model(t, f, "grandchild"); !slices.Equal(m.Terms(), []string{"mse"}) {
		t.Errorf("got %s", m.Text())
	}
	if m := model(t, f, "parent", "loss.sparse=false", "loss.mse.weight=3"); !slices.Equal(m.Terms(), []string{"mse", "l2_activity"}) || m.Losses[0].Weight.At(0) != 3 || m.About == "" {
		t.Errorf("got %s", m.Text())
	}
	for text, want := range map[string]string{"loss = { l2 = false }": "want an array of tables", "head.g = false": "got false, want a table", "loss = { l1 = false }": "want an array of tables"} {
		if err := load(t, "[model.p]\nencoder = [{ kind = \"dense\", units = 2 }]\nloss = [{ kind = \"mse\" }, { kind = \"l1\", name = \"a\" }]\n[model.m]\nextends = \"p\"\n"+text+"\n").Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
