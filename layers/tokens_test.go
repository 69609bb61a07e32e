package layers_test

import "tessera/layers"

func init() {
	settings["token_dense"] = []map[string]any{
		{"units": 4}, {"units": 1, "bias": false, "init": &layers.HeNormal{}}, {"units": 2, "activation": layers.ActivationName("softmax")},
	}
	settings["attention"] = []map[string]any{
		{"heads": 1}, {"heads": 3, "bias": true, "init": &layers.HeNormal{}}, {"heads": 2, "bias": true}, {"heads": 1, "bias": true},
	}
	settings["patches"] = []map[string]any{{"size": 1}}
	settings["plasticity"] = []map[string]any{{}, {"mean": 0.5, "rate": 0.1, "gain": 2.0, "bias": 0.0}}
}
