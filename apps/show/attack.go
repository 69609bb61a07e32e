package show

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/apps/show/doc"
	"tessera/attack"
	"tessera/internal/numeral"
)

// Attacked returns the document about attacks on the reconstructions of a run.
func Attacked(r *attack.Report) *doc.Document {
	t := &doc.Table{Columns: []doc.Column{{Title: "norm"}, {Title: "epsilon", Right: true}, {Title: "attack"}, {Title: "settings", Spare: 1}, {Title: "mse", Right: true, Better: doc.Lower},
		{Title: "times clean", Right: true}, {Title: "code change", Right: true}}}
	t.Row("clean", "", "", "", r.MSE, doc.Shown{Text: "1.0"}, doc.Fixed3(0))
	for _, a := range r.Attacks {
		t.Row(a.Norm, doc.Exact(a.Epsilon), a.Method, settingsOf(a.Described), a.MSE, doc.Shown{Text: numeral.Fixed(a.MSE/r.MSE, 1)}, doc.Fixed3(a.CodeChange))
	}
	d := &doc.Document{Data: r}
	d.Add(t)
	d.Add(attackedOn(r.Images, r.Dataset, r.Place))
	return d
}

// attackedOn says which samples were attacked.
func attackedOn(n int, dataset string, p attack.Place) *doc.Note {
	text := fmt.Sprintf("attacked: %s of split %s of %s", numeral.Of(n, "sample"), p.Split, dataset)
	if p.Note != "" {
		text += " (" + p.Note + ")"
	}
	return doc.Remark("%s", text)
}

// Judged returns the document about attacks on a head.
func Judged(j *attack.Judgement) *doc.Document {
	d := &doc.Document{Data: j}
	d.Add(JudgedTable(j, ""))
	d.Add(attackedOn(j.Images, j.Dataset, j.Place))
	for _, r := range j.Trials {
		if len(r.Curve) > 0 {
			text := fmt.Sprintf("%s %s %s, accuracy after queries:", r.Method, r.Norm, numeral.Exact(r.Epsilon))
			for _, p := range r.Curve {
				text += fmt.Sprintf("  %d: %s", p.Queries, numeral.Fixed(p.Accuracy, 4))
			}
			d.Add(doc.Remark("%s", text))
		}
	}
	if j.From != "" {
		d.Add(doc.Remark("examples computed on %s", j.From))
	}
	for _, m := range j.Masked {
		d.Add(doc.Warning("%s", m))
	}
	return d
}

// JudgedTable returns the table of attacks on a head, with the clean images in the first row. note follows the names of the attacks.
func JudgedTable(j *attack.Judgement, note string) *doc.Table {
	t := &doc.Table{Columns: []doc.Column{{Title: "norm"}, {Title: "epsilon", Right: true}, {Title: "attack"}, {Title: "objective", Spare: 1}, {Title: "settings", Spare: 2},
		{Title: "accuracy", Right: true, Better: doc.Higher}, {Title: "95 % interval", Right: true}, {Title: "risk", Right: true, Better: doc.Lower}}}
	row := func(norm, epsilon, name, objective, settings any, a attack.Accuracy, risk float64) {
		t.Row(norm, epsilon, name, objective, settings, doc.Shown{Text: numeral.Fixed(a.Value, 4)}, doc.Shown{Text: numeral.Fixed(a.Low, 4) + " to " + numeral.Fixed(a.High, 4)}, doc.Shown{Text: numeral.Fixed(risk, 4)})
	}
	row("clean", "", "", "", "", j.Accuracy, j.Risk)
	for _, r := range j.Trials {
		row(r.Norm, doc.Exact(r.Epsilon), r.Method+note, string(r.Objective), settingsOf(r.Described), r.Accuracy, r.Risk)
	}
	return t
}

// settingsOf returns the settings of an attack in one line: "steps 40, restarts 2".
func settingsOf(d attack.Described) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(d.Settings)) {
		if key != "step_size" { // follows from the steps
			all = append(all, strings.TrimSuffix(fmt.Sprintf("%s %v", strings.ReplaceAll(key, "_", " "), d.Settings[key]), " true"))
		}
	}
	return strings.Join(all, ", ")
}
