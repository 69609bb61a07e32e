package export_test

import (
	"fmt"
	"strings"
	"testing"

	"tessera/apps/export"
	"tessera/config"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train"
	"tessera/layers"
)

// settings contains the settings with which layers are declared, by kind, for images of 6 x 8 x 4. Kinds that are not
// listed need none.
var settings = map[string][]string{
	"conv2d": {
		`filters = 3, kernel = 2, kernel_width = 5, stride = 2, stride_width = 3`,
		`filters = 6, kernel = 3, stride = 2, padding = "same"`, `filters = 4, kernel = 2, dilation = 2, groups = 2, padding = "valid"`,
		`filters = 5, kernel = 3, stride = 2, padding = "valid", activation = "elu"`, `filters = 3, kernel = 3, padding = 2, bias = false`,
	},
	"conv2d_transpose": {
		`filters = 3, kernel = 2, kernel_width = 5, stride = 2, stride_width = 3`,
		`filters = 6, kernel = 3, stride = 2, padding = "same"`, `filters = 4, kernel = 2, dilation = 2, groups = 2, padding = "valid"`,
		`filters = 5, kernel = 3, stride = 3, padding = 1`, `filters = 3, kernel = 4, stride = 2`,
	},
	"conv1d":             {`filters = 3, kernel = 2, stride = 2`, `filters = 4, kernel = 3, dilation = 2, groups = 2, padding = "valid"`, `filters = 5, padding = 2, activation = "elu"`},
	"group_norm":         {`groups = 2`, `groups = 4`},
	"layer_scale":        {`scale = 0.5`},
	"max_pool":           {`kernel = 2`, `kernel = 3, stride = 2, padding = "same"`, `kernel = 3, stride = 2, padding = "valid"`},
	"avg_pool":           {`kernel = 2`, `kernel = 3, stride = 2, padding = "same"`, `kernel = 3, stride = 2, padding = "valid"`},
	"attention":          {`heads = 2`, `heads = 2, causal = true`, `heads = 2, position = "rotary"`, `heads = 4, bias = true`, `heads = 2, keys = "images"`},
	"transformer":        {`heads = 2, dropout = 0.5`, `heads = 2, causal = true`, `heads = 4, ratio = 0.5, keys = "images"`},
	"recurrent":          {`units = 3`, `units = 3, cell = "lstm"`, `units = 5, reverse = true`, `units = 2, cell = "lstm", reverse = true`},
	"mask_tokens":        {`mask = "encoder.1.mask"`},
	"add":                {`value = "images"`},
	"slice":              {`first = 1, count = 3`},
	"take_token":         {`token = 2`, `mean = true`},
	"first_tokens":       {`tokens = 3`},
	"unpatch":            {`size = 2, height = 6`},
	"position":           {``, `values = "sinusoidal"`},
	"gaussian":           {`units = 5`},
	"rectified_gaussian": {`units = 5`},
	"embedding":          {`units = 3, vocabulary = 7`, `units = 3, vocabulary = 7, mask = "images"`, `units = 3, vocabulary = 7, unknown = true`},
	"replace":            {`mask = "images", by = 7`},
	"dense":              {`units = 5`, `units = 5, activation = "tanh"`},
	"token_dense":        {`units = 3, activation = "softplus"`},
	"max_plus":           {`units = 9`},
	"unrolled": {`units = 7, steps = 3`, `units = 7, steps = 3, method = "splitting"`,
		`units = 7, steps = 2, method = "splitting", rho = 1.0 }, { kind = "unrolled", units = 5, steps = 2, method = "splitting", rho = 1.0`},
	"reshape":           {`shape = [12, 16]`},
	"patches":           {`size = 2`},
	"top_k":             {`k = 5`, `k = 1000`},
	"batch_top_k":       {`k = 5`},
	"group_max":         {`groups = 8`},
	"prefix":            {`units = 5`},
	"aux_k":             {`of = "images"`},
	"sparsify":          {`fraction = 0.4`, `threshold = 0.2`},
	"residual":          {`layers = [{ kind = "layer_norm" }, { kind = "attention", heads = 2 }]`},
	"relative":          {`layers = [{ kind = "unrolled", units = 7, steps = 3 }]`, `layers = [{ kind = "layer_norm" }, { kind = "attention", heads = 2 }]`},
	"upsample":          {`factor = 3`},
	"concat":            {`layers = [{ kind = "conv2d", filters = 3 }, { kind = "gelu" }]`},
	"global_pool":       {`value = "mean"`, `value = "max"`},
	"upsample_bilinear": {`factor = 3`},
	"amd":               {`levels = 3`, `levels = 2, radius = 9, original = true`},
	"pado":              {`levels = 2, radius = 2`, `levels = 1, radius = 1`},
	"vq":                {`entries = 7`},
	"rbm":               {`units = 5`, `units = 5, chains = 3`, `units = 5, visible = "gaussian", deviation = 0.5`},
	"sinusoidal":        {`units = 4, scale = 3`},
	"condition":         {`by = "encoder.0", from = "images"`},
	"dot":               {`with = "encoder.0", from = "images"`},
	"diffuse":           {`level = "encoder.0", noise = "images", from = "images"`, `level = "encoder.0", noise = "images", from = "images", schedule = "linear"`},
}

// Every registered layer has an ONNX form with the same outputs as in Tessera.
func TestLayersAgreeInONNXRuntime(t *testing.T) {
	runtime := startONNXRuntime(t)
	threads := team.New(1)
	defer threads.Close()
	for _, kind := range layers.Registry.Names() {
		list := settings[kind]
		if list == nil {
			list = []string{""}
		}
		for i, s := range list {
			r := oneLayer(t, kind, s)
			r.Name = fmt.Sprintf("%s-%d", kind, i)
			expect.Equal(t, compared(t, runtime, r, r.Coder(engine.Backend{Team: threads}), "model").problem, "")
		}
	}
}

// Tokens that a mask leaves out have no weight.
func TestMaskedLayersAgreeInONNXRuntime(t *testing.T) {
	runtime := startONNXRuntime(t)
	threads := team.New(1)
	defer threads.Close()
	for name, encoder := range map[string]string{
		"masked-attention": `{ kind = "token_dense", units = 1 }, { kind = "attention", heads = 2, from = "images", mask = "encoder.0" }`,
		"masked-transformer": `{ kind = "patches", size = 2 }, { kind = "token_dense", units = 1 },
			{ kind = "transformer", from = "encoder.0", keys = "encoder.0", mask = "encoder.1", keys_mask = "encoder.1" }`,
		"masked-mean": `{ kind = "patches", size = 2 }, { kind = "token_dense", units = 1 }, { kind = "take_token", mean = true, from = "encoder.0", mask = "encoder.1" }`,
	} {
		r := layered(t, name, encoder, `{ kind = "dense" }`)
		expect.Equal(t, compared(t, runtime, r, r.Coder(engine.Backend{Team: threads}), "model").problem, "")
	}
}

// oneLayer returns a model whose encoder is a single layer. A layer for a tied decoder needs a dense encoder.
func oneLayer(t *testing.T, kind, settings string) *export.Run {
	t.Helper()
	layer := fmt.Sprintf("{ kind = %q, %s }", kind, settings)
	layer = strings.Replace(layer, ", }", " }", 1)
	encoder, decoder := layer, `{ kind = "dense" }`
	switch kind {
	case "tied":
		encoder, decoder = `{ kind = "dense", units = 5 }`, layer
	case "class_token", "take_token", "unpatch", "conv1d":
		encoder = `{ kind = "patches", size = 2 }, ` + layer
	case "condition", "dot": // they combine a vector with the channels of the images
		encoder = `{ kind = "dense", units = 4 }, ` + layer
	case "diffuse": // it reads a level
		encoder = `{ kind = "dense", units = 1 }, ` + layer
	case "mask_patches": // the layer leaves out tokens in training, so the code must not depend on their number
		encoder = `{ kind = "patches", size = 2 }, ` + layer + `, { kind = "take_token", mean = true }`
	case "mask_tokens":
		encoder = `{ kind = "patches", size = 2 }, { kind = "mask_patches" }, ` + layer
	case "zz_halves", "first_tokens": // these layers read vectors
		encoder = `{ kind = "flatten" }, ` + layer
	}
	return layered(t, kind, encoder, decoder)
}

// layered returns an untrained model of images (6, 8, 4).
func layered(t *testing.T, name, encoder, decoder string) *export.Run {
	t.Helper()
	dataset := "swimmer"
	if strings.Contains(encoder, "decorrelate") {
		dataset = "credit" // this data set has groups
	}
	text := fmt.Sprintf("[model.m]\ndataset = %q\nencoder = [%s]\ndecoder = [%s]\n", dataset, encoder, decoder)
	f, err := config.Load(name, []byte(text))
	fatal.If(t, err)
	f.Trained = true
	spec, err := f.Model("m")
	fatal.If(t, err, encoder)
	m, err := graph.New(spec, []int{6, 8, 4})
	fatal.If(t, err, encoder)
	moved(m)
	return &export.Run{Trained: &train.Trained{Spec: spec, Model: m}, Name: name}
}
