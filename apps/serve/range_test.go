package serve

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A model of values from 0 to 255 accepts such values but rejects pixels, because pixels are divided by 255.
func TestAModelOfOtherValuesThanPixelsRefusesPixels(t *testing.T) {
	values := images(40, 5)
	for i := range values {
		values[i] *= 255
	}
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "images.npy"), filepath.Join(dir, "run")
	fatal.If(t, data.WriteImages(file, []int{8, 8}, values))
	trainRun(t, folder, fmt.Sprintf("[model.m]\ndataset = { name = \"npy\", images = %q, scale = \"minmax\" }\n"+
		"encoder = [{ kind = \"dense\", units = 10, activation = \"sigmoid\" }]\n", file))
	s, err := New([]Model{{Folder: folder}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	x := values[:2*64]
	want, err := run.Encode(x)
	fatal.If(t, err)
	asked := `,"outputs":[{"name":"code"}]`
	if got := post(s, "/v2/models/run/infer", jsonRequest(x, asked)).reply(t); !sameBits(got.Outputs[0].Data, want) {
		t.Error("FP32: other codes than those of Run.Encode")
	}
	const uint8JSON = `{"inputs":[{"name":"input","shape":[1,64],"datatype":"UINT8","parameters":{"binary_data_size":64}}]}`
	var picture bytes.Buffer
	fatal.If(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 8, 8))))
	for name, a := range map[string]answer{
		"UINT8":      post(s, "/v2/models/run/infer", append([]byte(uint8JSON), make([]byte, 64)...), headerLength+": "+itoa(len(uint8JSON))),
		"picture":    post(s, "/v2/models/run/image", picture.Bytes()),
		"PNG wanted": post(s, "/v2/models/run/image", picture.Bytes(), "Accept: image/png"),
	} {
		expect.Equal(t, a.status, http.StatusBadRequest, name, "status")
		expect.Contains(t, string(a.body), "outside of [0,1]", name, "status")
	}
}

// Values from 0 to 255 in FP32, for a model of values in [0,1], are logged once, as predict warns of them.
func TestValuesOutsideOfTheTrainingAreLogged(t *testing.T) {
	var log []string
	s, err := New([]Model{{Folder: smallRun(t)}}, Options{Workers: 1, Log: func(text string) { log = append(log, text) }})
	fatal.If(t, err)
	defer s.Close()
	x := images(1, 5)
	if post(s, "/v2/models/small/infer", jsonRequest(x, "")); len(log) > 0 {
		t.Fatalf("values of the training: got the log %q", log)
	}
	for i := range x {
		x[i] *= 255
	}
	for range 2 {
		if a := post(s, "/v2/models/small/infer", jsonRequest(x, "")); a.status != http.StatusOK {
			t.Fatalf("got the status %d, %s", a.status, a.body)
		}
	}
	if len(log) != 1 || !strings.Contains(log[0], "the range of the training: save them as uint8, or divide them by 255") {
		t.Errorf("got the log %q, want one warning", log)
	}
}
