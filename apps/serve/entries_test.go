package serve

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"tessera"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A row by the names of its entries has the code of the whole row, with names or, of a file without any, numbers; scaled too.
func TestRowsOfSparseMatrices(t *testing.T) {
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	named, plain := "cell,gene,count\n", "%%MatrixMarket matrix coordinate real general\n30 6 90\n"
	for i := range 30 {
		for k := range 3 {
			v := 1 + r.IntN(9)
			named += fmt.Sprintf("c%d,G%d,%d\n", i, (i+2*k)%6, v)
			plain += fmt.Sprintf("%d %d %d\n", i+1, (i+2*k)%6+1, v)
		}
	}
	for name, content := range map[string]string{"a.csv": named, "a.mtx": plain} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, c := range []struct{ file, more string }{{"a.csv", ""}, {"a.csv", `, scale = { kind = "standardise", centre = false }`}, {"a.mtx", ""}} {
		folder := filepath.Join(t.TempDir(), "run")
		trainRun(t, folder, fmt.Sprintf("[model.m]\nencoder = [{ kind = \"dense\", units = 2 }]\ndataset = { name = \"triples\", file = %q, absent = \"zero\", validation = 0%s }\n", filepath.Join(dir, c.file), c.more))
		run, err := tessera.Open(folder, tessera.Options{Threads: 1})
		fatal.If(t, err)
		names := run.ColumnNames()
		s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
		fatal.If(t, err)
		rows := []map[string]float32{{names[4]: 3, names[0]: 2.5}, {}, {names[1]: 7}}
		whole := make([][]float32, len(rows))
		for i, row := range rows {
			for _, name := range names {
				whole[i] = append(whole[i], row[name])
			}
		}
		ask := func(data any) []byte {
			b, _ := json.Marshal(data)
			got := post(s, "/v2/models/run/infer", fmt.Appendf(nil, `{"inputs":[{"name":"input","datatype":"FP64","shape":[3,6],"data":%s}]}`, b))
			if got.status != http.StatusOK {
				t.Fatalf("%s: %s", b, got.body)
			}
			return got.body
		}
		expect.Equal(t, string(ask(rows)), string(ask(whole)), c)
		for data, want := range map[string]string{
			`[{"?":1},{},{}]`: `data: row 0: got the column \"?\", which is none of the 6 of the training`,
			fmt.Sprintf(`[{},{%q:1,%q:0},{}]`, names[0], names[0]): fmt.Sprintf(`data: row 1: got the column \"%s\" twice`, names[0]),
			fmt.Sprintf(`[{%q:1e99},{},{}]`, names[2]):             fmt.Sprintf(`data: row 0, column \"%s\": JSON: byte`, names[2]),
			fmt.Sprintf(`[{%q:NaN},{},{}]`, names[2]):              "want a number",
			fmt.Sprintf(`[{%q:"1"},{},{}]`, names[2]):              "want a number",
			`[{},{}]`:   "got 12 values, want 18",
			`[{},{},1]`: "want '{'",
			`[[{}],{}]`: "want",
			`[{},{},{`:  "end of the text",
		} {
			got := post(s, "/v2/models/run/infer", []byte(`{"inputs":[{"name":"input","datatype":"FP32","shape":[3,6],"data":`+data+`}]}`))
			expect.Equal(t, got.status, http.StatusBadRequest, data)
			expect.Contains(t, string(got.body), want, data)
		}
		fatal.If(t, s.Close())
	}
}
