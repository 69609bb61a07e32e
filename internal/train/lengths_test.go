package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// sequences returns a model of sequences of at most 4 tokens in .npy files, one file for each column. The tokens after the end
// of a sequence have the value after.
func sequences(t testing.TB, after float32, sets ...string) *config.Model {
	t.Helper()
	dir := t.TempDir()
	file := func(name, kind string, shape string, bytes []byte) {
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", kind, shape)
		header += strings.Repeat(" ", 117-len(header)) + "\n"
		text := append([]byte("\x93NUMPY\x01\x00\x76\x00"), header...)
		fatal.If(t, os.WriteFile(filepath.Join(dir, name), append(text, bytes...), 0o600))
	}
	var x, tokens, length []byte
	for i := range 12 {
		n := 1 + i%4
		x, length = append(x, byte(20*i), byte(255-20*i)), append(length, byte(n))
		for j := range 4 {
			token := byte((i*3 + j*j) % 5)
			if j >= n {
				token = byte(after)
			}
			tokens = append(tokens, token)
		}
	}
	file("x.npy", "|u1", "(12, 2)", x)
	file("tokens.npy", "|i1", "(12, 4)", tokens)
	file("length.npy", "|i1", "(12,)", length)
	return model(t, strings.ReplaceAll(`
[model.sequences]
dataset = { name = "npy", images = "DIR/x.npy", validation = 0, columns = { tokens = "DIR/tokens.npy", length = "DIR/length.npy" } }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head.there = { from = "length", layers = [{ kind = "first_tokens", tokens = 4 }] }
head.goal = { from = "tokens", layers = [{ kind = "embedding", vocabulary = 5, units = 2, init = { kind = "normal", stddev = 1.0 } }] }
head.text = { from = "tokens", layers = [
  { kind = "embedding", vocabulary = 5, units = 6 }, { kind = "position" }, { kind = "transformer", heads = 2, ratio = 1.0, mask = "there" },
  { kind = "token_dense", units = 2 } ] }
head.sentence = { from = "head.text.2", layers = [{ kind = "take_token", mean = true, mask = "there" }, { kind = "dense", units = 2 }] }
freeze = ["head.goal.*"]
loss = [
  { kind = "mse", on = "text", against = "goal", mask = "there" },
  { kind = "mse", on = "sentence", against = "images" },
]
optimizer = { kind = "sgd", learning_rate = 0.1 }
train = { epochs = 3, batch = 5, checkpoint_seconds = 0 }
`, "DIR", dir), sets...)
}

// The values after the end of a sequence have no effect: neither the trained parameters nor the output for a sequence change
// in any bit.
func TestSequencesEndWhereTheirLengthSays(t *testing.T) {
	one, other := trained(t, sequences(t, 0), Options{Backend: engine.Backend{}}), trained(t, sequences(t, 4), Options{Backend: engine.Backend{}})
	for i, p := range one.Trained.Model.Parameters {
		q := other.Trained.Model.Parameters[i]
		for k, v := range p.Data {
			if math.Float32bits(v) != math.Float32bits(q.Data[k]) {
				t.Fatalf("%s: value %d is %v or %v, by what follows the ends", p.Path, k, v, q.Data[k])
			}
		}
	}
	if m := trained(t, sequences(t, 4, `head.sentence.layers.0.mask=`), Options{Backend: engine.Backend{}}); lines(t, m.Run)[2]["loss"] == lines(t, one.Run)[2]["loss"] {
		t.Error("without a mask the mean has the same loss: does the test tell them apart?")
	}
}

// The mask of a token applies to all of its features: the loss is the mean over the features of the tokens with mask 1.
func TestTheMaskOfTokensCountsForTheirFeatures(t *testing.T) {
	m := sequences(t, 3, "optimizer.learning_rate=1e-12", "train.batch=12", "train.epochs=1")
	r := trained(t, m, Options{Backend: engine.Backend{}})
	set, err := Options{}.load(t.Context(), &m.Dataset)
	fatal.If(t, err)
	c := graph.NewCoder(r.Trained.Model, engine.Backend{})
	value := func(name string) []float32 {
		given := set.Train.All()
		given[data.ImagesColumn] = set.Train.Float32()
		v, err := c.ValueOf(name, given)
		fatal.If(t, err)
		return v
	}
	text, goal, there := value("text"), value("goal"), value("there")
	sum, counted := 0.0, 0.0
	for i := range text {
		w, d := float64(there[i/2]), float64(text[i]-goal[i])
		sum, counted = sum+w*d*d, counted+w
	}
	if got, want := lines(t, r.Run)[0]["mse"].(float64), sum/counted; math.Abs(got-want) > 1e-6*want {
		t.Errorf("the term is %v, want %v", got, want)
	}
	expect.Error(t, expect.Err(m.With(parsedSets(t, "loss.1.mask=there")...)), "one for each of its tokens", "a mask of 4 tokens for a vector of 2")
}
