package serve_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"tessera"
	"tessera/apps/serve"
	"tessera/config"
	"tessera/internal/fatal"
)

// client is a client of the protocol. It is written only from the specification:
// https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md, and the binary tensor data
// extension of Triton. It shares no code with the server.
type client struct {
	*testing.T
	url string
}

type (
	tensorMetadata struct {
		Name     string  `json:"name"`
		Datatype string  `json:"datatype"`
		Shape    []int64 `json:"shape"`
	}
	modelMetadata struct {
		Name     string           `json:"name"`
		Versions []string         `json:"versions"`
		Platform string           `json:"platform"`
		Inputs   []tensorMetadata `json:"inputs"`
		Outputs  []tensorMetadata `json:"outputs"`
	}
	tensor struct {
		Name       string         `json:"name"`
		Shape      []int64        `json:"shape,omitempty"`
		Datatype   string         `json:"datatype,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Data       []float64      `json:"data,omitempty"`
	}
	inferenceRequest struct {
		ID         string         `json:"id,omitempty"`
		Parameters map[string]any `json:"parameters,omitempty"`
		Inputs     []tensor       `json:"inputs"`
		Outputs    []tensor       `json:"outputs,omitempty"`
	}
	inferenceResponse struct {
		ModelName    string   `json:"model_name"`
		ModelVersion string   `json:"model_version"`
		ID           string   `json:"id"`
		Outputs      []tensor `json:"outputs"`
		Error        string   `json:"error"`
	}
)

// call exchanges one request; it returns the status, the header and the body.
func (c *client) call(method, path string, body []byte, jsonLength int) (int, http.Header, []byte) {
	c.Helper()
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	fatal.If(c, err)
	r.Header.Set("Content-Type", "application/json")
	if jsonLength >= 0 {
		r.Header.Set("Content-Type", "application/octet-stream")
		r.Header.Set("Inference-Header-Content-Length", strconv.Itoa(jsonLength))
	}
	answer, err := http.DefaultClient.Do(r)
	fatal.If(c, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	fatal.If(c, err)
	return answer.StatusCode, answer.Header, b
}

// get decodes the response to a GET request.
func (c *client) get(path string, into any) int {
	c.Helper()
	status, _, b := c.call(http.MethodGet, path, nil, -1)
	if err := json.Unmarshal(b, into); err != nil {
		c.Fatalf("%s: %v: %s", path, err, b)
	}
	return status
}

// infer sends a request and reads outputs of either encoding. If asBinary is true, the input is sent as binary data.
func (c *client) infer(model string, q inferenceRequest, asBinary bool) (int, inferenceResponse) {
	c.Helper()
	var data []byte
	if asBinary {
		for i := range q.Inputs {
			n := len(data)
			for _, v := range q.Inputs[i].Data {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
			}
			q.Inputs[i].Data = nil
			q.Inputs[i].Parameters = map[string]any{"binary_data_size": len(data) - n}
		}
	}
	head, err := json.Marshal(q)
	fatal.If(c, err)
	length := -1
	if asBinary {
		length = len(head)
	}
	status, header, b := c.call(http.MethodPost, "/v2/models/"+model+"/infer", append(head, data...), length)
	rest := []byte(nil)
	if h := header.Get("Inference-Header-Content-Length"); h != "" {
		n, err := strconv.Atoi(h)
		if err != nil || n > len(b) {
			c.Fatalf("Inference-Header-Content-Length: %q", h)
		}
		b, rest = b[:n], b[n:]
	}
	var answer inferenceResponse
	if err := json.Unmarshal(b, &answer); err != nil {
		c.Fatalf("%v: %s", err, b)
	}
	for i := range answer.Outputs {
		o := &answer.Outputs[i]
		size, isBinary := o.Parameters["binary_data_size"].(float64)
		if !isBinary {
			continue
		}
		for ; size >= 4; size, rest = size-4, rest[4:] {
			o.Data = append(o.Data, float64(math.Float32frombits(binary.LittleEndian.Uint32(rest))))
		}
	}
	return status, answer
}

// server returns a client of a server for a small model over HTTP.
func server(t *testing.T) *client {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "models.toml")
	fatal.If(t, os.WriteFile(file, []byte("[model.bars]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 6 }]\n"), 0o600))
	models, err := tessera.Load(file)
	fatal.If(t, err)
	m, err := models.Model("bars", config.Passes(1))
	fatal.If(t, err)
	run, err := tessera.Train(t.Context(), m, tessera.Options{Out: filepath.Join(dir, "bars"), Threads: 1})
	fatal.If(t, err)
	s, err := serve.New([]serve.Model{{Run: run}}, serve.Options{Workers: 1})
	fatal.If(t, err)
	fatal.If(t, run.Close())
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); s.Close() })
	return &client{t, h.URL}
}

// The test uses a client of our own, because neither Debian nor npm nor the Go module proxy has a client of this protocol.
func TestAClientWrittenFromTheSpecification(t *testing.T) {
	c := server(t)
	var health struct{ Live, Ready bool }
	if status := c.get("/v2/health/ready", &health); status != 200 || !health.Live || c.get("/v2/health/live", &health) != 200 {
		t.Fatalf("not ready: %+v", health)
	}
	var about struct {
		Name, Version string
		Extensions    []string
	}
	if c.get("/v2", &about); about.Name == "" || about.Version == "" || fmt.Sprint(about.Extensions) != "[binary_tensor_data generate]" {
		t.Errorf("got %+v", about)
	}
	var m modelMetadata
	if status := c.get("/v2/models/bars", &m); status != 200 || m.Name != "bars" || m.Platform == "" || len(m.Inputs) != 1 || len(m.Outputs) != 2 || len(m.Versions) != 1 {
		t.Fatalf("got %+v", m)
	}
	q := inferenceRequest{ID: "42", Inputs: []tensor{c.batch(m.Inputs[0], 3)}}
	status, want := c.infer("bars", q, false)
	if status != 200 || want.ModelName != "bars" || want.ModelVersion != m.Versions[0] || want.ID != "42" || len(want.Outputs) != len(m.Outputs) {
		t.Fatalf("status %d: %+v", status, want)
	}
	for i, o := range want.Outputs {
		c.fits(o, m.Outputs[i], 3)
	}
	c.sameBinary(q, want)
	var failed inferenceResponse
	if status := c.get("/v2/models/none", &failed); status < 400 || status >= 500 || failed.Error == "" {
		t.Errorf("an unknown model: status %d, %+v", status, failed)
	}
	q.Inputs[0].Shape[0] = 5
	if status, failed := c.infer("bars", q, true); status != 400 || failed.Error == "" {
		t.Errorf("a wrong shape: status %d, %+v", status, failed)
	}
}

// batch returns an input of n rows that matches the metadata.
func (c *client) batch(m tensorMetadata, n int64) tensor {
	in := tensor{Name: m.Name, Datatype: m.Datatype, Shape: append([]int64{n}, m.Shape[1:]...)}
	size := int64(1)
	for _, d := range in.Shape {
		size *= d
	}
	for i := range size {
		in.Data = append(in.Data, float64(i%17)/16)
	}
	return in
}

// fits checks that an output of n rows matches the metadata.
func (c *client) fits(o tensor, m tensorMetadata, n int64) {
	c.Helper()
	size := n
	for _, d := range m.Shape[1:] {
		size *= d
	}
	if o.Name != m.Name || o.Datatype != m.Datatype || o.Shape[0] != n || int64(len(o.Data)) != size || fmt.Sprint(o.Shape[1:]) != fmt.Sprint(m.Shape[1:]) {
		c.Errorf("output %q: got shape %v and %d values, want %v", o.Name, o.Shape, len(o.Data), m.Shape)
	}
}

// sameBinary repeats a request with binary inputs, with binary outputs, and with both.
func (c *client) sameBinary(q inferenceRequest, want inferenceResponse) {
	c.Helper()
	for _, way := range []struct{ in, out bool }{{true, false}, {false, true}, {true, true}} {
		asked := q
		asked.Inputs = append([]tensor(nil), q.Inputs...)
		asked.Outputs = []tensor{{Name: "code", Parameters: map[string]any{"binary_data": way.out}}, {Name: "output", Parameters: map[string]any{"binary_data": way.out}}}
		_, got := c.infer("bars", asked, way.in)
		for i, o := range got.Outputs {
			if len(o.Data) != len(want.Outputs[i].Data) {
				c.Fatalf("%+v: output %q has %d values", way, o.Name, len(o.Data))
			}
			for k, v := range o.Data {
				if float32(v) != float32(want.Outputs[i].Data[k]) {
					c.Errorf("%+v: output %q: value %d: got %v, want %v", way, o.Name, k, v, want.Outputs[i].Data[k])
				}
			}
		}
	}
}
