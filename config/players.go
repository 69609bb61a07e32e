package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/config/part/table"
	"tessera/optim"
)

// Player is a group of parameters with its own objective and optimizer. Each of its steps changes the parameters that
// match Trains, by the gradient of its loss terms. Every trainable parameter belongs to exactly one player.
type Player struct {
	Trains    Names      `toml:"trains" required:"true" doc:"globs over the parameter paths of the player: one, or a list"`
	Losses    Names      `toml:"losses" optional:"true" doc:"names of the loss terms that it minimises: one, or a list; all of them by default"`
	Steps     int        `toml:"steps" want:"> 0" doc:"steps that the player makes in a row before the next one has its turn; without any steps all players move in every step"`
	Optimizer *Optimizer `toml:"optimizer" doc:"its update rule; that of the model by default"`
}

// Moving is one player of a model, with defaults filled in.
type Moving struct {
	Name      string // "" for the only player of a model without players
	Trains    Names  // globs of the trained parameters; nil for all parameters
	Terms     []int  // indices of the loss terms that the player minimises
	Steps     int    // number of consecutive steps in one turn; 0 if all players make every step
	Optimizer *Optimizer
}

// Moves reports whether the player trains the parameter with the given path.
func (p Moving) Moves(parameter string) bool {
	return p.Trains == nil || slices.ContainsFunc(p.Trains, func(glob string) bool { return MatchPath(glob, parameter) })
}

// AllPlayers returns the players, sorted by name. They take turns in this order. A model without declared players has
// one player.
func (m *Model) AllPlayers() (list []Moving) {
	turns := m.TakesTurns()
	for _, name := range slices.Sorted(maps.Keys(m.Players)) {
		p := m.Players[name]
		one := Moving{Name: name, Trains: p.Trains, Steps: p.Steps, Optimizer: p.Optimizer}
		if one.Optimizer == nil {
			one.Optimizer = &m.Optimizer
		}
		if turns {
			one.Steps = max(1, p.Steps)
		}
		for i := range m.Losses {
			if len(p.Losses) == 0 || slices.Contains(p.Losses, m.TermName(i)) {
				one.Terms = append(one.Terms, i)
			}
		}
		list = append(list, one)
	}
	if len(list) > 0 {
		return list
	}
	one := Moving{Optimizer: &m.Optimizer}
	for i := range m.Losses {
		one.Terms = append(one.Terms, i)
	}
	return []Moving{one}
}

// TakesTurns reports whether the players make their steps in turns. If not, every step updates the parameters of all
// players.
func (m *Model) TakesTurns() bool {
	for _, p := range m.Players {
		if p.Steps > 0 {
			return true
		}
	}
	return false
}

// Turn returns the player that makes a step, as an index in [Model.AllPlayers], and the number of steps that this
// player has made, including this one. The player's optimizer uses this number. Steps count from 1. If every step
// updates all players, Turn returns -1 and step.
func (m *Model) Turn(step int) (player, own int) {
	if !m.TakesTurns() {
		return -1, step
	}
	all, round := m.AllPlayers(), 0
	for _, p := range all {
		round += p.Steps
	}
	rounds, at := (step-1)/round, (step-1)%round
	for at >= all[player].Steps {
		at -= all[player].Steps
		player++
	}
	return player, rounds*all[player].Steps + at + 1
}

// Opposed reports whether the players minimise different terms. The sum of the terms then does not measure the model.
func (m *Model) Opposed() bool {
	all := m.AllPlayers()
	return slices.ContainsFunc(all, func(p Moving) bool { return !slices.Equal(p.Terms, all[0].Terms) })
}

// players checks the players: names, globs, terms and optimizers, and that every parameter and every term belongs to a
// player.
func (w *walk) players() {
	m := w.model
	if len(m.Players) == 0 || m.inDoubt("player") {
		return
	}
	sound := !m.inDoubt("loss") && !m.inDoubt("freeze")
	for _, name := range slices.Sorted(maps.Keys(m.Players)) {
		sound = w.player(name, m.Players[name]) && sound
	}
	if !sound || len(w.names)+len(w.open) > 0 {
		return // unknown which parameters are trained
	}
	w.owned()
	for i, l := range m.Losses {
		if !slices.ContainsFunc(m.AllPlayers(), func(p Moving) bool { return slices.Contains(p.Terms, i) }) {
			w.report(fmt.Sprintf("loss[%d]", i), l.Kind, "", fmt.Sprintf("no player minimises the term %q", m.TermName(i)),
				fmt.Sprintf("add it to the losses of a player: %s", table.Quoted(slices.Sorted(maps.Keys(m.Players)))))
		}
	}
}

// playerPart returns the location of a player in the declaration.
func playerPart(name string) string { return "player." + table.KeyText(name) }

func (w *walk) player(name string, p Player) bool {
	m, part, before := w.model, playerPart(name), len(w.found)
	if m.origin.Doubt(part) != nil {
		return false
	}
	if name == "" || strings.ContainsAny(name, `./*?[]\ `) {
		w.report(part, "", "", fmt.Sprintf("invalid name %q of a player: keys of metrics contain the name", name), "")
	}
	for _, glob := range p.Trains {
		w.glob(part, "", "trains", glob)
	}
	terms := m.Terms()
	for _, term := range p.Losses {
		if !slices.Contains(terms, term) && !m.inDoubt("loss") {
			w.report(part, "", "losses", fmt.Sprintf("losses: the model has no loss term %q", term), table.Suggest(term, terms))
		}
	}
	o, at, key := p.Optimizer, part+".optimizer", "kind"
	if o == nil {
		o, at, key = &m.Optimizer, part, ""
	}
	if _, search := o.Optimizer.(optim.Search); search {
		w.report(at, "", key, fmt.Sprintf("%s minimises one objective over all images: a player takes steps", o.Kind),
			"choose a mini-batch optimizer: "+table.Quoted(rules()))
	}
	return len(w.found) == before
}

// owned reports the first trainable parameter without a player, and the first one with two players.
func (w *walk) owned() {
	all := w.model.AllPlayers()
	for _, p := range w.all {
		if p.State || p.Of != "" || w.model.Frozen(p.Path) {
			continue
		}
		var owners []string
		for _, one := range all {
			if one.Moves(p.Path) {
				owners = append(owners, one.Name)
			}
		}
		switch {
		case len(owners) == 0:
			w.report(playerPart(all[0].Name), "", "", fmt.Sprintf("no player trains %s", p.Path), "add it to trains of a player, or freeze it")
			return
		case len(owners) > 1:
			w.report(playerPart(owners[1]), "", "trains", fmt.Sprintf("trains: %s also belongs to the player %q", p.Path, owners[0]), "a parameter has one player")
			return
		}
	}
}

// reservedTerms are keys of metrics.jsonl that cannot be names of terms.
var reservedTerms = []string{"epoch", "step", "loss", "learning_rate", "images_per_second", "seconds", "crc32"}

// termNames checks the names of the loss terms.
func (w *walk) termNames() {
	first := map[string]int{}
	for i, l := range w.model.Losses {
		name := w.model.TermName(i)
		part := fmt.Sprintf("loss[%d]", i)
		switch before, taken := first[name]; {
		case l.Name != "" && (strings.ContainsAny(name, `./*?[]\ `) || strings.HasPrefix(name, "val_") || slices.Contains(reservedTerms, name)):
			w.report(part, l.Kind, "name", fmt.Sprintf("name: %q cannot be the key of a term in metrics.jsonl", name), "take letters, digits, - and _")
		case taken:
			if l.Name == "" {
				i, before = before, i
			}
			w.report(fmt.Sprintf("loss[%d]", i), w.model.Losses[i].Kind, "name", fmt.Sprintf("name: %q is also the name of loss[%d]", name, before), "give it another name")
		}
		first[name] = i
	}
}
