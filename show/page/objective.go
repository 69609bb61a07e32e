package page

import (
	"fmt"
	"math"
	"strings"

	"tessera/config"
	"tessera/constraints"
	"tessera/losses"
)

// Term is one term of an objective and what it is.
type Term struct{ Name, About string }

// objectiveOf says what a training minimises and under which constraints, "" for a baseline.
func objectiveOf(m *config.Model) string {
	var terms, sets []string
	changing := false
	for i, l := range m.Losses {
		factor := ""
		first, last := l.Weight.At(0), l.Weight.At(math.Inf(1))
		_, constant := l.Weight.(*losses.Constant)
		_, adaptive := l.Weight.(losses.Adaptive)
		switch {
		case adaptive:
			factor, changing = "(adapted) × ", true
		case !constant:
			factor, changing = fmt.Sprintf("(%s to %s) × ", short(first), short(last)), true
		case first != 1:
			factor = short(first) + " × "
		}
		terms = append(terms, factor+m.TermName(i))
	}
	if len(terms) == 0 {
		return ""
	}
	text := "It minimises " + strings.Join(terms, " + ")
	if changing {
		text += ", where a weight in brackets changes during the training,"
	}
	for i, c := range m.Constraints {
		if i > 0 && m.Constraints[i-1].On == c.On {
			sets = append(sets, constraintText(c))
		} else {
			sets = append(sets, parametersText(c.On)+" kept "+constraintText(c))
		}
	}
	if len(sets) > 0 {
		text = strings.TrimSuffix(text, ",") + ", with " + strings.Join(sets, " and ")
	}
	return strings.TrimSuffix(text, ",") + "."
}

// constraintText says what a constraint demands.
func constraintText(c config.Constraint) string {
	switch c.Kind {
	case "nonneg":
		return "non-negative"
	case "unit_norm":
		return "of length 1 in every row"
	}
	about := ""
	if entry, ok := constraints.Registry.Lookup(c.Kind); ok {
		about, _, _ = strings.Cut(entry.About, ": ")
	}
	return fmt.Sprintf("%s (%s)", c.Kind, about)
}

// parametersText names the parameters that a glob matches.
func parametersText(glob string) string {
	if glob == "decoder.*.weight" {
		return "the weights of the decoder"
	}
	return glob
}

// termsOf explains the terms of an objective.
func termsOf(m *config.Model) (list []Term) {
	for i, l := range m.Losses {
		if entry, ok := losses.Registry.Lookup(l.Kind); ok {
			list = append(list, Term{m.TermName(i), plain(entry.About)})
		}
	}
	return list
}
