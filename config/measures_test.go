package config

import (
	"fmt"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/losses"
)

func TestModelsAreJudgedByWhatTheyAre(t *testing.T) {
	const auto = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 4 }]\n"
	const vae = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"gaussian\", units = 4 }]\nloss = [{ kind = \"mse\" }, { kind = \"gaussian_kl\" }]\n"
	const classes = "[model.m]\ndataset = \"fashion-mnist\"\nencoder = [{ kind = \"dense\", units = 4 }]\ndecoder = []\n" +
		"head.class = { layers = [{ kind = \"dense\" }] }\nloss = [{ kind = \"cross_entropy\", on = \"class\" }]\n"
	const views = "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 4 }]\nview = [{ augment = [] }]\nloss = [{ kind = \"mse\" }, { kind = \"nt_xent\", on = \"code\" }]\n"
	const numbers = "[model.m]\ndataset = { name = \"csv\", file = \"testdata/columns.csv\", columns = { target = \"w\" } }\nencoder = [{ kind = \"dense\", units = 4 }]\ndecoder = []\n" +
		"head.y = { layers = [{ kind = \"dense\" }] }\nloss = [{ kind = \"mae\", on = \"y\", against = \"target\" }]\n"
	for text, want := range map[string][]string{auto: {"mse", "accuracy"}, vae: {"elbo", "elbo_likelihood"}, classes: {"accuracy", "nll"},
		views: {"mse", "linear_probe_accuracy"}, numbers: {"mae", "rmse"}} {
		m, err := load(t, text).Model("m")
		fatal.If(t, err)
		expect.Slice(t, m.Measures()[:2], want, text)
	}
}

// A model that is linear in the data has no units: nothing says how sparse or dead they are.
func TestAModelWithoutUnitsIsNotJudgedByThem(t *testing.T) {
	const linear = "[model.m]\ndataset = \"fashion-mnist\"\nencoder = [{ %s }]\ndecoder = []\n" +
		"head.class = { layers = [{ kind = \"dense\" }] }\nloss = [{ kind = \"cross_entropy\", on = \"class\" }]\n"
	for encoder, want := range map[string]bool{`kind = "flatten"`: false, `kind = "dense", units = 3`: true} {
		m, err := load(t, fmt.Sprintf(linear, encoder)).Model("m")
		fatal.If(t, err)
		if got := slices.ContainsFunc(m.Measures(), OfUnits); got != want || m.HasUnits() != want {
			t.Errorf("%s: measures %q, has units: %v; want units: %v", encoder, m.Measures(), m.HasUnits(), want)
		}
	}
}

// Of several terms that predict tokens, the language of a model is that of the nearest ones.
func TestTheLanguageOfAModelIsThatOfTheNearestTokens(t *testing.T) {
	m := &Model{}
	for _, shift := range []int{2, 1, 3} {
		m.Losses = append(m.Losses, Loss{Loss: &losses.NextToken{Shift: shift}, On: []string{"", "near", "far", "farther"}[shift]})
	}
	if l := m.Language(); l == nil || l.Shift != 1 || l.Value != "near" {
		t.Errorf("got %+v, want the value near with the shift 1", l)
	}
	if l := (&Model{}).Language(); l != nil {
		t.Errorf("a model of no tokens: got %+v", l)
	}
}
