package config

import (
	"strings"
	"testing"

	"tessera/internal/expect"
)

const played = `[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }, { kind = "l1", name = "sparse", weight = 0.1 }]
[model.m.player.a]
trains = "encoder.*"
losses = "mse"
steps = 2
[model.m.player.b]
trains = ["decoder.*"]
losses = ["mse", "sparse"]
optimizer = { kind = "sgd", learning_rate = 0.1 }
`

func TestPlayersAreResolved(t *testing.T) {
	m := model(t, load(t, played), "m")
	checkFillRoundTrip(t, m)
	all := m.AllPlayers()
	if len(all) != 2 || all[0].Name != "a" || all[0].Optimizer.Kind != "adam" || all[1].Optimizer.Kind != "sgd" || all[0].Steps != 2 || all[1].Steps != 1 ||
		len(all[0].Terms) != 1 || len(all[1].Terms) != 2 || !m.Opposed() {
		t.Errorf("got %+v", all)
	}
	want := []struct{ player, own int }{{0, 1}, {0, 2}, {1, 1}, {0, 3}, {0, 4}, {1, 2}}
	for i, w := range want {
		if player, own := m.Turn(i + 1); player != w.player || own != w.own {
			t.Errorf("step %d: player %d, its step %d; want %+v", i+1, player, own, w)
		}
	}
}

func TestPlayersThatCannotWorkAreRefusedAtTheirPlace(t *testing.T) {
	for old, c := range map[string][2]string{
		`trains = "encoder.*"`:              {`trains = "encoder.0.weight"`, `models.toml:5:2: model "m": player.a: no player trains encoder.0.bias`},
		`["decoder.*"]`:                     {`["decoder.*", "encoder.0.bias"]`, `models.toml:10:10: model "m": player.b: trains: encoder.0.bias also belongs to the player "a"`},
		`losses = "mse"`:                    {`losses = "mze"`, `models.toml:7:10: model "m": player.a: losses: the model has no loss term "mze"`},
		`["mse", "sparse"]`:                 {`["mse"]`, `loss[1] (l1): no player minimises the term "sparse"`},
		`kind = "sgd", learning_rate = 0.1`: {`kind = "lbfgs"`, `model "m": player.b.optimizer: lbfgs minimises one objective over all images`},
		`name = "sparse"`:                   {`name = "mse"`, `name: "mse" is also the name of loss[0]`},
		`"l1", name = "sparse"`:             {`"l1", name = "a.b"`, `name: "a.b" cannot be the key of a term`},
		"[model.m.player.a]":                {"[model.m.optimizer]\nkind = \"lbfgs\"\n[model.m.player.a]", `player.a: lbfgs minimises one objective`},
		"steps = 2":                         {"steps = 0", `steps: got 0`},
	} {
		text := strings.Replace(played, old, c[0], 1)
		expect.Error(t, load(t, text).Check(), c[1], c[0])
	}
}
