package text

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"tessera/internal/random"
)

// A Word of the generated texts, with its known class. Words of one class occur in equal places.
type Word struct {
	Text    string
	Kind    string // "agent", "verb", "object", "place", "determiner", "adjective", "preposition", "relation" or "pronoun"
	Meaning string // what its texts are about, their label; "" for the words of all texts
	Plural  bool   // an agent, verb, relation or determiner of the plural
}

// meanings lists the words of each meaning: agents and verbs in the singular (the plural of an agent adds an s, that of a verb takes it away).
var meanings = []struct {
	name                           string
	agents, verbs, objects, places []string
}{
	{"farm", words("farmer shepherd miller herdsman gardener"), words("ploughs waters fences sows mows"), words("field barley wheat clover pasture"), words("barn meadow stable orchard mill")},
	{"kitchen", words("cook baker waiter brewer chef"), words("stirs tastes serves heats salts"), words("soup bread cheese sauce stew"), words("oven pantry cellar stove sink")},
	{"school", words("teacher pupil student tutor scholar"), words("reads copies explains recites quotes"), words("poem lesson riddle letter story"), words("library classroom blackboard desk museum")},
	{"sea", words("sailor captain pirate diver rower"), words("steers anchors boards repairs moors"), words("vessel raft frigate canoe ferry"), words("harbour island reef lighthouse pier")},
}

// The words of all texts. Determiners and relations are those of the singular, and of the plural.
var (
	determiners  = [2][]string{words("the a this every"), words("the these some many")}
	relations    = [2][]string{words("knows likes meets"), words("know like meet")}
	adjectives   = words("old small red famous quiet")
	prepositions = words("near behind beside inside")
)

func words(text string) []string { return strings.Fields(text) }

// plural returns the plural of an agent.
func plural(agent string) string {
	if root, ok := strings.CutSuffix(agent, "man"); ok {
		return root + "men"
	}
	return agent + "s"
}

// manyOf returns the form of the plural of a verb.
func manyOf(verb string) string {
	if root, ok := strings.CutSuffix(verb, "ies"); ok {
		return root + "y"
	}
	return strings.TrimSuffix(verb, "s")
}

// GrammarWords returns the words of the generated texts with their classes.
func GrammarWords() (list []Word) {
	add := func(kind, meaning string, plural bool, all ...string) {
		for _, w := range all {
			list = append(list, Word{w, kind, meaning, plural})
		}
	}
	for _, m := range meanings {
		for _, agent := range m.agents {
			add("agent", m.name, false, agent)
			add("agent", m.name, true, plural(agent))
		}
		for _, verb := range m.verbs {
			add("verb", m.name, false, verb)
			add("verb", m.name, true, manyOf(verb))
		}
		add("object", m.name, false, m.objects...)
		add("place", m.name, false, m.places...)
	}
	add("determiner", "", false, determiners[0]...)
	add("determiner", "", true, determiners[1][1:]...) // the is of both
	add("relation", "", false, relations[0]...)
	add("relation", "", true, relations[1]...)
	add("adjective", "", false, adjectives...)
	add("preposition", "", false, prepositions...)
	add("pronoun", "", false, "who")
	return list
}

// sentenceOf returns a sentence and the number of its meaning.
func sentenceOf(r *rand.Rand) (string, int) {
	meaning := r.IntN(len(meanings))
	m := meanings[meaning]
	var list []string
	one := func(from []string) string { return from[r.IntN(len(from))] }
	noun := func(of string, number int) {
		list = append(list, one(determiners[number]))
		if r.Float64() < 0.3 {
			list = append(list, one(adjectives))
		}
		list = append(list, of)
	}
	agent := func() (number int) {
		of := one(m.agents)
		if number = r.IntN(2); number == 1 {
			of = plural(of)
		}
		noun(of, number)
		return number
	}
	place := func(share float64) {
		if r.Float64() < share {
			list = append(list, one(prepositions))
			noun(one(m.places), 0)
		}
	}
	number := agent()
	if r.Float64() < 0.3 {
		list = append(list, "who", one(relations[number]))
		agent()
	}
	place(0.3)
	verb := one(m.verbs)
	if number == 1 {
		verb = manyOf(verb)
	}
	list = append(list, verb)
	noun(one(m.objects), 0)
	place(0.5)
	return strings.Join(list, " ") + ".", meaning
}

// name returns the path of the texts, for messages.
func (c *content) name() string { return cmp.Or(c.path, "grammar") }

// grammar generates texts, each from another random stream: a larger set begins with the texts of a smaller one.
func grammar(stream string, count int) *content {
	return &content{classed: true, read: func(ctx context.Context, _ *content, d *divider) error {
		for i := range count {
			if err := ctx.Err(); err != nil {
				return err
			}
			s, meaning := sentenceOf(random.Stream(1, stream, uint64(i)))
			d.text(one{fmt.Sprint(i), meanings[meaning].name}, s)
		}
		return nil
	}}
}
