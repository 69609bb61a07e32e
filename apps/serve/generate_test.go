package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/classical/generate"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The models NAME.sample and NAME.traverse answer with the images of tessera.Run.
func TestModelsMakeImages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "vae")
	trainRun(t, folder, `[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "gaussian", units = 3 }]
loss = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.01 }]`)
	vq := filepath.Join(filepath.Dir(folder), "vq")
	trainRun(t, vq, `[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 4 }, { kind = "reshape", shape = [2, 2] }, { kind = "vq", entries = 5 }]
loss = [{ kind = "mse" }, { kind = "commitment", weight = 0.25 }]`)
	s, err := New([]Model{{Folder: folder}, {Folder: vq}, {Folder: smallRun(t)}}, Options{Generate: true, Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	if got, want := s.Models(), []string{"vae", "vae.sample", "vae.traverse", "vq", "vq.sample", "vq.traverse", "small", "small.sample", "small.traverse"}; !slices.Equal(got, want) {
		t.Fatalf("models: got %q, want %q", got, want)
	}
	run, err := tessera.Open(folder, tessera.Options{})
	fatal.If(t, err)
	defer run.Close()
	var want []float32
	for _, seed := range []uint64{7, 8} {
		image, err := generate.New(run).Draw(t.Context(), 1, seed)
		fatal.If(t, err)
		want = append(want, image...)
	}
	same := func(model, inputs string, want []float32) {
		t.Helper()
		got := post(s, "/v2/models/"+model+"/infer", []byte(`{"inputs":[`+inputs+`]}`)).reply(t)
		if len(got.Outputs) != 1 || got.Outputs[0].Name != "output" || !slices.Equal(got.Outputs[0].Data, want) {
			t.Errorf("%s: got %d outputs, or other values", model, len(got.Outputs))
		}
	}
	same("vae.sample", `{"name":"seed","shape":[2,1],"datatype":"INT64","data":[7,8]}`, want)
	books, err := tessera.Open(vq, tessera.Options{})
	fatal.If(t, err)
	defer books.Close()
	if want, err = generate.New(books).DrawFromIndices(t.Context(), 1, 7); err != nil {
		t.Fatal(err)
	}
	same("vq.sample", `{"name":"seed","shape":[1,1],"datatype":"INT64","data":[7]}`, want)

	traversed, err := generate.New(run).Traverse(t.Context(), generate.Traversal{Units: []int{2, 0}, Steps: 3})
	fatal.If(t, err)
	same("vae.traverse", `{"name":"unit","shape":[4,1],"datatype":"INT64","data":[2,2,2,0]},{"name":"position","shape":[4,1],"datatype":"FP32","data":[0,0.5,1,0]}`,
		traversed.Images[:4*64])

	for _, bad := range []struct{ model, inputs, want string }{
		{"vae.sample", `{"name":"seed","shape":[1,1],"datatype":"INT64","data":[-1]}`, "got -1, want a whole number from 0 to 16777215"},
		{"vae.sample", `{"name":"seed","shape":[1,1],"datatype":"INT64","data":[16777216]}`, "got 16777216,"},
		{"vae.sample", `{"name":"seed","shape":[1,1],"datatype":"FP32","data":[7.5]}`, "got 7.5, want a whole number from 0 to 16777215"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[3]},{"name":"position","shape":[1,1],"datatype":"FP32","data":[0]}`, "got 3, want a whole number from 0 to 2"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[0]},{"name":"position","shape":[1,1],"datatype":"FP32","data":[1.5]}`, "want 0 to 1"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[0]}`, "position"},
	} {
		if a := post(s, "/v2/models/"+bad.model+"/infer", []byte(`{"inputs":[`+bad.inputs+`]}`)); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), bad.want) {
			t.Errorf("%s: got %d %s, want 400 and %q", bad.inputs, a.status, a.body, bad.want)
		}
	}
}

// A run of which only some images can be made serves these, and its metadata say why the others are missing.
func TestModelsThatCannotMakeAllImages(t *testing.T) {
	dir := t.TempDir()
	get := func(s *Server, path string) answer { return send(s, http.MethodGet, path, nil) }
	trainRun(t, filepath.Join(dir, "diffusion"), `[model.m]
dataset      = { name = "bars", count = 40 }
column.level = { kind = "uniform" }
column.noise = { kind = "normal", like = "images" }
encoder      = [{ kind = "diffuse", steps = 4 }, { kind = "dense", units = 6, activation = "tanh" }, { kind = "condition", by = "time" }]
head.time    = { from = "level", layers = [{ kind = "sinusoidal", units = 4 }, { kind = "dense", units = 6 }] }
decoder      = [{ kind = "dense", from = ["code", "encoder.1"] }]
loss         = [{ kind = "mse", against = "noise" }]`)
	file := filepath.Join(dir, "rows.csv")
	fatal.If(t, os.WriteFile(file, []byte("a,b\n"+strings.Repeat("0,1\n0.5,0.5\n", 20)), 0o600))
	small := fmt.Sprintf("[model.m]\ndataset = { name = \"csv\", file = %q }\nencoder = [{ kind = \"dense\", units = 3 }]\n", file)
	trainRun(t, filepath.Join(dir, "blind"), small+"decoder = []\nloss = [{ kind = \"l1\" }]")
	var log []string
	s, err := New([]Model{{Folder: filepath.Join(dir, "diffusion")}, {Folder: filepath.Join(dir, "blind")}, {Folder: smallRun(t)}},
		Options{Generate: true, Workers: 1, Log: func(text string) { log = append(log, text) }})
	fatal.If(t, err)
	defer s.Close()
	if got, want := s.Models(), []string{"diffusion", "diffusion.sample", "blind", "small", "small.sample", "small.traverse"}; !slices.Equal(got, want) {
		t.Fatalf("models: got %q, want %q", got, want)
	}
	run, err := tessera.Open(filepath.Join(dir, "diffusion"), tessera.Options{})
	fatal.If(t, err)
	defer run.Close()
	want, err := generate.New(run).Draw(t.Context(), 1, 7)
	fatal.If(t, err)
	got := post(s, "/v2/models/diffusion.sample/infer", []byte(`{"inputs":[{"name":"seed","shape":[1,1],"datatype":"INT64","data":[7]}]}`)).reply(t)
	if len(got.Outputs) != 1 || !slices.Equal(got.Outputs[0].Data, want) {
		t.Error("diffusion.sample: other values than those of its sampler")
	}
	reasons := map[string]string{"diffusion.traverse": "decoder", "blind.sample": "no decoder", "blind.traverse": "no decoder"}
	for _, of := range []string{"diffusion", "blind", "small", "diffusion.sample"} {
		var metadata struct {
			NotServed map[string]string `json:"not_served"`
		}
		fatal.If(t, json.Unmarshal(get(s, "/v2/models/"+of).body, &metadata))
		for name, reason := range metadata.NotServed {
			if want, ok := reasons[name]; !ok || !strings.HasPrefix(name, of+".") || !strings.Contains(reason, want) ||
				strings.Contains(reason, "run ") || strings.Contains(reason, dir) || strings.Contains(reason, "no distribution") { // one reason, no path
				t.Errorf("%s: not_served has %s: %q", of, name, reason)
			}
			if !slices.ContainsFunc(log, func(line string) bool { return strings.Contains(line, name) && strings.Contains(line, reason) }) {
				t.Errorf("the log does not mention %s: %q", name, log)
			}
			delete(reasons, name)
		}
	}
	if len(reasons) > 0 || len(log) != 3 {
		t.Errorf("metadata without %v; log %q", reasons, log)
	}
	expect.Equal(t, get(s, "/v2/models/diffusion.traverse").status, http.StatusNotFound, "diffusion.traverse: status")
	if body := string(get(s, "/metrics").body); strings.Contains(body, `"diffusion.traverse"`) {
		t.Error("/metrics has a model that is not served")
	}

	fatal.If(t, os.RemoveAll(filepath.Join(dir, "blind")))
	trainRun(t, filepath.Join(dir, "blind"), small)
	if err := os.Remove(file); err != nil { // no mixture of codes is fitted for the metadata
		t.Fatal(err)
	}
	if news, err := s.reload(s.byName["blind"]); err != nil || news == "" {
		t.Fatalf("got %q, %v, want another version", news, err)
	}
	served := "version " + s.byName["blind"].current.version
	if body := string(get(s, "/v2/models/blind").body); strings.Count(body, served+" can make it: start the server again") != 2 || strings.Contains(body, "no decoder") {
		t.Errorf("the metadata of the new version are %s", body)
	}
}

// Images that are missing are an error: with them the server would make all images.
func TestModelsNeedImagesToMakeThem(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "rows.csv"), filepath.Join(dir, "ae")
	fatal.If(t, os.WriteFile(file, []byte("a,b\n"+strings.Repeat("0,1\n0.5,0.5\n", 20)), 0o600))
	trainRun(t, folder, fmt.Sprintf("[model.m]\ndataset = { name = \"csv\", file = %q }\nencoder = [{ kind = \"dense\", units = 3 }]", file))
	fatal.If(t, os.Remove(file))
	if _, err := New([]Model{{Folder: folder}}, Options{Generate: true}); !errors.As(err, new(*data.Error)) {
		t.Errorf("got %v, want an error of the data", err)
	}
}
