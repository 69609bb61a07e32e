package serve

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A request says null for a missing value and the name of a class, as the cells of a table do. A missing value counts as the mean of its column,
// also if numbers lie so close together that they are scaled in float64.
func TestRequestsHaveMissingValuesAndNamesOfClasses(t *testing.T) {
	for _, offset := range []int{0, 1000} {
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "p.csv"), filepath.Join(dir, "run")
		table, sum := "a,b,town,price\n", 0
		for i := range 40 {
			table += fmt.Sprintf("%d,%s,%s,%d\n", offset+i%5, []string{"", fmt.Sprint(offset + i%7)}[min(i, 1)], []string{"Ulm", "Köln", "Bonn"}[i%3], i)
			if i > 0 {
				sum += offset + i%7
			}
		}
		fatal.If(t, os.WriteFile(file, []byte(table), 0o600))
		trainRun(t, folder, fmt.Sprintf(`[model.m]
dataset = { name = "csv", file = %q, validation = 0, missing = "nan", scale = "standardise", columns = { town = "town", target = "price" } }
encoder = [{ kind = "dense", units = 3, activation = "tanh", from = ["images", "observed", "place"] }]
decoder = []
head.place = { from = "town", layers = [{ kind = "embedding", vocabulary = 3, units = 2 }] }
head.y = { layers = [{ kind = "dense" }] }
loss = [{ kind = "mse", on = "y", against = "target" }]
`, file))
		run, err := tessera.Open(folder, tessera.Options{Threads: 1})
		fatal.If(t, err)
		defer run.Close()
		s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
		fatal.If(t, err)
		defer s.Close()
		describes := send(s, "GET", "/v2/models/run", nil)
		for _, says := range []string{`{"name":"input","datatype":"FP32","shape":[-1,2],"names":["a","b"],"missing":true}`, `"shape":[-1,2],"optional":true}`,
			`{"name":"town","datatype":"BYTES","shape":[-1,1],"classes":["Bonn","Köln","Ulm"]}`} {
			expect.Contains(t, string(describes.body), says)
		}
		want, err := run.ValueOf("y", map[string][]float32{"images": {float32(offset), float32(sum) / 39, float32(offset + 3), float32(offset + 2)}, "observed": {1, 0, 1, 1}, "town": {2, 1}})
		fatal.If(t, err)
		input := fmt.Sprintf(`{"name":"input","shape":[2,2],"datatype":"FP32","data":[%d,null,%d,%d]}`, offset, offset+3, offset+2)
		y := `,"outputs":[{"name":"y"}]`
		for _, town := range []string{`{"data":["Ulm","Köln"],"name":"town","shape":[2],"datatype":"BYTES"}`, `{"name":"town","shape":[2,1],"datatype":"INT32","data":[2,1]}`} {
			for _, inputs := range []string{town + "," + input, input + "," + town} {
				got, text := asking(t, s, 200, inputs, y)
				for i, v := range got["y"] {
					expect.Near(t, v, want[i], 1e-4, inputs, text, want)
					expect.Equal(t, len(got["y"]), 2, inputs, text, want)
				}
			}
		}
		// The value of a cell that is not observed does not matter, and a missing one is not observed.
		town := `{"name":"town","shape":[2],"datatype":"INT32","data":[2,1]},`
		_, plain := asking(t, s, 200, town+input, y)
		for cell, mask := range map[string]string{"null": "1,0,1,1", "999": "1,0,1,1", "0": "1,0,1,1", "null ": "1,1,1,1"} {
			given := fmt.Sprintf(`{"name":"input","shape":[2,2],"datatype":"FP32","data":[%d,%s,%d,%d]},{"name":"observed","shape":[2,2],"datatype":"FP32","data":[%s]}`,
				offset, cell, offset+3, offset+2, mask)
			_, text := asking(t, s, 200, town+given, y)
			expect.Equal(t, text[strings.Index(text, `"outputs"`):], plain[strings.Index(plain, `"outputs"`):], cell, mask)
		}
		for _, mask := range []float32{7, -1, 0.5, float32(math.NaN())} {
			_, err := run.ValueOf("y", map[string][]float32{"images": {0, 1}, "observed": {1, mask}, "town": {2}})
			expect.Error(t, err, fmt.Sprintf(`value 1 of the column "observed": got %v, want 1`, mask), "a mask of", mask)
		}
		encoder, err := run.Encoder(tessera.EncoderOptions{Value: "y", Workers: 1})
		fatal.If(t, err)
		defer encoder.Close()
		row := map[string][]float32{"images": {float32(offset), 999}, "observed": {1, 0}, "town": {2}}
		for _, town := range []float32{2, float32(math.NaN())} {
			row["town"][0] = town
			var values []float32
			for _, c := range encoder.Columns() {
				values = append(values, row[c.Name]...)
			}
			switch got, err := encoder.Encode(t.Context(), nil, values); {
			case town != town:
				expect.AnyError(t, err, "a text that is NaN")
			case err != nil || math.Abs(float64(got[0]-want[0])) > 1e-4:
				t.Errorf("encoder: got %v, %v, want %v", got, err, want[0])
			}
		}
		for inputs, says := range map[string]string{
			input + `,{"name":"town","shape":[2],"datatype":"BYTES","data":["Ulm","Trier"]}`:       `value 1: got \"Trier\", want one of \"Bonn\", \"Köln\", \"Ulm\"`,
			input + `,{"name":"town","shape":[2],"datatype":"INT32","data":[0,null]}`:              `value 1: got null, want a number`,
			input + `,{"name":"town","shape":[2],"datatype":"INT32","data":["Ulm","Ulm"]}`:         `datatype INT32: want data with numbers`,
			`{"name":"input","shape":[1,2],"datatype":"BYTES","data":["1","2"]}`:                   `datatype: got \"BYTES\"`,
			town + input + `,{"name":"observed","shape":[2,2],"datatype":"FP32","data":[1,7,1,1]}`: `value 1 of the column \"observed\": got 7, want 1 for a value that is there, 0 for one that is missing`,
		} {
			_, text := asking(t, s, 400, inputs, y)
			expect.Contains(t, text, says)
		}
	}
}

// A missing value that no sample of the training lacks counts as the mean of the training, and the response says so, as it does of values that are
// clipped. A pca encodes what is there.
func TestResponsesSayWhatCountsAsSomethingElse(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "p.csv")
	table, sum := "a,b\n", 0
	for i := range 40 {
		table += fmt.Sprintf("%d,%s\n", 10+i%5, []string{"", fmt.Sprint(i % 7)}[min(i, 1)])
		sum += 10 + i%5
	}
	fatal.If(t, os.WriteFile(file, []byte(table), 0o600))
	for kind, model := range map[string]string{
		"network": `encoder = [{ kind = "dense", units = 3, from = ["images", "observed"] }]`,
		"pca":     "kind = \"pca\"\ncomponents = 1",
	} {
		folder := filepath.Join(dir, kind)
		trainRun(t, folder, fmt.Sprintf("[model.m]\ndataset = { name = \"csv\", file = %q, validation = 0, missing = \"nan\", scale = \"minmax\" }\n%s\n", file, model))
		run, err := tessera.Open(folder, tessera.Options{Threads: 1})
		fatal.If(t, err)
		defer run.Close()
		s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
		fatal.If(t, err)
		defer s.Close()
		nan := float32(math.NaN())
		code, says := `,"outputs":[{"name":"code"}]`, ""
		columns := map[string][]float32{"images": {nan, 2, 11, nan}}
		if kind == "network" {
			columns = map[string][]float32{"images": {float32(sum) / 40, 2, 11, nan}, "observed": {1, 1, 1, 0}}
			says = `"parameters":{"warning":"missing values count as the mean of the training, where no sample lacked them: column \"a\" counts as 12 in 1 sample (first: row 0)"}`
		}
		want, err := run.ValueOf("code", columns)
		fatal.If(t, err)
		got, text := asking(t, s, 200, `{"name":"input","shape":[2,2],"datatype":"FP32","data":[null,2,11,null]}`, code)
		for i, v := range got["code"] {
			expect.Near(t, v, want[i], 1e-5, kind, text, want)
		}
		expect.Contains(t, text, says)
		_, text = asking(t, s, 200, `{"name":"input","shape":[2,2],"datatype":"FP32","data":[11,2,1,77]}`, code)
		expect.Contains(t, text, `column \"a\" has 1 value outside of 10 to 14 (farthest: 1, row 1); column \"b\" has 1 value outside of 0 to 6 (farthest: 77, row 1)`)
	}
}
