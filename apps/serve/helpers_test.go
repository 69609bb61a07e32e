package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// text declares a small model with a head.
const text = `[model.m]
dataset = { name = "bars", count = 40, seed = %d }
encoder = [{ kind = "dense", units = 10, activation = "sigmoid" }]
head = { side = { from = "code", layers = [{ kind = "dense", units = 3 }] } }
loss = [{ kind = "mse" }, { kind = "l1", on = "side", weight = 0.001 }]
`

// trainRun trains a run for a few steps.
func trainRun(t testing.TB, folder, declaration string) {
	t.Helper()
	fatal.If(t, trainIn(folder, declaration))
}

func trainIn(folder, declaration string) error {
	models, err := config.Load("models.toml", []byte(declaration))
	if err != nil {
		return err
	}
	m, err := models.Model("m", config.Passes(1))
	if err != nil {
		return err
	}
	run, err := tessera.Train(context.Background(), m, tessera.Options{Out: folder, Threads: 1, Force: true})
	if err != nil {
		return err
	}
	return run.Close()
}

// shared returns a function that trains a run once, for several tests, which do not change it. If the training fails, every call
// returns the same error.
func shared(declaration string) func() (folder string, err error) {
	return sync.OnceValues(func() (string, error) {
		folder, err := os.MkdirTemp(scratch, "shared")
		if err != nil {
			return "", err
		}
		folder = filepath.Join(folder, "small")
		return folder, trainIn(folder, declaration)
	})
}

// small is the run that most tests share.
var small = shared(fmt.Sprintf(text, 1))

func smallRun(t testing.TB) string {
	t.Helper()
	folder, err := small()
	fatal.If(t, err)
	return folder
}

// scratch is a folder for shared runs, which TestMain removes.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "serve"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(code)
}

// A training that fails must fail every test that needs the run: the others would report what they miss.
func TestASharedRunThatFailsFailsEveryTime(t *testing.T) {
	run := shared("[model.m]\nloss = []\n")
	_, first := run()
	if _, again := run(); first == nil || again != first {
		t.Errorf("got %v, then %v, want the same error twice", first, again)
	}
}

// newServer serves the small run until the test ends.
func newServer(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Workers == 0 {
		o.Workers = 1
	}
	s, err := New([]Model{{Folder: smallRun(t)}}, o)
	fatal.If(t, err)
	t.Cleanup(func() {
		expect.NoError(t, s.Close())
	})
	return s
}

// images returns n images of the small run.
func images(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x := lists.Of(n*64, func(int) float32 { return r.Float32() })
	return x
}

// valuesOf computes a value of the small run without a server, by the encoder that the docs describe.
func valuesOf(t testing.TB, value string, images []float32) []float32 {
	t.Helper()
	run, err := tessera.Open(smallRun(t), tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	e, err := run.Encoder(tessera.EncoderOptions{Value: value, Workers: 1})
	fatal.If(t, err)
	defer e.Close()
	values, err := e.Encode(t.Context(), nil, images)
	fatal.If(t, err)
	return values
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// jsonRequest returns a request in JSON. more contains further members of the request.
func jsonRequest(images []float32, more string) []byte {
	return fmt.Appendf(nil, `{"inputs":[{"name":"input","shape":[%d,8,8],"datatype":"FP32","data":%s}]%s}`,
		len(images)/64, numbersIn(images), more)
}

// bufferOf returns a buffer that contains the body of a request.
func bufferOf(body []byte) *buffer {
	return &buffer{server: &Server{options: Options{MaxMemory: 1 << 30}}, body: body}
}

// numbersIn returns values as a JSON array.
func numbersIn(values []float32) []byte {
	text, err := bufferOf(nil).appendNumbers([]byte("["), values)
	if err != nil {
		panic(err)
	}
	return text
}

// binaryRequest returns a request whose images are binary data, and the length of its JSON.
func binaryRequest(images []float32, more string) (body []byte, header string) {
	head := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[%d,8,8],"datatype":"FP32","parameters":{"binary_data_size":%d}}]%s}`,
		len(images)/64, 4*len(images), more)
	return appendBinary([]byte(head), images), strconv.Itoa(len(head))
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// post sends a request to the handler. headers have the form "name: value".
func post(s http.Handler, path string, body []byte, headers ...string) answer {
	return send(s, http.MethodPost, path, body, headers...)
}

func send(s http.Handler, method, path string, body []byte, headers ...string) answer {
	r := httptest.NewRequest(method, path, bytes.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	result := w.Result()
	got, _ := io.ReadAll(result.Body)
	return answer{result.StatusCode, result.Header, got}
}

// reply is an inference response in JSON.
type reply struct {
	Model   string `json:"model_name"`
	Version string `json:"model_version"`
	ID      *string
	Outputs []struct {
		Name, Datatype string
		Shape          []int
		Parameters     map[string]int
		Data           []float32
	}
}

func (a answer) reply(t testing.TB) (r reply) {
	t.Helper()
	text := a.body
	if n, err := strconv.Atoi(a.header.Get(headerLength)); err == nil {
		text = text[:n]
	}
	if err := json.Unmarshal(text, &r); a.status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
	return r
}

func itoa(n int) string { return strconv.Itoa(n) }

func leUint64(b []byte, v uint64) []byte { return binary.LittleEndian.AppendUint64(b, v) }
