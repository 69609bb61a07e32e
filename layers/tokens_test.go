package layers_test

import "tessera/layers"

func init() {
	settings["token_dense"] = []map[string]any{
		{"units": 4}, {"units": 1, "bias": false, "init": &layers.HeNormal{}}, {"units": 2, "activation": layers.ActivationName("softmax")},
	}
	settings["attention"] = []map[string]any{
		{"heads": 1, "position": "rotary"}, {"heads": 1, "causal": true, "position": "rotary"},
		{"heads": 1}, {"heads": 3, "bias": true, "init": &layers.HeNormal{}}, {"heads": 2, "bias": true}, {"heads": 1, "bias": true},
		{"heads": 1, "keys": "other"}, {"heads": 2, "bias": true, "keys": "other"},
		{"heads": 1, "mask": "mask"}, {"heads": 2, "bias": true, "keys": "other", "mask": "mask of other"},
		{"heads": 2, "causal": true},
	}
	// A normalisation of two features is steep where they are nearly equal, unless epsilon is large.
	settings["transformer"] = []map[string]any{
		{"heads": 2, "ratio": 0.5, "activation": layers.ActivationName("tanh"), "dropout": 0.3, "epsilon": 0.3},
		{"heads": 1, "ratio": 1.0, "keys": "other", "epsilon": 0.3},
		{"heads": 1, "ratio": 1.0, "keys": "other", "mask": "mask", "keys_mask": "mask of other", "epsilon": 0.3},
		{"heads": 1, "ratio": 1.0, "causal": true, "epsilon": 0.3},
	}
	settings["patches"] = []map[string]any{{"size": 1}}
	settings["plasticity"] = []map[string]any{{}, {"mean": 0.5, "rate": 0.1, "gain": 2.0, "bias": 0.0}}
}
