package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/sweep"
)

// words says what the sweep is.
func (s *Sweep) words(r *sweep.Results, models []*config.Model) {
	names, seeds := []string{}, 0
	for _, t := range r.Trials {
		if !slices.Contains(names, t.Model) {
			names = append(names, t.Model)
		}
	}
	equal := true // number of seeds
	for _, one := range r.Settings {
		equal = equal && len(one.Trials) == len(r.Settings[0].Trials)
		seeds = max(seeds, len(one.Trials))
	}
	each := "each with "
	if !equal {
		each += "up to "
	}
	s.Words = append(s.Words, fmt.Sprintf("The sweep %s trains %s (%s): %s, %s%s, %s in all.", r.Sweep, plural(len(names), "model"), strings.Join(names, ", "),
		plural(len(r.Settings), "setting"), each, plural(seeds, "seed"), plural(len(r.Trials), "trial")))
	for _, m := range models {
		s.Words = append(s.Words, modelText(m, s.Noun)...)
	}
	if len(models) == 1 {
		s.Terms = termsOf(models[0])
	}
	var varied []string
	for i, key := range r.Keys {
		if s.Names[i] != key {
			key = fmt.Sprintf("the %s (%s)", s.Names[i], key)
		}
		varied = append(varied, key)
	}
	if len(varied) > 0 {
		s.Words = append(s.Words, "It varies "+strings.Join(varied, " and ")+".")
	}
	s.Words = append(s.Words, s.measuredText(r, models))
}

// modelText says what a model of a sweep is: its declaration, layers, objective and data.
func modelText(m *config.Model, noun string) (list []string) {
	if m.Baseline != nil {
		list = append(list, fmt.Sprintf("%s is a baseline of kind %s.", m.Name, m.Kind))
	} else {
		list = append(list, layersText(m, noun, article(noun), "a code")+" It is trained "+scheduleText(m)+".")
	}
	if m.About != "" {
		list = append(list, "Its declaration says: "+strings.TrimSuffix(m.About, ".")+".")
	}
	var terms []string
	for i := range m.Losses {
		terms = append(terms, m.TermName(i))
	}
	if len(terms) > 0 {
		sum := ""
		if len(terms) > 1 {
			sum = "a weighted sum of "
		}
		list = append(list, "It minimises "+sum+strings.Join(terms, ", ")+".")
	}
	return list
}

// measuredText says how many trials are measured, and on which images.
func (s *Sweep) measuredText(r *sweep.Results, models []*config.Model) string {
	done, images := 0, []string{}
	for _, t := range r.Trials {
		if t.Metrics == nil {
			continue
		}
		done++
		if text := grouped(t.Metrics.Images) + " " + s.Noun + "s of " + t.Metrics.Dataset; !slices.Contains(images, text) {
			images = append(images, text)
		}
	}
	state := "All trials are measured"
	if done < len(r.Trials) {
		state = fmt.Sprintf("%d of %d trials are measured", done, len(r.Trials))
	}
	if len(images) > 0 {
		state += ", on " + strings.Join(images, ", ")
	}
	held := slices.ContainsFunc(models, func(m *config.Model) bool { return data.HasTest(m.Dataset.Source) || m.Dataset.Validation.Fraction > 0 })
	switch {
	case r.Split == string(data.TestSplit):
		state += ", its test " + s.Noun + "s"
	case r.Split == string(data.ValidationSplit):
		state += " that the training held out for validation"
	case r.Split == string(data.TrainSplit), !held && len(models) > 0:
		s.Warning = fmt.Sprintf("No %[1]ss were held out: the trials are measured on the %[1]ss on which they were trained. Unseen %[1]ss may be reconstructed worse.", s.Noun)
		if held {
			s.Warning = fmt.Sprintf("The trials are measured on the %[1]ss on which they were trained. Unseen %[1]ss may be reconstructed worse.", s.Noun)
		}
	case r.Split == string(data.AllSplit):
		s.Warning = fmt.Sprintf("The %ss on which the trials were trained are among those that were measured.", s.Noun)
	}
	return state + "."
}

// keyNames are the keys of a sweep in words that hold for all models; a key that has none stays as it is.
func keyNames(keys []string, models []*config.Model) []string {
	names := slices.Clone(keys)
	for i, key := range keys {
		for n, m := range models {
			name := keyName(key, m)
			if n > 0 && name != names[i] {
				name = key
			}
			names[i] = name
			if name == key {
				break
			}
		}
	}
	return names
}

// keyName is a key of a model in words: loss.1.weight is "weight of the kl term".
func keyName(key string, m *config.Model) string {
	parts := strings.Split(key, ".")
	last := strings.ReplaceAll(parts[len(parts)-1], "_", " ")
	switch {
	case len(parts) == 2 && parts[0] == "optimizer":
		return last + " of the optimizer"
	case len(parts) == 2 && parts[0] == "dataset":
		return last + " of the data set"
	case len(parts) != 3:
		return key
	}
	i, err := strconv.Atoi(parts[1])
	if err != nil || i < 0 {
		return key
	}
	switch {
	case parts[0] == "loss" && i < len(m.Losses):
		return last + " of the " + m.TermName(i) + " term"
	case parts[0] == "constraint" && i < len(m.Constraints):
		return last + " of the constraint " + m.Constraints[i].Kind
	case parts[0] == "encoder" && i < len(m.Encoder):
		return fmt.Sprintf("%s of layer %d of the encoder", last, i+1)
	case parts[0] == "decoder" && i < len(m.Decoder):
		return fmt.Sprintf("%s of layer %d of the decoder", last, i+1)
	}
	return key
}
