// Package torch converts parameters between Tessera's layouts and those of PyTorch's modules.
package torch

import (
	"slices"
	"strings"

	"tessera/config"
	"tessera/graph"
	"tessera/internal/train/checkpoint"
	"tessera/internal/volume"
)

// Tensors returns the parameters of a model in the layouts of PyTorch's modules, under their paths.
func Tensors(m *graph.Model) ([]checkpoint.Tensor, error) {
	var placements []config.Placed
	for p := range m.Layout.Layers() {
		placements = append(placements, *p)
	}
	images, err := flattened(placements)
	if err != nil {
		return nil, err
	}
	var all []checkpoint.Tensor
	turned := map[string][]int{} // shape of the image for each dense weight on an image with channels
	for _, placed := range placements {
		own, names, err := tensorsOf(m, placed)
		if err != nil {
			return nil, err
		}
		if image := images[placed.Path]; image != nil && placed.Kind == "dense" {
			placed.In = image
		} else if image != nil {
			for name, t := range own {
				own[name] = channelsFirst(t, image)
			}
		}
		if placed.Kind == "dense" && len(placed.In) == 3 {
			turned[placed.Path+".weight"] = placed.In
		}
		turnBias(placed, own, turned)
		converted := inOrder(own, names)
		if convert := conversions[placed.Kind]; convert != nil {
			converted = convert(placed, own)
		}
		for _, t := range converted {
			t.Name = placed.Path + "." + t.Name
			all = append(all, t)
		}
	}
	return all, nil
}

// turnBias reorders the bias of a tied decoder in the same way as the weight whose transpose it uses.
func turnBias(placed config.Placed, own map[string]checkpoint.Tensor, turned map[string][]int) {
	bias, ok := own["bias"]
	if placed.Kind != "tied" || !ok {
		return
	}
	for _, p := range placed.Parameters {
		if image := turned[p.Of]; image != nil {
			own["bias"] = channelsFirst(bias, image)
		}
	}
}

// tensorsOf returns the parameters of a layer by their names, and the names in order. It omits parameters of other
// layers.
func tensorsOf(m *graph.Model, placed config.Placed) (own map[string]checkpoint.Tensor, names []string, err error) {
	own = map[string]checkpoint.Tensor{}
	for _, p := range placed.Parameters {
		if p.Of != "" {
			continue
		}
		q, err := m.Parameter(placed.Path + "." + p.Name)
		if err != nil {
			return nil, nil, err
		}
		own[p.Name] = checkpoint.Tensor{Name: p.Name, Shape: q.Shape, Data: q.Data}
		names = append(names, p.Name)
	}
	return own, names, nil
}

func inOrder(tensors map[string]checkpoint.Tensor, names []string) (list []checkpoint.Tensor) {
	for _, name := range names {
		if t, ok := tensors[name]; ok {
			list = append(list, t)
		}
	}
	return list
}

// conversions maps layer kinds to functions that convert parameters to PyTorch's layout.
var conversions map[string]func(p config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor

func init() {
	conversions = map[string]func(p config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor{
		"dense":            linearModule,
		"token_dense":      linearModule,
		"conv2d":           convolutionModule,
		"conv2d_transpose": convolutionModule,
		"conv1d":           convolutionModule,
		"group_norm":       normalisationModule,
		"batch_norm":       normalisationModule,
		"layer_norm":       normalisationModule,
		"instance_norm":    normalisationModule,
		"attention":        attentionModule,
		"transformer":      transformerModule,
		"recurrent":        recurrentModule,
	}
}

// linearModule converts the tensors of a dense layer to those of nn.Linear. The inputs of a dense layer on images with
// channels, or on such images after a flatten, are in the order of nn.Flatten: channels first.
func linearModule(p config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor {
	w := own["weight"]
	if p.Kind == "dense" && len(p.In) == 3 {
		w.Shape = append(slices.Clone(p.In), w.Shape[1])
		w = permuted(w, 3, 2, 0, 1)
		w.Shape = []int{w.Shape[0], volume.Of(w.Shape[1:])}
	} else {
		w = permuted(w, 1, 0)
	}
	own["weight"] = w
	return inOrder(own, []string{"weight", "bias"})
}

// convolutionModule converts a convolution to nn.Conv2d (filters, channels of a group, kernel, kernel) or
// nn.ConvTranspose2d (channels, filters of a group, kernel, kernel), and one of sequences to nn.Conv1d (filters, channels of a
// group, kernel).
func convolutionModule(_ config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor {
	axes := []int{3, 2, 0, 1}
	if len(own["weight"].Shape) == 3 {
		axes = []int{2, 1, 0}
	}
	own["weight"] = permuted(own["weight"], axes...)
	return inOrder(own, []string{"weight", "bias"})
}

// normalisationModule converts the tensors of a normalisation layer to those of nn.BatchNorm1d, nn.BatchNorm2d, nn.LayerNorm,
// nn.InstanceNorm2d or nn.GroupNorm.
func normalisationModule(_ config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for _, names := range [][2]string{{"scale", "weight"}, {"shift", "bias"}, {"running_mean", "running_mean"}, {"running_variance", "running_var"}} {
		if t, ok := own[names[0]]; ok {
			t.Name = names[1]
			list = append(list, t)
		}
	}
	return list
}

// recurrentModule converts the tensors of a recurrent layer to those of nn.GRU or nn.LSTM.
func recurrentModule(_ config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for _, names := range [][2]string{{"weight", "weight_ih_l0"}, {"recurrent_weight", "weight_hh_l0"}, {"bias", "bias_ih_l0"}, {"recurrent_bias", "bias_hh_l0"}} {
		t := own[names[0]]
		if len(t.Shape) == 2 {
			t = permuted(t, 1, 0)
		}
		t.Name = names[1]
		list = append(list, t)
	}
	return list
}

// transformerModule converts the layers within a transformer block. The names of a layer's parameters begin with the
// name of the layer.
func transformerModule(p config.Placed, own map[string]checkpoint.Tensor) (list []checkpoint.Tensor) {
	kinds := map[string]string{"attention": "attention", "cross": "attention", "norm1": "layer_norm", "norm_cross": "layer_norm", "norm2": "layer_norm"}
	for _, name := range []string{"norm1", "attention", "norm_cross", "cross", "norm2", "hidden", "output"} {
		part := map[string]checkpoint.Tensor{}
		for path, t := range own {
			if rest, ok := strings.CutPrefix(path, name+"."); ok {
				t.Name = rest
				part[rest] = t
			}
		}
		if len(part) == 0 {
			continue
		}
		placed := p
		if placed.Kind = kinds[name]; placed.Kind == "" {
			placed.Kind = "token_dense"
		}
		for _, t := range conversions[placed.Kind](placed, part) {
			t.Name = name + "." + t.Name
			list = append(list, t)
		}
	}
	return list
}

// attentionModule converts an attention layer to nn.MultiheadAttention. Queries, keys and values are one matrix, or
// three if keys and values have a different number of features. PyTorch has a bias of the keys, which is set to 0.
func attentionModule(_ config.Placed, own map[string]checkpoint.Tensor) []checkpoint.Tensor {
	n := own["query"].Shape[0]
	weights := []checkpoint.Tensor{{Name: "in_proj_weight", Shape: []int{3 * n, n}}}
	if own["key"].Shape[0] != n {
		weights = nil
	}
	bias := checkpoint.Tensor{Name: "in_proj_bias", Shape: []int{3 * n}}
	for _, name := range []string{"query", "key", "value"} {
		if w := permuted(own[name], 1, 0); own["key"].Shape[0] == n {
			weights[0].Data = append(weights[0].Data, w.Data...)
		} else {
			w.Name = name[:1] + "_proj_weight"
			weights = append(weights, w)
		}
		if b, ok := own[name+"_bias"]; ok {
			bias.Data = append(bias.Data, b.Data...)
		} else {
			bias.Data = append(bias.Data, make([]float32, n)...)
		}
	}
	out := permuted(own["output"], 1, 0)
	out.Name = "out_proj.weight"
	outBias, biased := own["output_bias"]
	if !biased {
		return append(weights, out)
	}
	outBias.Name = "out_proj.bias"
	return append(weights, bias, out, outBias)
}

// permuted returns a copy of t whose axis i is axis axes[i] of t.
func permuted(t checkpoint.Tensor, axes ...int) checkpoint.Tensor {
	steps, step := make([]int, len(axes)), 1
	for i, n := range slices.Backward(t.Shape) {
		steps[i] = step
		step *= n
	}
	out := checkpoint.Tensor{Name: t.Name, Data: make([]float32, 0, len(t.Data))}
	for _, a := range axes {
		out.Shape = append(out.Shape, t.Shape[a])
	}
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(axes) {
			out.Data = append(out.Data, t.Data[at])
			return
		}
		for i := range out.Shape[axis] {
			walk(axis+1, at+i*steps[axes[axis]])
		}
	}
	walk(0, 0)
	return out
}
