package layers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"tessera/internal/fatal"
	_ "tessera/internal/testheap"
	"tessera/laws"
	"tessera/layers"
)

// settings lists the settings that a layer requires, or that are checked in addition to the defaults. A layer without an entry
// is checked with its defaults. The test file of a layer may add entries.
var settings = map[string][]map[string]any{
	"dense": {
		{"units": 4}, {"units": 1, "activation": layers.ActivationName("tanh")}, {"units": 4, "bias": false, "init": &layers.HeNormal{}},
	},
	"conv2d": {
		{"filters": 2}, {"filters": 2, "kernel": 2, "padding": "valid", "bias": false}, {"filters": 3, "stride": 2},
		{"filters": 2, "kernel": 2, "padding": 2, "dilation": 2, "activation": layers.ActivationName("sigmoid")},
		{"filters": 4, "kernel": 2, "groups": 2, "activation": layers.ActivationName("leaky_relu")},
		{"filters": 2, "kernel": 2, "padding": "valid", "stride": 3}, {"filters": 2, "kernel_width": 2, "stride_width": 2},
	},
	"conv2d_transpose": {
		{"filters": 2}, {"filters": 3, "kernel": 2, "stride": 2, "bias": false}, {"filters": 2, "kernel": 4, "stride": 2, "padding": 1},
		{"filters": 2, "kernel": 2, "padding": "valid", "dilation": 2, "activation": layers.ActivationName("tanh")},
		{"filters": 2, "kernel": 1, "kernel_width": 3, "stride_width": 2},
		{"filters": 4, "stride": 3, "kernel": 2, "groups": 2}, // no filter covers some pixels: their outputs are 0, where an activation may have a kink
	},
	"max_pool":           {{}, {"padding": "same"}, {"kernel": 3, "stride": 1, "padding": 1}, {"kernel": 1, "stride": 2}},
	"avg_pool":           {{}, {"padding": "same"}, {"kernel": 3, "stride": 1, "padding": 1}, {"kernel": 1, "stride": 2}},
	"upsample":           {{}, {"factor": 3}, {"factor": 1}},
	"layer_norm":         {{}, {"epsilon": 0.1}},
	"instance_norm":      {{}, {"epsilon": 0.1}},
	"embedding":          {{"units": 3, "vocabulary": 7}, {"units": 3, "vocabulary": 7, "mask": "mask of six"}, {"units": 3, "vocabulary": 7, "unknown": true}},
	"jump_relu":          {{"threshold": 0.3, "width": 0.1}, {}, {"threshold": 0.3, "width": 0.5, "kernel": "tanh"}},
	"batch_top_k":        {{"k": 2}, {"k": 1, "anneal_from": 3, "anneal_steps": 2}, {"k": 50}},
	"group_max":          {{"groups": 2}, {"groups": 1}},
	"prefix":             {{"units": 2}},
	"aux_k":              {{"k": 2, "after": 1, "of": "six"}},
	"gaussian":           {{"units": 4}, {"units": 1}},
	"rectified_gaussian": {{"units": 4}, {"units": 1, "prior": 0.7}},
	"max_plus":           {{"units": 4, "init": &layers.HeNormal{}}, {"units": 1}},
	"batch_norm":         {{}, {"momentum": 0.0, "epsilon": 0.1}},
	"reshape":            {{"shape": []int{6}}, {"shape": []int{2, 3}}, {"shape": []int{3, 1, 2}}},
	"dropout":            {{}, {"rate": 0.0}, {"rate": 0.9}},
	"masking_noise":      {{}, {"rate": 0.9}},
	"gaussian_noise":     {{}, {"stddev": 0.0}},
	"leaky_relu":         {{}, {"slope": 0.0}, {"slope": 1.0}},
	"elu":                {{}, {"alpha": 0.0}, {"alpha": 3.0}},
	"global_pool":        {{}, {"value": "max"}},

	"upsample_bilinear": {{}, {"factor": 3}, {"factor": 1}},

	"class_token":  {{}},
	"first_tokens": {{"tokens": 3}},
	"take_token":   {{}, {"token": 1}, {"mean": true}, {"mean": true, "mask": "mask"}},
	"mask_patches": {{}, {"ratio": 0.3}, {"ratio": 0.0}},
	"mask_tokens":  {{"mask": "mask"}},
	"add":          {{"value": "six"}},
	"slice":        {{"count": 1}, {"first": 1, "count": 1}},
	"replace":      {{"mask": "mask of six", "by": 3}, {"mask": "mask of six", "by": 2, "random": 0.0, "keep": 0.0}},
	"unpatch":      {{"size": 1, "height": 2}, {"size": 1, "height": 1}},
	"position":     {{}, {"values": "sinusoidal"}},
	"recurrent":    {{"units": 4}, {"units": 3, "cell": "lstm"}, {"units": 2, "mask": "mask", "reverse": true}, {"units": 3, "cell": "lstm", "mask": "mask"}},

	"sinusoidal": {{"units": 6, "scale": 3.0}},
	"condition":  {{"by": "vector"}},
	"dot":        {{"with": "vector"}, {"with": "vector", "plus": []string{"two"}}},
	"diffuse":    {{"noise": "other image", "level": "number"}, {"noise": "other image", "level": "number", "schedule": "linear"}},

	"vq": {{"entries": 3}, {"entries": 5, "decay": 0.5, "revive": 0.0}, {"entries": 40, "revive": 0.5}},

	"prelu":    {{}, {"slope": 0.0}, {"slope": -0.5}},
	"softplus": {{}, {"sharpness": 0.3}, {"sharpness": 10.0}},
}

// received contains the shapes of the values that layers read by name.
var received = map[string][]int{"other": {3, 5}, "mask": {2}, "mask of other": {3}, "mask of five": {5}, "mask of six": {6}, "vector": {3}, "other image": {6}, "number": {1}, "two": {2}, "six": {6}}

func init() {
	for _, a := range layers.ActivationName("").Choices() {
		settings["dense"] = append(settings["dense"], map[string]any{"units": 4, "activation": layers.ActivationName(a)})
	}
}

// fresh returns a constructor of the entry's layer with these settings.
func fresh(t *testing.T, name string, keys map[string]any) func() layers.Layer {
	e, ok := layers.Registry.Lookup(name)
	if !ok {
		t.Fatalf("no layer %q", name)
	}
	return func() layers.Layer {
		l := e.New()
		for key, value := range keys {
			fatal.If(t, laws.Set(l, key, value))
		}
		if b, ok := l.(layers.Borrower); ok {
			b.Lend([]int{4, 6})
		}
		layers.Receive(l, func(name string) []int { return received[name] })
		return l
	}
}

// titled returns the name of a layer's test: the layer and its settings.
func titled(name string, keys map[string]any) string {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		text := fmt.Sprintf("%v", keys[key])
		if block, ok := keys[key].([]layers.Layer); ok {
			text = ""
			for _, l := range block {
				text += strings.TrimPrefix(fmt.Sprintf("%T", l), "*layers.")
			}
		}
		name += fmt.Sprintf(" %s=%s", key, text)
	}
	return name
}

// A layer is tested with inputs of every kind with its first settings, and with an image or else a vector with its others, if it takes one of them.
func TestEveryLayerObeysItsLaws(t *testing.T) {
	few := [][]int{{3, 4, 2}, {6}}
	for _, name := range layers.Registry.Names() {
		variants := settings[name]
		if variants == nil {
			variants = []map[string]any{{}}
		}
		if testing.Short() {
			variants = variants[:1]
		}
		for i, keys := range variants {
			made := fresh(t, name, keys)
			takes := func(shape []int) bool {
				_, err := made().OutputShape(slices.Clone(shape))
				return err == nil
			}
			kit := laws.Layer
			if one := slices.IndexFunc(few, takes); (i > 0 || testing.Short()) && one >= 0 {
				kit = laws.LayerOf(few[one])
			}
			t.Run(titled(name, keys), func(t *testing.T) {
				t.Parallel()
				laws.Check(t, kit, fresh(t, name, keys))
			})
		}
	}
}
