package serve

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
)

// The models NAME.sample and NAME.traverse answer with the images of tessera.Run.
func TestModelsMakeImages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "vae")
	trainRun(t, folder, `[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "gaussian", units = 3 }]
loss = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.01 }]`)
	s, err := New([]Model{{Folder: folder}, {Folder: smallRun(t)}}, Options{Generate: true, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, want := s.Models(), []string{"vae", "vae.sample", "vae.traverse", "small", "small.sample", "small.traverse"}; !slices.Equal(got, want) {
		t.Fatalf("models: got %q, want %q", got, want)
	}
	run, err := tessera.Open(folder, tessera.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var want []float32
	for _, seed := range []uint64{7, 8} {
		image, err := run.Draw(t.Context(), 1, seed)
		if err != nil {
			t.Fatal(err)
		}
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

	traversed, err := run.Traverse(t.Context(), tessera.Traversal{Units: []int{2, 0}, Steps: 3})
	if err != nil {
		t.Fatal(err)
	}
	same("vae.traverse", `{"name":"unit","shape":[4,1],"datatype":"INT64","data":[2,2,2,0]},{"name":"position","shape":[4,1],"datatype":"FP32","data":[0,0.5,1,0]}`,
		traversed.Images[:4*64])

	for _, bad := range []struct{ model, inputs, want string }{
		{"vae.sample", `{"name":"seed","shape":[1,1],"datatype":"INT64","data":[-1]}`, "want 0 to"},
		{"vae.sample", `{"name":"seed","shape":[1,1],"datatype":"FP32","data":[0.5]}`, "whole number"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[3]},{"name":"position","shape":[1,1],"datatype":"FP32","data":[0]}`, "want 0 to 2"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[0]},{"name":"position","shape":[1,1],"datatype":"FP32","data":[1.5]}`, "want 0 to 1"},
		{"vae.traverse", `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[0]}`, "position"},
	} {
		if a := post(s, "/v2/models/"+bad.model+"/infer", []byte(`{"inputs":[`+bad.inputs+`]}`)); a.status != http.StatusBadRequest || !strings.Contains(string(a.body), bad.want) {
			t.Errorf("%s: got %d %s, want 400 and %q", bad.inputs, a.status, a.body, bad.want)
		}
	}
	trainRun(t, folder+"-blind", `[model.m]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
view    = [{ augment = ["flip"] }]
loss    = [{ kind = "nt_xent", on = "code" }]`)
	if s, err := New([]Model{{Folder: folder + "-blind"}}, Options{Generate: true}); err == nil || !strings.Contains(fmt.Sprint(err), "no decoder") {
		t.Errorf("a run without a decoder: got %v, want an error", err)
		_ = s.Close()
	}
}
