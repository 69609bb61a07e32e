package train

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorgonia.org/gorgonia"

	"tessera/graph/ops"
	"tessera/losses"
)

// undefined is a loss term whose value is NaN.
type undefined struct{}

func (undefined) On() string          { return losses.Code }
func (undefined) Reads() losses.Reads { return losses.Reads{On: true} }
func (undefined) Build(v losses.Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Mean(c.Log(c.Shift(c.Neg(c.Square(c.Do("code", v.On))), -1))), c.Err()
}

func init() {
	losses.Registry.Register("undefined", "is NaN", func() losses.Loss { return &undefined{} })
}

func TestATermThatIsNaNIsNamed(t *testing.T) {
	const terms = `loss = [{ kind = "mse" }, { kind = "undefined", name = "wrong"%s }, { kind = "l2", on = "code" }]` + "\n"
	for name, rest := range map[string]string{
		"a model":                 fmt.Sprintf(terms, ""),
		"a term of weight 0":      fmt.Sprintf(terms, ", weight = 0"),
		"a schedule from 0":       fmt.Sprintf(terms, `, weight = { kind = "linear", from = 0.0, to = 1.0, epochs = 2 }`),
		"an adaptive weight":      fmt.Sprintf(terms, `, weight = { kind = "multiplier", limit = 1.0, rate = 0.1 }`),
		"players":                 fmt.Sprintf(terms, "") + `player = { a = { trains = "encoder.*" }, b = { trains = "decoder.*", losses = ["mse"] } }`,
		"players that take turns": fmt.Sprintf(terms, "") + `player = { a = { trains = "encoder.*", steps = 1 }, b = { trains = "decoder.*", losses = ["mse"] } }`,
	} {
		t.Run(name, func(t *testing.T) {
			m := model(t, "[model.m]\ndataset = { name = \"bars\", count = 20 }\nencoder = [{ kind = \"dense\", units = 3 }]\n"+rest)
			_, err := Run(context.Background(), m, Options{Out: place(t)})
			if d, ok := errors.AsType[*Diverged](err); !ok || d.Tensor != "loss.wrong" || d.Step != 1 {
				t.Errorf("got %v", err)
			}
		})
	}
}
