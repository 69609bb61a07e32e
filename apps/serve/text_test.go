package serve

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// served trains the model m of a declaration and serves it as run.
func served(t *testing.T, declaration string) (*tessera.Run, *Server) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	trainRun(t, folder, declaration)
	run, err := tessera.Open(folder, tessera.Options{Threads: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = run.Close() })
	s, err := New([]Model{{Run: run, Name: "run"}}, Options{Workers: 1})
	fatal.If(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return run, s
}

// A text has the code of its counts, whatever its length and its characters.
func TestRequestsOfTexts(t *testing.T) {
	dir := t.TempDir()
	for i, text := range []string{"sun moon star", "sun star", "bread wine", "wine bread bread", "moon sun"} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), []byte(text), 0o600))
	}
	run, s := served(t, fmt.Sprintf("[model.m]\nkind = \"nmf\"\ncomponents = 2\ndataset = { name = \"text\", file = %q, validation = 0 }\n", dir))
	words := run.ColumnNames()
	counts := make([]float32, 2*len(words))
	for j, word := range words {
		counts[j], counts[len(words)+j] = map[string]float32{"sun": 2, "wine": 1}[word], map[string]float32{"bread": 1}[word]
	}
	want, err := run.Encode(counts)
	fatal.If(t, err)
	got, _ := asking(t, s, http.StatusOK, `{"name":"input","datatype":"BYTES","shape":[2],"data":["Sun, \"sun\" \u0026 wine!\n","bread unseen"]}`, `,"outputs":[{"name":"code"}]`)
	for i, v := range got["code"] {
		if d := v - want[i]; len(got["code"]) != len(want) || d > 1e-6 || d < -1e-6 {
			t.Fatalf("got %v, want %v", got["code"], want)
		}
	}
	for _, wrong := range []string{
		`{"name":"input","datatype":"FP32","shape":[1],"data":["sun"]}`,
		`{"name":"input","datatype":"BYTES","shape":[3],"data":["sun"]}`,
		`{"name":"input","datatype":"BYTES","shape":[1],"data":[1]}`,
		`{"name":"input","datatype":"BYTES","shape":[2],"data":["sun",1]}`,
		`{"name":"input","datatype":"BYTES","shape":[1],"data":["a\u0000b"]}`,
		`{"name":"input","datatype":"BYTES","shape":[1],"data":["sun"`,
		`{"name":"input","datatype":"BYTES","shape":[1],"parameters":{"binary_data_size":0}}`,
	} {
		asking(t, s, http.StatusBadRequest, wrong, "")
	}
}

// What a model reads of a text beside its tokens, such as their number, follows from the text.
func TestRequestsOfTextsNeedNoLength(t *testing.T) {
	table := filepath.Join(t.TempDir(), "t.csv")
	fatal.If(t, os.WriteFile(table, []byte("text,class\nsun moon star,sky\nsun star,sky\nbread wine,meal\nwine bread bread cheese,meal\n"), 0o600))
	run, s := served(t, fmt.Sprintf(`[model.m]
dataset = { file = %q, text = "text", labels = "class", tokens = "words", length = 6, validation = 0 }
encoder = [{ kind = "embedding", vocabulary = 20, units = 3, mask = "there" }]
decoder = []
head.there = { from = "length", layers = [{ kind = "first_tokens", tokens = 6 }] }
head.class = { layers = [{ kind = "dense" }] }
loss = [{ kind = "cross_entropy" }]
train = { epochs = 1, batch = 2 }
`, table))
	texts := []string{"sun wine", "bread bread cheese sun moon"}
	samples, err := data.WithVocabulary(run.Model.Dataset.Source, run.Tokens()).(data.TextReader).ReadTexts(t.Context(), texts)
	fatal.If(t, err)
	columns := samples.All()
	columns["images"] = samples.Float32()
	want, err := run.ValueOf("class", columns)
	fatal.If(t, err)
	got, _ := asking(t, s, http.StatusOK, `{"name":"input","datatype":"BYTES","shape":[2],"data":["sun wine","bread bread cheese sun moon"]}`, `,"outputs":[{"name":"class"}]`)
	expect.Equal(t, slices.Equal(got["class"], want), true, got["class"], want)
}
