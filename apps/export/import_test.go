package export_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/export"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/sae"
	"tessera/internal/train/torch"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// imported returns the run of a model with its initial parameters.
func imported(t *testing.T, text string) (*export.Run, error) {
	t.Helper()
	f, err := config.Load("models.toml", []byte("[model.own]\ntrain = { epochs = 0 }\n"+text))
	fatal.If(t, err)
	m, err := f.Model("own")
	fatal.If(t, err)
	folder := filepath.Join(t.TempDir(), "own")
	run, err := tessera.Train(t.Context(), m, tessera.Options{Out: folder, Threads: 1})
	if err != nil {
		return nil, err
	}
	fatal.If(t, run.Close())
	r, err := export.Open(folder)
	fatal.If(t, err)
	return r, nil
}

// agrees reports values of a run, of the samples of one file, that differ from those of another file by more than a fraction of the largest.
func agrees(t *testing.T, r *export.Run, name, samples, want string, most float64) {
	t.Helper()
	rows := read(t, samples, r.Shape())
	wanted := read(t, want, nil)
	threads := team.New(1)
	defer threads.Close()
	got, err := r.Coder(engine.Backend{Team: threads}).(metrics.ValueCoder).Value(name, rows.Float32())
	fatal.If(t, err)
	low, high := wanted.Range()
	if d := difference(got, wanted.Float32()) / max(1, float64(high), -float64(low)); !(d <= most) {
		t.Errorf("%s of %s differs by %g", name, want, d)
	}
}

func read(t *testing.T, path string, shape []int) *data.Images {
	t.Helper()
	m, err := data.ReadImages(t.Context(), path, shape)
	fatal.If(t, err)
	return m
}

// python runs a script of testdata that writes into a new folder, which it returns.
func python(t *testing.T, module, script string) string {
	t.Helper()
	folder := t.TempDir()
	if text, err := exec.Command(pythonWith(t, module), filepath.Join("testdata", script), folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return folder
}

// A dictionary of SAELens or sparsify computes what NumPy computes by the formulas of these programs, also after it was exported and read again.
func TestDictionariesOfOtherProgramsAreReadAndWritten(t *testing.T) {
	folder := python(t, "numpy", "dictionaries.py")
	samples := filepath.Join(folder, "samples.npy")
	declared := func(place string) string {
		d, err := sae.Read(place)
		fatal.If(t, err)
		return "dataset = { file = " + table.StringText(samples) + " }\nencoder = " + d.Layers() + "\nloss = " + d.Losses() + "\nstart = { run = " + table.StringText(place) + " }\n"
	}
	for _, name := range []string{"standard", "half", "tuned", "old_topk", "topk", "jumprelu", "batchtopk", "gated", "eleuth_topk", "eleuth_groupmax"} {
		t.Run(name, func(t *testing.T) {
			place := filepath.Join(folder, name)
			format := "saelens"
			if strings.HasPrefix(name, "eleuth") {
				format = "sparsify"
			}
			first, err := imported(t, declared(place))
			fatal.If(t, err)
			again := t.TempDir()
			f, _, err := export.Choose(first, format, "")
			fatal.If(t, err)
			for i, part := range f.Parts(first) {
				fatal.If(t, os.WriteFile(filepath.Join(again, f.Folder[i]), written(t, first, format, part), 0o666))
			}
			second, err := imported(t, declared(again))
			fatal.If(t, err)
			for _, r := range []*export.Run{first, second} {
				agrees(t, r, losses.Code, samples, filepath.Join(place, "codes.npy"), 1e-6)
				agrees(t, r, losses.Output, samples, filepath.Join(place, "outputs.npy"), 1e-6)
			}
			if format == "saelens" && name != "batchtopk" && !reflect.DeepEqual(first.Parameters, second.Parameters) {
				t.Error("the parameters have changed on the way")
			}
		})
	}
}

// Trained modules of PyTorch are imported by the names of their parameters.
func TestModulesOfPyTorchAreImported(t *testing.T) {
	folder := python(t, "torch", "modules.py")
	at := func(name string) string { return filepath.Join(folder, name) }
	for name, c := range map[string]struct{ samples, encoder, names string }{
		"perceptron": {"tokens.npy", `[{ kind = "dense", units = 12 }, { kind = "layer_norm" }, { kind = "relu" }, { kind = "dense", units = 4 }]`,
			`{ "encoder.0" = "fc1", "encoder.1" = "norm", "encoder.3" = "fc2" }`},
		"convolutional": {"pictures.npy", `[{ kind = "conv2d", filters = 6, kernel = 3 }, { kind = "batch_norm", epsilon = 1e-5 }, { kind = "relu" },
			{ kind = "conv2d", filters = 4, kernel = 2, stride = 2, activation = "relu" }, { kind = "dense", units = 7 }, { kind = "batch_norm", epsilon = 1e-5 }]`,
			`{ "encoder" = "", "encoder.4" = "6", "encoder.5" = "7" }`},
		"transformer": {"tokens.npy", `[{ kind = "transformer", heads = 2, ratio = 2, activation = "gelu" }]`,
			`{ "encoder.0" = "", "encoder.0.attention" = "self_attn", "encoder.0.hidden" = "linear1", "encoder.0.output" = "linear2" }`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := imported(t, "dataset = { name = \"npy\", images = "+table.StringText(at(c.samples))+" }\ndecoder = [{ kind = \"dense\" }]\nencoder = "+c.encoder+
				"\nstart = { file = "+table.StringText(at(name+".safetensors"))+", on = \"encoder.*\", names = "+c.names+" }\n")
			fatal.If(t, err)
			agrees(t, r, losses.Code, at(c.samples), at(name+".npy"), tolerance)
		})
	}
}

// Every layer gets back the parameters that were exported in PyTorch's layouts, and only those that are wanted.
func TestParametersOfEveryLayerComeBackFromPyTorchsLayouts(t *testing.T) {
	for _, kind := range layers.Registry.Names() {
		list := settings[kind]
		if list == nil {
			list = []string{""}
		}
		for _, keys := range list {
			r := oneLayer(t, kind, keys)
			tensors, err := torch.Tensors(r.Model)
			if err != nil && (kind == "first_tokens" || kind == "zz_halves") { // after a flatten of channels
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			file := map[string]data.Tensor{}
			for _, t := range tensors {
				file[t.Name] = data.Tensor{Shape: t.Shape, Data: t.Data}
			}
			constant := func(path string) bool {
				return strings.HasSuffix(path, ".cosines") || strings.HasSuffix(path, ".sines")
			}
			m := r.Model.Twin()
			for _, p := range m.Parameters {
				if !constant(p.Path) {
					clear(p.Data)
				}
			}
			fill := func(wanted string) {
				problems, err := torch.Fill(m, func(path string) bool { return config.MatchPath(wanted, path) }, func(name string) string { return name }, file)
				if err != nil || problems != nil {
					t.Errorf("%s %s: %v, %v", kind, keys, problems, err)
				}
			}
			fill("none")
			for _, p := range m.Parameters {
				if slices.ContainsFunc(p.Data, func(v float32) bool { return v != 0 }) && !constant(p.Path) {
					t.Errorf("%s %s: %s was not wanted", kind, keys, p.Path)
				}
			}
			fill("*")
			for i, p := range m.Parameters {
				expect.Slice(t, p.Data, r.Model.Parameters[i].Data, kind, keys, p.Path)
			}
		}
	}
}

// What cannot be imported is refused, with what is wrong and what is wanted.
func TestWrongImportsAreRefused(t *testing.T) {
	r := trained(t, "batch-topk", "train.epochs=1", "dataset.count=500")
	dictionary := func(t *testing.T, cfg string, drop string) string {
		place := t.TempDir()
		d, err := sae.Of(r.Model, nil)
		fatal.If(t, err)
		_, tensors, err := d.Lens()
		fatal.If(t, err)
		tensors = slices.DeleteFunc(tensors, func(c checkpoint.Tensor) bool { return c.Name == drop })
		b, err := checkpoint.Encode(&checkpoint.File{Tensors: tensors}, nil)
		fatal.If(t, err)
		for name, text := range map[string][]byte{sae.LensFile: b, sae.ConfigFile: []byte(cfg)} {
			fatal.If(t, os.WriteFile(filepath.Join(place, name), text, 0o666))
		}
		return place
	}
	for cfg, want := range map[string]string{
		`{"architecture": "jumprelu"}`:                                        "",
		`{"architecture": "jumprelu", "d_sae": 7}`:                            "W_enc has shape [64 256], want [64 7]",
		`{"architecture": "gated"}`:                                           "b_gate is missing; b_mag is missing; r_mag is missing",
		`{"architecture": "temporal"}`:                                        `architecture: got "temporal", want one of standard`,
		`{"architecture": "topk"}`:                                            "k: got 0, want the number",
		`{"architecture": "standard", "activation_fn_str": "tanh-relu"}`:      `activation_fn: got "tanh-relu"`,
		`{"architecture": "jumprelu", "normalize_activations": "layer_norm"}`: "normalize_activations: got \"layer_norm\"",
		`{"architecture": 3}`:                                                 "cannot unmarshal",
		`{"architecture": "jumprelu", "finetuning_scaling_factor": true}`:     "finetuning_scaling_factor is missing",
	} {
		if _, err := sae.Read(dictionary(t, cfg, "")); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", cfg, err, want)
		}
	}
	expect.Error(t, expect.Err(sae.Read(dictionary(t, `{"architecture": "jumprelu"}`, "W_dec"))), "W_dec is missing", "without atoms")

	exported := filepath.Join(t.TempDir(), "exported.safetensors")
	fatal.If(t, os.WriteFile(exported, written(t, r, "safetensors", ""), 0o666))
	for keys, want := range map[string]string{
		"file = " + table.StringText(exported):                                             "",
		"file = " + table.StringText(exported) + `, names = { "encoder.0" = "a" }`:         "a.weight is missing (for encoder.0.weight)",
		"file = " + table.StringText(exported) + `, names = { "encoder.0" = "decoder.0" }`: "decoder.0.weight has shape [64 256], want [256 64] (for encoder.0.weight)",
		"file = " + table.StringText(r.Trained.Path):                                       "has parameters in the layouts of a run",
		`file = "none.safetensors"`:                                                        "none.safetensors",
		"run = " + table.StringText(dictionary(t, `{"architecture": "temporal"}`, "")):     "architecture",
	} {
		_, err := imported(t, "dataset = { name = \"superposition\", count = 500 }\nencoder = [{ kind = \"dense\", units = 256 }]\ndecoder = [{ kind = \"dense\" }]\nstart = { "+keys+" }\n")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", keys, err, want)
		}
	}

	for _, c := range [][3]string{
		{"saelens", `{ kind = "dense", units = 5 }`, "relu"},
		{"saelens", `{ kind = "dense", units = 5, activation = "relu" }, { kind = "dense", units = 5 }`, "encoder.1, a layer dense"},
		{"saelens", `{ kind = "dense", units = 6, activation = "relu" }, { kind = "group_max", groups = 2 }`, "sparsify"},
		{"sparsify", `{ kind = "dense", units = 6, activation = "relu" }`, "saelens"},
		{"saelens", `{ kind = "conv2d", filters = 3 }`, "encoder.0, a layer conv2d"},
	} {
		expect.Error(t, export.Write(io.Discard, layered(t, "own", c[1], `{ kind = "dense" }`), c[0], ""), c[2], c[0], "of", c[1])
	}
}
