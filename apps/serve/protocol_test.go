package serve

import (
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestServerAndModelDescribeThemselves(t *testing.T) {
	s := newServer(t, Options{})
	version := s.models[0].current.version
	for path, want := range map[string]string{
		"/v2":                                  `{"extensions":["binary_tensor_data","generate"],"models":"/v2/models","name":"tessera","openapi":"/openapi.json","version":"`,
		"/v2/":                                 `{"extensions":["binary_tensor_data","generate"],"models":"/v2/models","name":"tessera","openapi":"/openapi.json","version":"`,
		"/":                                    `"models":"/v2/models"`,
		"/v2/models":                           `{"models":[{"name":"small","version":"` + version + `"}]}`,
		"/v2/health/live":                      `{"live":true}`,
		"/v2/health/ready":                     `{"live":true,"ready":true}`,
		"/v2/models/small/ready":               `{"name":"small","ready":true}`,
		"/v2/models/small/versions/" + version: `"versions":["` + version + `"],"platform":"tessera"`,
		"/v2/models/small/versions/" + version + "/ready": `{"name":"small","ready":true}`,
		"/v2/models/small": `"inputs":[{"name":"input","datatype":"FP32","shape":[-1,8,8]}],"outputs":[{"name":"code","datatype":"FP32","shape":[-1,10]},{"name":"output","datatype":"FP32","shape":[-1,8,8]},{"name":"side","datatype":"FP32","shape":[-1,3]}]`,
		"/openapi.json":    `"openapi": "3.1.0"`,
		"/metrics":         `tessera_queue_images 0`,
	} {
		if a := send(s, http.MethodGet, path, nil); a.status != http.StatusOK || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: status %d: %s\nwant %s", path, a.status, a.body, want)
		}
	}
}

func TestOutputsHaveTheBitsOfAnEncoder(t *testing.T) {
	s := newServer(t, Options{})
	x := images(3, 1)
	for _, more := range []string{"", `,"outputs":[{"name":"side"},{"name":"code"}]`} {
		got := post(s, "/v2/models/small/infer", jsonRequest(x, more)).reply(t)
		want := []string{"code", "output", "side"}
		if more != "" {
			want = []string{"side", "code"}
		}
		if len(got.Outputs) != len(want) || got.Model != "small" || got.Version != s.models[0].current.version || got.ID != nil {
			t.Fatalf("got %+v", got)
		}
		for i, o := range got.Outputs {
			if o.Name != want[i] || o.Datatype != "FP32" || !sameBits(o.Data, valuesOf(t, want[i], x)) || o.Shape[0] != 3 {
				t.Errorf("output %q: got %+v", want[i], o)
			}
		}
	}
}

func TestAnIDIsReturned(t *testing.T) {
	s := newServer(t, Options{})
	for _, id := range []string{"42", "", `a "quoted" <é>\`} {
		quoted, _ := json.Marshal(id)
		got := post(s, "/v2/models/small/infer", jsonRequest(images(1, 1), `,"id":`+string(quoted))).reply(t)
		if got.ID == nil || *got.ID != id {
			t.Errorf("got %v, want %q", got.ID, id)
		}
	}
}

// binaryOutputs returns the binary outputs of a response by name.
func binaryOutputs(t *testing.T, a answer) map[string][]float32 {
	t.Helper()
	r := a.reply(t)
	var n int
	fatal.If(t, json.Unmarshal([]byte(a.header.Get(headerLength)), &n), "no", headerLength, a.header)
	rest, outputs := a.body[n:], map[string][]float32{}
	for _, o := range r.Outputs {
		if size, binary := o.Parameters["binary_data_size"]; binary {
			outputs[o.Name] = fromBinary(nil, rest[:size], typeFP32)
			rest = rest[size:]
		} else {
			outputs[o.Name] = o.Data
		}
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are left", len(rest))
	}
	return outputs
}

func TestBinaryDataInAndOut(t *testing.T) {
	s := newServer(t, Options{})
	x := images(2, 2)
	for name, more := range map[string]string{
		"all":          `,"parameters":{"binary_data_output":true}`,
		"each":         `,"outputs":[{"name":"code","parameters":{"binary_data":true}},{"name":"output","parameters":{"binary_data":true}},{"name":"side","parameters":{"binary_data":true}}]`,
		"all but one":  `,"parameters":{"binary_data_output":true,"other":[1]},"outputs":[{"name":"code"},{"name":"output","parameters":{"binary_data":false}},{"name":"side"}]`,
		"only the one": `,"outputs":[{"name":"side","parameters":{"binary_data":true}},{"name":"output"},{"name":"code"}]`,
	} {
		body, header := binaryRequest(x, more)
		a := post(s, "/v2/models/small/infer", body, headerLength+": "+header)
		expect.Equal(t, a.header.Get("Content-Type"), "application/octet-stream", name, a.header)
		outputs := binaryOutputs(t, a)
		for _, o := range []string{"code", "output", "side"} {
			if !sameBits(outputs[o], valuesOf(t, o, x)) {
				t.Errorf("%s: output %q differs", name, o)
			}
		}
	}
	raw := appendBinary(nil, x)
	if got := binaryOutputs(t, post(s, "/v2/models/small/infer", raw, headerLength+": 0")); !sameBits(got["side"], valuesOf(t, "side", x)) {
		t.Error("a raw binary request has other outputs")
	}
	body, header := binaryRequest(x, "")
	if a := post(s, "/v2/models/small/infer", body, headerLength+": "+header); a.header.Get(headerLength) != "" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("nothing binary was asked for: %v", a.header)
	}
}

func TestPixelsAndDoublesAreConverted(t *testing.T) {
	s := newServer(t, Options{})
	pixels := make([]byte, 64)
	var numbers []float32
	for i := range pixels {
		pixels[i] = byte(i * 4)
		numbers = append(numbers, float32(i*4))
	}
	scaled := fromBinary(nil, pixels, typeUINT8)
	expect.Equal(t, scaled[63], float32(252)/255)
	want := valuesOf(t, "code", scaled)
	asJSON := []byte(`{"inputs":[{"data":` + string(numbersIn(numbers)) + `,"name":"input","shape":[1,64],"datatype":"UINT8"}]}`)
	if got := post(s, "/v2/models/small/infer", asJSON).reply(t); !sameBits(got.Outputs[0].Data, want) {
		t.Error("UINT8 in JSON: other codes")
	}
	head := `{"inputs":[{"name":"input","shape":[1,64],"datatype":"UINT8","parameters":{"binary_data_size":64}}]}`
	if got := post(s, "/v2/models/small/infer", append([]byte(head), pixels...), headerLength+": "+itoa(len(head))).reply(t); !sameBits(got.Outputs[0].Data, want) {
		t.Error("UINT8 in binary: other codes")
	}
	head = `{"inputs":[{"name":"input","shape":[1,64],"datatype":"FP64","parameters":{"binary_data_size":512}}]}`
	body := []byte(head)
	for _, v := range scaled {
		body = leUint64(body, math.Float64bits(float64(v)))
	}
	if got := post(s, "/v2/models/small/infer", body, headerLength+": "+itoa(len(head))).reply(t); !sameBits(got.Outputs[0].Data, want) {
		t.Error("FP64 in binary: other codes")
	}
}

func TestDataMayBeNestedByDimension(t *testing.T) {
	s := newServer(t, Options{})
	x := images(2, 5)
	rows := lists.Of(16, func(i int) string { return string(numbersIn(x[8*i : 8*i+8])) })
	data := "[[" + strings.Join(rows[:8], ",") + "] , [" + strings.Join(rows[8:], " , ") + "]]"
	body := `{"inputs":[{"name":"input","shape":[2,8,8],"datatype":"FP32","data":` + data + `}],"outputs":[{"name":"code"}]}`
	if got := post(s, "/v2/models/small/infer", []byte(body)).reply(t); !sameBits(got.Outputs[0].Data, valuesOf(t, "code", x)) {
		t.Error("nested data have other codes")
	}
	flat := strings.Replace(body, "[2,8,8]", "[2,64]", 1)
	if a := post(s, "/v2/models/small/infer", []byte(flat)); a.status != http.StatusBadRequest {
		t.Errorf("nested data of another shape: status %d: %s", a.status, a.body)
	}
}

func TestServersHaveSeveralModels(t *testing.T) {
	s, err := New([]Model{{Folder: smallRun(t)}, {Name: "again", Folder: smallRun(t)}}, Options{Workers: 1, MaxBatch: 1})
	fatal.If(t, err)
	defer s.Close()
	expect.Slice(t, s.Models(), []string{"small", "again"})
	expect.Equal(t, post(s, "/v2/models/again/infer", jsonRequest(images(1, 1), "")).reply(t).Model, "again")
	for _, models := range [][]Model{nil, {{}}, {{Folder: "."}, {Folder: "."}}, {{Name: "a/b", Folder: smallRun(t)}},
		{{Folder: smallRun(t)}, {Folder: smallRun(t)}}, {{Folder: t.TempDir()}}} {
		if s, err := New(models, Options{}); err == nil {
			s.Close()
			t.Errorf("%v: no error", models)
		}
	}
	expect.AnyError(t, expect.Err(New([]Model{{Folder: smallRun(t)}}, Options{MaxBatch: -1})), "MaxBatch -1")
}
