package graph_test

import (
	"math"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

const stepText = `
[model.m]
encoder = [
  { kind = "embedding", vocabulary = 7, units = 6 },
  { kind = "position" },
  { kind = "residual", layers = [{ kind = "layer_norm" }, { kind = "attention", heads = 2, bias = true, causal = true }, { kind = "layer_scale" }] },
  { kind = "position", values = "sinusoidal" },
  { kind = "transformer", heads = 3, causal = true, dropout = 0.1 },
  { kind = "transformer", heads = 1, causal = true, position = "rotary" },
  { kind = "recurrent", units = 5 },
  { kind = "recurrent", units = 6, cell = "lstm" },
  { kind = "gelu" },
  { kind = "dropout" },
  { kind = "token_dense", units = 4, activation = "softmax", from = ["encoder.1", "previous"] },
]
decoder   = []
head.next = { from = "encoder.10", layers = [{ kind = "token_dense", units = 7 }, { kind = "softmax" }] }
head.flat = { layers = [{ kind = "dense", units = 7 }] }
head.all  = { from = "encoder.4", layers = [{ kind = "attention", heads = 2 }] }
head.both = { from = ["encoder.4", "images"], layers = [{ kind = "dense", units = 2 }] }
head.maps = { from = "encoder.4.attention", layers = [{ kind = "token_dense", units = 2 }] }
loss = [{ kind = "next_token" }, { kind = "l2", on = "flat" }, { kind = "l2", on = "all" }, { kind = "l2", on = "both" }, { kind = "l2", on = "maps" }]
`

// Token by token, a model of causal and token-wise layers gives the values that it gives for the whole sequence, also after tokens are taken back.
func TestStepsGiveTheValuesOfWholeSequences(t *testing.T) {
	const n, k = 9, 7
	members := team.New(2)
	defer members.Close()
	for name, backend := range map[string]ir.Backend{"engine": engine.Backend{Team: members}, "tape": tape.Backend{}} {
		c := graph.NewCoder(model(t, stepText, "m", n), backend)
		s, err := c.Step("next")
		fatal.If(t, err, name)
		tokens := []float32{3, 1, 4, 1, 5, 6, 2, 0, 6}
		for at, want := 0, []float32(nil); at < n; at++ {
			if at == 6 && tokens[4] == 5 {
				s.Truncate(4)
				at, tokens[4] = 4, 2
			}
			if want, err = c.Value("next", tokens); err != nil {
				t.Fatal(name, err)
			}
			got, err := s.Next(tokens[at])
			fatal.If(t, err, name)
			for i, v := range got {
				if w := want[at*k+i]; !(math.Abs(float64(v-w)) < 1e-6) {
					t.Fatalf("%s: token %d, value %d: got %v, whole %v", name, at, i, v, w)
				}
			}
		}
		expect.Error(t, expect.Err(s.Next(0)), "at most 9 tokens", name, "a token behind the last one")
		s.Truncate(0)
		expect.Error(t, expect.Err(s.Next(7)), "got 7", name, "a token that is not in the table")
		for _, value := range []string{"flat", "all", "both", "maps"} {
			expect.AnyError(t, expect.Err(c.Step(value)), name, "the head", value, "has no values of one token, but steps")
		}
	}
}
