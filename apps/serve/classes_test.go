package serve

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// The metadata of a classifier contain the names of its classes. On request, the response contains the most probable class and
// the probabilities.
func TestPredictedClassesHaveNames(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "birds.csv"), filepath.Join(dir, "run")
	names := []string{"crow", "great \"tit\"", "öwl"}
	table := "wing,leg,species\n"
	for i := range 60 {
		table += fmt.Sprintf("%v,%v,\"%s\"\n", i%3*4, i%3*7+i%2, strings.ReplaceAll(names[i%3], `"`, `""`))
	}
	fatal.If(t, os.WriteFile(file, []byte(table), 0o600))
	trainRun(t, folder, fmt.Sprintf("[model.m]\ndataset = { name = \"csv\", images = %q, labels = \"species\", scale = \"standardise\" }\n"+
		"encoder = [{ kind = \"dense\", units = 4 }]\ndecoder = []\nhead = { class = { layers = [{ kind = \"dense\" }] } }\nloss = [{ kind = \"cross_entropy\" }]\n", file))
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	s, err := New([]Model{{Run: run}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	quotedNames, _ := json.Marshal(names)
	about := string(send(s, http.MethodGet, "/v2/models/run", nil).body)
	for _, want := range []string{`{"name":"class","datatype":"FP32","shape":[-1,3],"classes":` + string(quotedNames) + `}`,
		`{"name":"class.label","datatype":"BYTES","shape":[-1,1],"classes":`, `{"name":"class.probability","datatype":"FP32","shape":[-1,3],"classes":`} {
		expect.Contains(t, about, want)
	}
	x := []float32{0, 0, 4, 7, 8, 15, 100, 3}
	want, err := run.Predict("class", x)
	fatal.If(t, err)
	labels := lists.Map(want.Labels, func(label int) string { return names[label] })
	body := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[4,2],"datatype":"FP32","data":%s}]`, numbersIn(x))
	var got struct {
		Outputs []struct {
			Name, Datatype string
			Shape          []int
			Data           json.RawMessage
		}
	}
	ask := func(more string) {
		t.Helper()
		a := post(s, "/v2/models/run/infer", []byte(body+more+"}"))
		if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
	}
	ask("")
	for _, o := range got.Outputs {
		if o.Datatype != "FP32" || strings.Contains(o.Name, ".") {
			t.Errorf("without outputs: got %+v", o)
		}
	}
	ask(`,"outputs":[{"name":"class.label"},{"name":"class.probability"}]`)
	var text []string
	var probabilities []float32
	if json.Unmarshal(got.Outputs[0].Data, &text) != nil || !slices.Equal(text, labels) || got.Outputs[0].Datatype != "BYTES" || !slices.Equal(got.Outputs[0].Shape, []int{4, 1}) {
		t.Errorf("labels: got %+v, want %q", got.Outputs[0], labels)
	}
	if json.Unmarshal(got.Outputs[1].Data, &probabilities) != nil || !sameBits(probabilities, want.Probabilities) {
		t.Errorf("probabilities: got %s, want %v", got.Outputs[1].Data, want.Probabilities)
	}
	a := post(s, "/v2/models/run/infer", []byte(body+`,"parameters":{"binary_data_output":true},"outputs":[{"name":"class.label"},{"name":"class.probability"}]}`))
	rest := a.body[len(a.body)-a.sizes(t)[0]-a.sizes(t)[1]:]
	for i, label := range labels {
		n := binary.LittleEndian.Uint32(rest)
		expect.Equal(t, string(rest[4:4+n]), label, "binary label", i)
		rest = rest[4+n:]
	}
	for i, p := range want.Probabilities {
		expect.Equal(t, math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:])), p, "binary probability", i)
	}
}

// sizes returns the binary_data_size of each output.
func (a answer) sizes(t *testing.T) (sizes []int) {
	t.Helper()
	for _, o := range a.reply(t).Outputs {
		sizes = append(sizes, o.Parameters["binary_data_size"])
	}
	return sizes
}

// The metadata of a head that predicts the classes of another column contain the names of that column.
func TestClassesOfAnotherColumnHaveItsNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainRun(t, folder, `[model.m]
dataset = { name = "credit", count = 60, test = 0 }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head    = { g = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "cross_entropy", on = "g", against = "group" }]
`)
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	s, err := New([]Model{{Run: run}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	about := string(send(s, http.MethodGet, "/v2/models/run", nil).body)
	expect.Contains(t, about, `"name":"g.label","datatype":"BYTES","shape":[-1,1],"classes":["a","b"]`)
}
