package config

import (
	"errors"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"tessera/internal/expect"
	"tessera/losses"
)

// density is a loss that compares two values of each sample with one target value.
type density struct{}

func init() {
	losses.Registry.Register("zz_density", "two numbers for each value", func() losses.Loss { return &density{} })
}

func (*density) On() string          { return losses.Code }
func (*density) Reads() losses.Reads { return losses.Reads{On: true, Against: losses.Images} }
func (*density) CheckAgainst(on, against int) error {
	if on != 2*against {
		return errors.New("want two units for each value")
	}
	return nil
}
func (*density) Build(v losses.Values) (*gorgonia.Node, error) { return v.On() }

func TestATermMayCompareValuesOfUnequalSizes(t *testing.T) {
	const text = `
[model.m]
dataset = { name = "csv", file = "testdata/columns.csv", columns = { images = ["x*"], y = ["y*"] } }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head.d.layers = [{ kind = "dense", units = 4 }]
loss = [{ kind = "zz_density", on = "d", against = "y" }]
`
	expect.NoError(t, load(t, text).Check())
	err := load(t, strings.Replace(text, "units = 4", "units = 5", 1)).Check()
	expect.Error(t, err, "loss[0] (zz_density): against: want two units for each value")
}

// A term that is compared with itself would always be 0, and no model reads what is hidden from it.
func TestATermIsComparedWithSomethingElse(t *testing.T) {
	const text = `
[model.m]
dataset = { name = "bars", hide = 0.1 }
encoder = [{ kind = "dense", units = 3 }]
head.size.layers = [{ kind = "dense", units = 1 }]
loss = [{ kind = "mse" }, { kind = "mse", on = "size", against = "size" }]
`
	expect.Error(t, load(t, text).Check(), `loss[1] (mse): against: the term compares "size" with itself`)
	column := `
[model.m]
dataset = { name = "csv", file = "testdata/columns.csv", columns = { images = ["x*"], size = ["y*"] } }
encoder = [{ kind = "dense", units = 3 }]
head.size.layers = [{ kind = "dense" }]
loss = [{ kind = "mse" }, { kind = "mse", on = "size", against = "size" }]
`
	err := load(t, column).Check()
	expect.Error(t, err, "the data set has a column of this name")
	expect.Equal(t, strings.Count(err.Error(), "models.toml:"), 1, err.Error())
	for old, hidden := range map[string]string{
		`against = "size"`: `against = "complete"`,
		`on = "size", `:    `mask = "held_out", `,
		`size.layers`:      `size.from = "held_out"` + "\nhead.size.layers",
	} {
		err := load(t, strings.Replace(text, old, hidden, 1)).Check()
		expect.Error(t, err, "a model must not see the values that are hidden from it", hidden)
	}
}
