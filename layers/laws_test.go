package layers_test

import (
	"testing"

	"tessera/internal/laws"
	"tessera/layers"
)

// settings that a layer needs or that are worth a check of their own, besides the defaults.
var settings = map[string][]map[string]any{
	"dense": {
		{"units": 4}, {"units": 1}, {"units": 4, "bias": false}, {"units": 4, "activation": layers.ActivationName("sigmoid")},
		{"units": 4, "activation": layers.ActivationName("softmax")}, {"units": 4, "activation": layers.ActivationName("leaky_relu")},
	},
	"conv2d": {
		{"filters": 2}, {"filters": 2, "kernel": 2, "padding": "valid", "bias": false}, {"filters": 3, "stride": 2},
		{"filters": 2, "kernel": 2, "padding": 2, "dilation": 2, "activation": layers.ActivationName("sigmoid")},
	},
	"max_plus":       {{"units": 4}, {"units": 1}},
	"batch_norm":     {{}, {"momentum": 0.0, "epsilon": 0.1}},
	"reshape":        {{"shape": []int{6}}, {"shape": []int{2, 3}}, {"shape": []int{3, 1, 2}}},
	"dropout":        {{}, {"rate": 0.0}, {"rate": 0.9}},
	"masking_noise":  {{}, {"rate": 0.9}},
	"gaussian_noise": {{}, {"stddev": 0.0}},
	"leaky_relu":     {{}, {"slope": 0.0}, {"slope": 1.0}},
	"elu":            {{}, {"alpha": 0.0}, {"alpha": 3.0}},
	"softplus":       {{}, {"sharpness": 0.3}, {"sharpness": 10.0}},
}

// fresh returns a maker of the entry's layer with these settings.
func fresh(t *testing.T, name string, keys map[string]any) func() layers.Layer {
	e, ok := layers.Registry.Lookup(name)
	if !ok {
		t.Fatalf("no layer %q", name)
	}
	return func() layers.Layer {
		l := e.New()
		for key, value := range keys {
			if err := laws.Set(l, key, value); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
}

func TestEveryLayerObeysItsLaws(t *testing.T) {
	for _, name := range layers.Registry.Names() {
		variants := settings[name]
		if variants == nil {
			variants = []map[string]any{{}}
		}
		for _, keys := range variants {
			t.Run(name, func(t *testing.T) { laws.Check(t, laws.Layer, fresh(t, name, keys)) })
		}
	}
}
