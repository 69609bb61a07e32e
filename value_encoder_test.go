package tessera_test

import (
	"testing"

	"tessera"
)

// headText declares a model with a head.
const headText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "dense", units = 10, activation = "sigmoid" }]
head = { side = { from = "code", layers = [{ kind = "dense", units = 3 }] } }
loss = [{ kind = "mse" }, { kind = "l1", on = "side", weight = 0.001 }]`

func TestAnEncoderComputesAnyValue(t *testing.T) {
	for model, values := range map[string][]string{headText: {"code", "output", "side"}, baselineText: {"code", "output"}} {
		run := untrained(t, model, tessera.Options{Threads: 1})
		x := randomImages(run, 9, 4)
		for _, value := range values {
			var want []float32
			var err error
			if value == "output" {
				want = singly(t, singly(t, x, pixels(run), run.Encode), run.Units(), run.Decode)
			} else if value == "code" {
				want = singly(t, x, pixels(run), run.Encode)
			} else {
				want, err = run.Value(value, x)
			}
			if err != nil {
				t.Fatal(err)
			}
			e := encoder(t, run, tessera.EncoderOptions{Value: value, Workers: 1})
			got, err := e.Encode(t.Context(), nil, x)
			if err != nil || !sameBits(got, want) || e.Units() != len(want)/9 {
				t.Errorf("%s: %d values of %d each, %v; want %d, the same", value, len(got), e.Units(), err, len(want))
			}
		}
		if _, err := run.Encoder(tessera.EncoderOptions{Value: "nothing"}); err == nil {
			t.Error("a value that the model does not have: no error")
		}
	}
}
