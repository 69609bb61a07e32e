// Package sae reads and writes the sparse dictionaries of SAELens (cfg.json and sae_weights.safetensors) and of EleutherAI's sparsify (cfg.json and
// sae.safetensors).
//
// A dictionary computes, of a sample x,
//
//	standard    code = max(0, x W_enc + b_enc)
//	topk        the k largest values of that
//	groupmax    the largest value of each of k groups of units of that
//	jumprelu    code = x W_enc + b_enc where that is > max(0, threshold), else 0
//	batchtopk   the same with one threshold for all units
//	gated       code = max(0, exp(r_mag) (x W_enc) + b_mag) where x W_enc + b_gate > 0, else 0
//
// and the output code W_dec + b_dec. Files whose encoder reads x - b_dec are read as an encoder of x with another bias.
//
// Sources: https://github.com/decoderesearch/SAELens, versions 3 to 6; https://github.com/EleutherAI/sparsify.
package sae

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/data"
	"tessera/internal/regular"
)

// Names of the files.
const (
	ConfigFile = "cfg.json"
	LensFile   = "sae_weights.safetensors"
	EleuthFile = "sae.safetensors"
)

// Dictionary is a sparse dictionary.
type Dictionary struct {
	Architecture  string // of those above
	K             int    // of topk, batchtopk and groupmax
	Inputs, Units int
	Transcodes    bool // the output is not meant to be the sample
	File          data.File

	tensors map[string]data.Tensor // by their names in SAELens: W_enc, b_enc, W_dec, ...
}

// biases lists the tensors with one value per unit that an architecture has, with Tessera's path of each.
var biases = map[string]map[string]string{
	"standard":  {"b_enc": "encoder.0.bias"},
	"topk":      {"b_enc": "encoder.0.bias"},
	"groupmax":  {"b_enc": "encoder.0.bias"},
	"batchtopk": {"b_enc": "encoder.0.bias", "topk_threshold": "encoder.1.threshold"},
	"jumprelu":  {"b_enc": "encoder.0.bias", "threshold": "encoder.1.threshold"},
	"gated":     {"b_gate": "encoder.1.gate_bias", "r_mag": "encoder.1.scale", "b_mag": "encoder.1.bias"},
}

// eleuthNames maps names to those of sparsify, where they differ. Its encoder is stored as the module Linear of PyTorch, transposed.
var eleuthNames = map[string]string{"W_enc": "encoder.weight", "b_enc": "encoder.bias"}

// Layers returns the encoder as a list of layers in TOML.
func (d *Dictionary) Layers() string {
	dense := fmt.Sprintf(`{ kind = "dense", units = %d, activation = "relu" }`, d.Units)
	linear := fmt.Sprintf(`{ kind = "dense", units = %d }`, d.Units)
	return "[" + strings.Join(map[string][]string{
		"standard":  {dense},
		"topk":      {dense, fmt.Sprintf(`{ kind = "top_k", k = %d }`, d.K)},
		"groupmax":  {dense, fmt.Sprintf(`{ kind = "group_max", groups = %d }`, d.K)},
		"batchtopk": {dense, fmt.Sprintf(`{ kind = "batch_top_k", k = %d }`, d.K)},
		"jumprelu":  {linear, `{ kind = "jump_relu" }`},
		"gated":     {strings.Replace(linear, " }", ", bias = false }", 1), `{ kind = "gated" }`},
	}[d.Architecture], ", ") + "]"
}

// Losses returns the error of the output as a list of terms in TOML, with what trains the gates.
func (d *Dictionary) Losses() string {
	if d.Architecture == "gated" {
		return `[{ kind = "mse" }, { kind = "gated" }]`
	}
	return `[{ kind = "mse" }]`
}

// Parameters calls do for each tensor with its path in a model of these [Dictionary.Layers] with a dense decoder.
func (d *Dictionary) Parameters(do func(path string, t data.Tensor)) {
	do("encoder.0.weight", d.tensors["W_enc"])
	for name, path := range biases[d.Architecture] {
		do(path, d.tensors[name])
	}
	do("decoder.0.weight", d.tensors["W_dec"])
	do("decoder.0.bias", d.tensors["b_dec"])
}

// Weights returns the path of the file of tensors in the folder of a dictionary, "" for another folder.
func Weights(folder string) string {
	for _, name := range []string{LensFile, EleuthFile} {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err == nil {
			if _, err := os.Stat(filepath.Join(folder, ConfigFile)); err == nil {
				return path
			}
		}
	}
	return ""
}

// settings are the keys of cfg.json on which the result depends.
type settings struct {
	Architecture string  `json:"architecture"`
	Inputs       int     `json:"d_in"`
	Units        int     `json:"d_sae"`
	K            float64 `json:"k"`
	Function     string  `json:"activation_fn"`
	FunctionOld  string  `json:"activation_fn_str"` // before version 6
	FunctionKeys struct {
		K int `json:"k"`
	} `json:"activation_fn_kwargs"`
	Centred   *bool `json:"apply_b_dec_to_input"` // true by default
	Normalise any   `json:"normalize_activations"`
	Rescaled  bool  `json:"rescale_acts_by_decoder_norm"`
	Factored  bool  `json:"finetuning_scaling_factor"`

	// of sparsify
	Activation string `json:"activation"`
	Transcode  bool   `json:"transcode"`
	Skip       bool   `json:"skip_connection"`
	EmbedSkip  bool   `json:"embed_skip"`
	Lookup     bool   `json:"gram_lookup"`
	Signed     bool   `json:"signed"`
}

// Read reads the dictionary in a folder. It returns a [*data.Error] for files that are damaged, or that compute something that a model cannot.
func Read(folder string) (*Dictionary, error) {
	path := filepath.Join(folder, ConfigFile)
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s settings
	refused := func(format string, args ...any) (*Dictionary, error) {
		return nil, &data.Error{Path: path, Problem: fmt.Sprintf(format, args...)}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return refused("%v", err)
	}
	file, err := data.ReadTensors(Weights(folder))
	if err != nil {
		return nil, err
	}
	d := &Dictionary{K: int(s.K), File: file.File, tensors: file.ByName, Transcodes: s.Transcode}
	centred := s.Centred == nil || *s.Centred
	switch filepath.Base(file.File.Path) {
	case EleuthFile:
		if s.Skip || s.EmbedSkip || s.Lookup || s.Signed {
			return refused("got skip_connection, embed_skip, gram_lookup or signed = true, want none of these, which a model of layers does not have")
		}
		centred = !s.Transcode
		d.Architecture = s.Activation
		if s.Activation == "" {
			d.Architecture = "topk"
		}
		for to, from := range eleuthNames {
			if t, ok := d.tensors[from]; ok {
				d.tensors[to] = transposed(t)
			}
		}
	default:
		switch d.Architecture = s.Architecture; {
		case d.Architecture == "" || d.Architecture == "standard":
			d.Architecture = "standard"
			if s.Function == "topk" || s.FunctionOld == "topk" { // before version 6
				d.Architecture = "topk"
			} else if f := s.Function + s.FunctionOld; f != "" && f != "relu" {
				return refused("activation_fn: got %q, want relu or topk", f)
			}
		case d.Architecture == "matryoshka_batchtopk":
			d.Architecture = "batchtopk"
		}
		if d.K == 0 {
			d.K = s.FunctionKeys.K
		}
		switch s.Normalise {
		case nil, false, true, "none", "expected_average_only_in": // a factor of the data, which is folded into the tensors or applied before
		default:
			return refused("normalize_activations: got %q, want \"none\": the output is scaled back by numbers of its sample, which no model keeps; "+
				"normalise the activations before, and set this key to \"none\"", s.Normalise)
		}
	}
	if biases[d.Architecture] == nil {
		return refused("architecture: got %q, want one of standard, topk, batchtopk, jumprelu, gated", d.Architecture)
	}
	if strings.HasSuffix(d.Layers(), "= 0 }]") {
		return refused("k: got %v, want the number of active units of a %s dictionary", s.K, d.Architecture)
	}
	if err := d.check(s); err != nil {
		return nil, err
	}
	d.normalise(s, centred)
	return d, nil
}

// check returns an error if a tensor is missing or has another shape. The shape of the encoder gives the sizes that the configuration lacks.
func (d *Dictionary) check(s settings) error {
	if w, ok := d.tensors["W_enc"]; ok && len(w.Shape) == 2 {
		d.Inputs, d.Units = w.Shape[0], w.Shape[1]
	}
	if s.Inputs > 0 {
		d.Inputs = s.Inputs
	}
	if s.Units > 0 {
		d.Units = s.Units
	}
	want := map[string][]int{"W_enc": {d.Inputs, d.Units}, "W_dec": {d.Units, d.Inputs}, "b_dec": {d.Inputs}}
	for name := range biases[d.Architecture] {
		want[name] = []int{d.Units}
	}
	if t, ok := d.tensors["log_threshold"]; ok && want["threshold"] != nil { // in files of trainings
		d.tensors["threshold"] = t
		d.change("threshold", func(_ int, v float64) float64 { return math.Exp(v) })
	}
	if t, ok := d.tensors["topk_threshold"]; ok && len(t.Data) == 1 {
		d.tensors["topk_threshold"] = data.Tensor{Shape: []int{1}, Data: t.Data}
	}
	if want["topk_threshold"] != nil {
		want["topk_threshold"] = []int{1}
	}
	if s.Factored {
		want["finetuning_scaling_factor"] = []int{d.Units}
	}
	var problems []string
	for name, shape := range want {
		t, ok := d.tensors[name]
		if other := eleuthNames[name]; other != "" && filepath.Base(d.File.Path) == EleuthFile {
			name, t, shape = other, d.tensors[other], transposed(data.Tensor{Shape: shape}).Shape
		}
		if !ok {
			problems = append(problems, name+" is missing")
		} else if !slices.Equal(t.Shape, shape) {
			problems = append(problems, fmt.Sprintf("%s has shape %v, want %v", name, t.Shape, shape))
		}
	}
	if problems == nil {
		return nil
	}
	slices.Sort(problems)
	return &data.Error{Path: d.File.Path, Problem: fmt.Sprintf("does not match %s, a %s dictionary: %s", ConfigFile, d.Architecture, strings.Join(problems, "; "))}
}
