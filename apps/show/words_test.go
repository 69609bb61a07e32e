package show

import (
	"testing"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/losses"
)

// Terms of one kind have the same explanation but for what differs.
func TestTermsOfOneKindAreToldApart(t *testing.T) {
	file, err := config.Load("models.toml", []byte(`
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
loss    = [
  { kind = "mse", relative = true, censored = true, weight = { kind = "linear", from = 1.0, to = 0.5, epochs = 3 } },
  { kind = "mse", relative = true, weight = 0.5 },
  { kind = "l1", weight = 0.1 },
  { kind = "l2", weight = 0.1 },
  { kind = "l2", weight = 0.1, on = "output" },
  { kind = "huber", on = "output" },
  { kind = "huber", on = "output", mask = "images" },
]
`))
	fatal.If(t, err)
	m, err := file.Model("m")
	fatal.If(t, err)
	for weights, want := range map[bool][]string{
		true:  {": censored, weight 1 to 0.5", ": not censored, weight 0.5", "", ": on code", ": on output", ": mask none", ": mask images"},
		false: {": censored", ": not censored", "", ": on code", ": on output", ": mask none", ": mask images"},
	} {
		for i, term := range Terms(m, weights).Rows {
			entry, _ := losses.Registry.Lookup(m.Losses[i].Kind)
			if about := Plain(entry.About) + want[i]; term[0] != m.TermName(i) || term[1] != about {
				t.Errorf("weights %v: got %q, want %q", weights, term, about)
			}
		}
	}
}

func TestNumbersOfUnitsAreAList(t *testing.T) { expect.Equal(t, Numbered([]int{0, 3, 10}), "0, 3, 10") }
