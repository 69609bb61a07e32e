package serve

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/internal/fatal"
)

// indexed returns a run with the layers and columns whose values have bounds: an embedding, a length and drawn whole numbers.
func indexed(t testing.TB) *tessera.Run {
	t.Helper()
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "p.csv"), filepath.Join(dir, "run")
	table := "a,b,c,word,n,sex\n"
	for i := range 40 {
		table += fmt.Sprintf("%v,%v,%v,%d,%d,%s\n", i%3, i%5, i%7, i%4, i%4, []string{"f", "m"}[i%2])
	}
	fatal.If(t, os.WriteFile(file, []byte(table), 0o600))
	trainRun(t, folder, fmt.Sprintf(`[model.m]
dataset = { name = "csv", file = %q, labels = "sex", columns = { word = "word", n = "n" } }
encoder = [{ kind = "dense", units = 3, activation = "relu" }]
decoder = []
column.turn = { kind = "whole", from = 1, below = 3 }
head.w = { from = "word", layers = [{ kind = "embedding", vocabulary = 4, units = 3 }] }
head.there = { from = "n", layers = [{ kind = "first_tokens", tokens = 3 }] }
head.sex = { from = ["code", "w", "there", "turn"], layers = [{ kind = "dense" }] }
loss = [{ kind = "cross_entropy", on = "sex" }]
`, file))
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	return run
}

// No value from outside reaches a layer that cannot look it up: on every path the error names the input, and there is no label for logits
// that are not finite.
func FuzzInputsOfAServer(f *testing.F) {
	run := indexed(f)
	s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
	fatal.If(f, err)
	f.Cleanup(func() { _ = s.Close() })
	nan := float32(math.NaN())
	for _, asBinary := range []bool{false, true} {
		f.Add(float32(3), float32(3), float32(2), float32(0.5), asBinary)
		f.Add(float32(4), float32(0), float32(1), float32(0.5), asBinary)
		f.Add(float32(-1), float32(0), float32(1), float32(0.5), asBinary)
		f.Add(float32(16777215), float32(0), float32(1), float32(0.5), asBinary)
		f.Add(float32(1), float32(4), float32(1), float32(0.5), asBinary)
		f.Add(float32(1), float32(-1), float32(1), float32(0.5), asBinary)
		f.Add(float32(1), float32(1), float32(3), float32(0.5), asBinary)
		f.Add(float32(1), float32(1), float32(-5), float32(0.5), asBinary)
		f.Add(float32(1.5), float32(1), float32(1), float32(0.5), asBinary)
		f.Add(float32(1), float32(1), float32(1), float32(3e38), asBinary)
		f.Add(nan, float32(1), float32(1), nan, true)
		f.Add(float32(1), float32(1), float32(1), float32(math.Inf(1)), true)
	}
	f.Fuzz(func(t *testing.T, word, n, turn, a float32, asBinary bool) {
		sent := []struct {
			name      string
			low, high float32
			values    []float32
		}{{"word", 0, 3, []float32{word}}, {"n", 0, 3, []float32{n}}, {"turn", 1, 2, []float32{turn}}, {"input", 0, 0, []float32{a, a, 0.25}}}
		var inputs, wrong []string
		var tail []byte
		for _, in := range sent {
			datatype, content := "FP32", ""
			if asBinary {
				content = fmt.Sprintf(`"parameters":{"binary_data_size":%d}`, 4*len(in.values))
				for _, v := range in.values {
					tail = binary.LittleEndian.AppendUint32(tail, math.Float32bits(v))
				}
			} else {
				for _, v := range in.values {
					if v-v != 0 {
						return // JSON has no such number
					}
				}
				content = `"data":` + strings.ReplaceAll(fmt.Sprint(in.values), " ", ",")
			}
			inputs = append(inputs, fmt.Sprintf(`{"name":%q,"shape":[1,%d],"datatype":%q,%s}`, in.name, len(in.values), datatype, content))
			if v := in.values[0]; in.high > 0 && !(v >= in.low && v <= in.high && v == float32(int(v))) {
				wrong = append(wrong, in.name)
			}
		}
		head := fmt.Sprintf(`{"inputs":[%s],"outputs":[{"name":"sex.label"},{"name":"sex","parameters":{"binary_data":true}}]}`, strings.Join(inputs, ","))
		var headers []string
		if asBinary {
			headers = append(headers, fmt.Sprintf("%s: %d", headerLength, len(head)))
		}
		got := post(s, "/v2/models/run/infer", append([]byte(head), tail...), headers...)
		text := strings.ReplaceAll(string(got.body), `\"`, `"`)
		switch {
		case len(wrong) > 0:
			if got.status != http.StatusBadRequest || !slices.ContainsFunc(wrong, func(name string) bool { return strings.Contains(text, fmt.Sprintf("input %q", name)) }) {
				t.Errorf("status %d, want 400 that names one of %q: %s", got.status, wrong, text)
			}
		case got.status == http.StatusOK:
			logits := got.body[len(got.body)-8:]
			for i := range 2 {
				if v := math.Float32frombits(binary.LittleEndian.Uint32(logits[4*i:])); v-v != 0 {
					t.Errorf("a label for the logit %v: %s", v, text)
				}
			}
		case got.status != http.StatusBadRequest:
			t.Errorf("status %d: %s", got.status, text)
		}
	})
}
