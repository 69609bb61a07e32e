package sae

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/train/checkpoint"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
)

// Of returns the dictionary of a model of one of the architectures. A scaling of the samples is folded into it.
func Of(m *graph.Model, scaling *data.Scaling) (*Dictionary, error) {
	if !m.Spec.OutputIsSample(m.Layout) {
		return nil, fmt.Errorf("%w: the format has dictionaries of samples", m.Spec.Reconstructs())
	}
	d := &Dictionary{Inputs: m.Pixels(), Units: m.Units(), tensors: map[string]data.Tensor{}}
	first, chosen, relu, err := d.recognise(m.Layout)
	if err != nil {
		return nil, err
	}
	// take copies a parameter; one that a layer lacks is 0.
	take := func(name, path string, shape ...int) {
		t := data.Tensor{Shape: shape, Data: make([]float32, volume.Of(shape))}
		if p, err := m.Parameter(path); err == nil {
			copy(t.Data, p.Data)
		}
		d.tensors[name] = t
	}
	last := m.Layout.Decoder[0]
	take("W_enc", first.Path+".weight", d.Inputs, d.Units)
	take("b_enc", first.Path+".bias", d.Units)
	take("W_dec", last.Path+".weight", d.Units, d.Inputs)
	take("b_dec", last.Path+".bias", d.Inputs)
	if last.Kind == "tied" {
		d.tensors["W_dec"] = transposed(d.tensors["W_enc"])
	}
	switch d.Architecture {
	case "batchtopk":
		take("topk_threshold", chosen.Path+".threshold", 1)
	case "jumprelu":
		take("threshold", chosen.Path+".threshold", d.Units)
		if t := d.tensors["threshold"].Data; !relu && slices.Min(t) < 0 {
			return nil, fmt.Errorf("%s: the threshold of a unit is %v, want 0 or more: negative values would pass", chosen.Path, slices.Min(t))
		}
	case "gated":
		take("b_gate", chosen.Path+".gate_bias", d.Units)
		take("r_mag", chosen.Path+".scale", d.Units)
		take("b_mag", chosen.Path+".bias", d.Units)
		d.moveUnits(func(j int) float64 { return float64(d.tensors["b_enc"].Data[j]) })
		delete(d.tensors, "b_enc")
	}
	if scaling == nil {
		return d, nil
	}
	if len(scaling.Steps) > 0 || scaling.Clip || scaling.Mix != nil {
		return nil, fmt.Errorf("the samples are scaled by more than a shift and a factor (minmax clips), want no scale, mean_norm, standardise or a factor")
	}
	shift := slices.Clone(scaling.Shift)
	for i, r := range scaling.Rest {
		shift[i] += r
	}
	d.change("W_enc", func(at int, v float64) float64 { return v * float64(scaling.Factor[at/d.Units]) })
	d.change("W_dec", func(at int, v float64) float64 { return v / float64(scaling.Factor[at%d.Inputs]) })
	d.change("b_dec", func(i int, v float64) float64 { return v/float64(scaling.Factor[i]) + float64(shift[i]) })
	d.shift(shift, 1)
	return d, nil
}

// recognise finds the architecture of a model, its dense layer and the layer that chooses the active units. relu is true if the latter reads no
// negative values.
func (d *Dictionary) recognise(l *config.Layout) (first, chosen config.Placed, relu bool, err error) {
	refused := func(p config.Placed) error {
		return fmt.Errorf("%s, a layer %s, is none of a sparse dictionary: want one dense layer with relu, or with top_k, batch_top_k, group_max, jump_relu "+
			"or gated after it, and a decoder of one dense or tied layer without activation", p.Path, p.Kind)
	}
	from := []string{losses.Images}
	for _, p := range l.Encoder {
		if !slices.Equal(p.From, from) {
			return first, chosen, relu, refused(p)
		}
		from = []string{p.Path}
		switch one := p.Layer.(type) {
		case *layers.Flatten, *layers.AuxK: // the identity
			continue
		case *layers.Dense:
			if first.Path != "" || one.Activation != "relu" && one.Activation != "linear" {
				return first, chosen, relu, refused(p)
			}
			first, relu = p, one.Activation == "relu"
			continue
		case *layers.Relu:
			if first.Path == "" || chosen.Path != "" {
				return first, chosen, relu, refused(p)
			}
			relu = true
			continue
		}
		if first.Path == "" || chosen.Path != "" {
			return first, chosen, relu, refused(p)
		}
		chosen = p
		switch one := p.Layer.(type) {
		case *layers.TopK:
			d.Architecture, d.K = "topk", one.K
		case *layers.GroupMax:
			d.Architecture, d.K = "groupmax", one.Groups
		case *layers.BatchTopK:
			d.Architecture, d.K = "batchtopk", one.K
		case *layers.JumpRelu:
			d.Architecture = "jumprelu"
		case *layers.Gated:
			d.Architecture = "gated"
		default:
			return first, chosen, relu, refused(p)
		}
	}
	if chosen.Path == "" {
		d.Architecture = "standard"
	}
	if needs := map[string]bool{"standard": true, "topk": true, "groupmax": true, "gated": false}; first.Path == "" {
		return first, chosen, relu, fmt.Errorf("the encoder has no dense layer")
	} else if want, ok := needs[d.Architecture]; ok && want != relu {
		return first, chosen, relu, fmt.Errorf("%s: the dense layer of a %s dictionary has relu = %v, got %v", first.Path, d.Architecture, want, relu)
	}
	if len(l.Decoder) != 1 {
		return first, chosen, relu, fmt.Errorf("the decoder has %d layers, want 1", len(l.Decoder))
	}
	switch one := l.Decoder[0].Layer.(type) {
	case *layers.Dense:
		if one.Activation == "linear" {
			return first, chosen, relu, nil
		}
	case *layers.Tied:
		if one.Activation == "linear" && one.Weight == first.Path+".weight" && one.BiasOf == "" {
			return first, chosen, relu, nil
		}
	}
	return first, chosen, relu, refused(l.Decoder[0])
}

// Lens returns the files of SAELens, version 6.
func (d *Dictionary) Lens() (configuration []byte, tensors []checkpoint.Tensor, err error) {
	out := *d
	cfg := map[string]any{"d_in": d.Inputs, "d_sae": d.Units, "dtype": "float32", "device": "cpu", "apply_b_dec_to_input": false, "normalize_activations": "none",
		"reshape_activations": "none", "metadata": map[string]any{"sae_lens_version": "6.0.0"}}
	switch d.Architecture {
	case "groupmax":
		return nil, nil, fmt.Errorf("SAELens has no group_max; sparsify has it: the option to=sparsify")
	case "topk":
		cfg["k"], cfg["rescale_acts_by_decoder_norm"] = d.K, false
	case "batchtopk": // as SAELens itself writes it
		out.Architecture, out.tensors = "jumprelu", maps.Clone(d.tensors)
		out.tensors["threshold"] = data.Tensor{Shape: []int{d.Units}, Data: slices.Repeat([]float32{max(0, d.tensors["topk_threshold"].Data[0])}, d.Units)}
		delete(out.tensors, "topk_threshold")
	}
	cfg["architecture"] = out.Architecture
	return out.files(cfg)
}

// Eleuth returns the files of sparsify.
func (d *Dictionary) Eleuth() (configuration []byte, tensors []checkpoint.Tensor, err error) {
	if d.Architecture != "topk" && d.Architecture != "groupmax" {
		return nil, nil, fmt.Errorf("sparsify has dictionaries with top_k and group_max, got %s; SAELens has them: the option to=saelens", d.Architecture)
	}
	out := *d
	out.tensors = maps.Clone(d.tensors)
	out.shift(d.tensors["b_dec"].Data, -1) // its encoder reads x - b_dec
	for to, from := range eleuthNames {
		out.tensors[from] = transposed(out.tensors[to])
		delete(out.tensors, to)
	}
	return out.files(map[string]any{"d_in": d.Inputs, "num_latents": d.Units, "k": d.K, "activation": d.Architecture, "normalize_decoder": false,
		"multi_topk": false, "skip_connection": false, "transcode": false})
}

func (d *Dictionary) files(cfg map[string]any) ([]byte, []checkpoint.Tensor, error) {
	var tensors []checkpoint.Tensor
	for _, name := range slices.Sorted(maps.Keys(d.tensors)) {
		tensors = append(tensors, checkpoint.Tensor{Name: name, Shape: d.tensors[name].Shape, Data: d.tensors[name].Data})
	}
	text, err := json.MarshalIndent(cfg, "", "  ")
	return append(text, '\n'), tensors, err
}
