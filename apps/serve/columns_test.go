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
)

// patients returns a run whose heads read further columns: floats, whole numbers and classes with names.
func patients(t *testing.T) *tessera.Run {
	t.Helper()
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "p.csv"), filepath.Join(dir, "run")
	table := "a,b,c,dose,age,ward,sex,sex2\n"
	for i := range 40 {
		table += fmt.Sprintf("%v,%v,%v,%v,%v,%d,%s,%d\n", i%3, i%5, i%7, float64(i)/4, float64(i%9)/3, i%4, []string{"f", "m"}[i%2], i%2)
	}
	fatal.If(t, os.WriteFile(file, []byte(table), 0o600))
	trainRun(t, folder, fmt.Sprintf(`[model.m]
dataset = { name = "csv", file = %q, scale = "standardise", labels = "sex", columns = { doses = ["dose", "age"], ward = "ward", group = "sex2" } }
encoder = [{ kind = "dense", units = 3, activation = "tanh" }]
head.risk = { from = ["code", "doses"], layers = [{ kind = "dense", units = 2 }] }
head.place = { from = "ward", layers = [{ kind = "embedding", vocabulary = 4, units = 3 }] }
head.sex = { from = ["code", "doses", "ward"], layers = [{ kind = "dense" }] }
loss = [{ kind = "mse" }, { kind = "l1", on = "risk" }, { kind = "l1", on = "place" }, { kind = "cross_entropy", on = "sex" }]
`, file))
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}

// asking sends an inference request and returns the outputs by name.
func asking(t *testing.T, s http.Handler, status int, inputs, more string) (outputs map[string][]float32, text string) {
	t.Helper()
	a := post(s, "/v2/models/run/infer", []byte(`{"inputs":[`+inputs+`]`+more+`}`))
	if a.status != status {
		t.Fatalf("%s: status %d, want %d: %s", inputs, a.status, status, a.body)
	}
	var got struct {
		Outputs []struct {
			Name string
			Data []float32
		}
	}
	_ = json.Unmarshal(a.body, &got)
	outputs = map[string][]float32{}
	for _, o := range got.Outputs {
		outputs[o.Name] = o.Data
	}
	return outputs, string(a.body)
}

const (
	threeImages = `{"name":"input","shape":[3,3],"datatype":"FP32","data":[0,1,2,2,1,0,1,4,6]}`
	threeDoses  = `{"name":"doses","shape":[3,2],"datatype":"FP64","data":[[0.5,1],[2,0],[9,1]]}`
	threeWards  = `{"name":"ward","shape":[3],"datatype":"INT64","data":[0,3,1]}`
)

// The inputs of a request are identified by the names of columns and may have any order. The values equal those of
// Run.ValueOf. A value requires only the inputs from which it is computed.
func TestRequestsHaveTheColumnsThatTheModelReads(t *testing.T) {
	run := patients(t)
	s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	about := string(send(s, http.MethodGet, "/v2/models/run", nil).body)
	if want := `"inputs":[{"name":"input","datatype":"FP32","shape":[-1,3],"names":["a","b","c"]},{"name":"ward","datatype":"INT32","shape":[-1,1]},{"name":"doses","datatype":"FP32","shape":[-1,2]}]`; !strings.Contains(about, want) {
		t.Errorf("got %s, want %s", about, want)
	}
	columns := map[string][]float32{"images": {0, 1, 2, 2, 1, 0, 1, 4, 6}, "doses": {0.5, 1, 2, 0, 9, 1}, "ward": {0, 3, 1}}
	value := func(name string) []float32 {
		v, err := run.ValueOf(name, columns)
		fatal.If(t, err)
		return v
	}
	got, _ := asking(t, s, 200, threeDoses+","+threeWards+","+threeImages, "")
	expect.Equal(t, len(got), 5)
	for name, values := range got {
		if !sameBits(values, value(name)) {
			t.Errorf("%s: got %v, want %v", name, values, value(name))
		}
	}
	for sent, want := range map[string][]string{
		threeImages:                    {"code", "output"},
		threeWards:                     {"place"},
		threeImages + "," + threeDoses: {"code", "output", "risk"},
	} {
		got, _ := asking(t, s, 200, sent, "")
		for _, name := range want {
			if !sameBits(got[name], value(name)) {
				t.Errorf("%s of %s: got %v, want %v", name, sent, got[name], value(name))
			}
		}
		expect.Equal(t, len(got), len(want), got, sent, want)
	}
	want, err := run.PredictFrom("", columns)
	if err != nil || want.Head != "sex" || len(want.Labels) != 3 {
		t.Fatalf("got %+v, %v", want, err)
	}
	_, text := asking(t, s, 200, threeImages+","+threeDoses+","+threeWards, `,"outputs":[{"name":"sex.label"}]`)
	expect.Contains(t, text, `"data":`+`["`+want.Classes[want.Labels[0]]+`","`)
}

// Several binary inputs follow the JSON in order. They give the same values as JSON inputs.
func TestSeveralBinaryInputs(t *testing.T) {
	run := patients(t)
	s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	json := `{"inputs":[{"name":"ward","shape":[1,1],"datatype":"INT32","parameters":{"binary_data_size":4}},` +
		`{"name":"input","shape":[1,3],"datatype":"FP32","data":[2,1,0]},` +
		`{"name":"doses","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}],"outputs":[{"name":"sex"}]}`
	body := binary.LittleEndian.AppendUint32([]byte(json), 3)
	for _, v := range []float32{2, 0.25} {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(v))
	}
	a := post(s, "/v2/models/run/infer", body, headerLength+": "+itoa(len(json)))
	want, err := run.ValueOf("sex", map[string][]float32{"images": {2, 1, 0}, "doses": {2, 0.25}, "ward": {3}})
	fatal.If(t, err)
	expect.Equal(t, a.status, 200, "status")
	expect.Contains(t, string(a.body), `"data":`+string(numbersIn(want)), "status")
}

func TestMissingAndWrongColumnsOfRequestsAreErrors(t *testing.T) {
	run := patients(t)
	s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	for _, c := range []struct{ inputs, more, says string }{
		{threeImages, `,"outputs":[{"name":"risk"}]`, `"risk" is computed from the input "doses", which was not sent: got "input"`},
		{threeImages + "," + threeWards, `,"outputs":[{"name":"sex.label"}]`, `"sex.label" is computed from the input "doses", which was not sent: got "input", "ward"`},
		{threeDoses, "", `which was not sent: got "doses"`},
		{`{"name":"group","shape":[3],"datatype":"INT32","data":[0,1,1]}`, "", `got "group", want inputs among "input", "ward", "doses"`},
		{threeWards + "," + threeWards, "", `got "ward" twice`},
		{threeImages + `,{"name":"ward","shape":[2],"datatype":"INT32","data":[0,1]}`, "", `input "ward": shape: got 2 rows, want 3 as of the input before`},
		{strings.Replace(threeWards, "[0,3,1]", "[0,3,1.5]", 1), "", `input "ward": data: value 2: got 1.5, want a whole number`},
		{strings.Replace(threeDoses, "FP64", "UINT8", 1), "", `input "doses": datatype: got "UINT8", want FP32, FP64`},
		{strings.Replace(threeDoses, "[3,2]", "[3,3]", 1), "", `input "doses": shape: got [3 3], want [n 2]`},
	} {
		if _, text := asking(t, s, 400, c.inputs, c.more); !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), c.says) {
			t.Errorf("%s: got %s, want %s", c.inputs, text, c.says)
		}
	}
}

// Null, an empty text and a text of no training sample are an unknown class for a layer with a row for it. Another layer refuses them.
func TestUnknownClassesOfRequests(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "p.csv")
	fatal.If(t, os.WriteFile(file, []byte("a,town\n"+strings.Repeat("1,x\n2,y\n3,\n", 10)), 0o600))
	var models []Model
	for _, unknown := range []string{"true", "false"} {
		run := filepath.Join(folder, unknown)
		table := map[string]string{"true": file, "false": filepath.Join(folder, "known.csv")}[unknown]
		fatal.If(t, os.WriteFile(filepath.Join(folder, "known.csv"), []byte("a,town\n"+strings.Repeat("1,x\n2,y\n3,x\n", 10)), 0o600))
		trainRun(t, run, fmt.Sprintf(`[model.m]
dataset = { name = "csv", file = %q, missing = "nan", columns = { town = "town" } }
encoder = [{ kind = "dense", units = 2 }]
head.place = { from = "town", layers = [{ kind = "embedding", vocabulary = 2, units = 2, unknown = %s }] }
loss = [{ kind = "mse" }, { kind = "l1", on = "place" }]
`, table, unknown))
		r, err := tessera.Open(run, tessera.Options{Threads: 1})
		fatal.If(t, err)
		defer r.Close()
		models = append(models, Model{Run: r, Name: unknown})
	}
	s, err := New(models, Options{Workers: 1})
	fatal.If(t, err)
	defer s.Close()
	ask := func(name, towns string) string {
		return string(post(s, "/v2/models/"+name+"/infer", []byte(`{"inputs":[{"name":"town","shape":[2],"datatype":"BYTES","data":[`+towns+`]}],"outputs":[{"name":"place"}]}`)).body)
	}
	want := ask("true", `"y",""`)
	expect.Equal(t, ask("true", `"y",null`), want)
	const warning = `"parameters":{"warning":"input \"town\" has 1 text that no sample of the training has, the first \"z\": they count as an unknown class"},`
	got := ask("true", `"y","z"`)
	expect.Contains(t, got, warning)
	expect.Equal(t, strings.Replace(got, warning, "", 1), want)
	if got := ask("true", `null,"y"`); !strings.Contains(want, `"data":[`) || !strings.Contains(got, `"data":[`) || got == want {
		t.Errorf("got %s and %s", got, want)
	}
	expect.Contains(t, ask("true", `null,null`), `"data":[`)
	expect.Contains(t, ask("false", `"y","z"`), `got \"z\", want one of \"x\", \"y\"`)
}

// An encoder's row is the concatenation of its columns. Scaling applies only to the images.
func TestEncodersTakeRowsOfColumns(t *testing.T) {
	run := patients(t)
	e, err := run.Encoder(tessera.EncoderOptions{Value: "sex", Sizes: []int{1, 4}})
	fatal.If(t, err)
	defer e.Close()
	columns := map[string][]float32{"images": {0, 1, 2, 2, 1, 0, 1, 4, 6}, "doses": {0.5, 1, 2, 0, 9, 1}, "ward": {0, 3, 1}}
	var rows []float32
	for i := range 3 {
		for _, c := range e.Columns() {
			rows = append(rows, columns[c.Name][i*c.Size():(i+1)*c.Size()]...)
		}
	}
	got, err := e.Encode(t.Context(), nil, rows)
	want, failed := run.ValueOf("sex", columns)
	if err != nil || failed != nil || !sameBits(got, want) {
		t.Errorf("got %v (%v), want %v (%v)", got, err, want, failed)
	}
	kept := slices.Clone(rows)
	expect.Error(t, expect.Err(e.Encode(t.Context(), nil, rows[1:])), "row of the columns")
	expect.Slice(t, kept, rows, "Encode changed its input")
}
