package show

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// elsewhere matches the end of a description that refers to documents outside the page.
var elsewhere = regexp.MustCompile(`, as in (?:later notebooks|tables)[^;]*$`)

// AboutOf returns a description of a measure.
func AboutOf(m metrics.Measure) string { return elsewhere.ReplaceAllString(Plain(m.Summary()), "") }

// Also adds metrics to a selection that are left out where they do not apply. A nil selection is [metrics.Default].
func Also(chosen metrics.Selection, names ...string) (metrics.Selection, error) {
	more, err := metrics.Select(names...)
	if err != nil {
		return nil, err
	}
	for i := range more {
		more[i].Optional = true
	}
	if chosen == nil {
		chosen = metrics.Default()
	}
	return chosen.Add(more), nil
}

// ValueOf returns a measured number as a value of a document: a count is a whole number.
func ValueOf(name string, v float64) any {
	if m, _ := metrics.MeasureOf(name); m.Count && !math.IsNaN(v) {
		return int(v)
	}
	return v
}

// valueIn returns the value of a metric in a result, nil if it has none.
func valueIn(r *metrics.Result, name string) any {
	if r == nil {
		return nil
	}
	return Value(r, name)
}

// Value returns a measured number by its name as a value of a document, nil if there is none.
func Value(of interface {
	Number(name string) (float64, bool)
}, name string) any {
	if v, ok := of.Number(name); ok {
		return ValueOf(name, v)
	}
	return nil
}

// Numbers returns the measured numbers of a report as a table: one column for the samples that were measured, one for fitted samples if
// they were measured too. Variants of metrics follow in a second table. named says that the metrics were selected by name: those without
// a value are shown too.
func Numbers(r *evaluation.Report, named bool) []doc.Block {
	split := r.Split
	if r.Note != "" {
		split += " (" + r.Note + ")"
	}
	heads, results := []string{split}, []*metrics.Result{r.Result}
	fitted := func(measured int) any {
		if measured < r.FittedImages {
			return doc.Shown{Value: measured, Text: numeral.Count(measured) + " of " + numeral.Count(r.FittedImages)}
		}
		return measured
	}
	images := []any{r.Counted(), r.Images}
	if !r.HeldOut {
		images[1] = fitted(r.Images)
	}
	if r.Fitted != nil {
		heads, results = append(heads, r.Fitted.Split+" (fitted)"), append(results, r.Fitted)
		images = append(images, fitted(r.Fitted.Images))
	}
	return numberTables("split", named, heads, results, images)
}

// NumberTables returns the numbers of results side by side. first are the cells of rows before those of the metrics.
func NumberTables(of string, heads []string, results []*metrics.Result, first ...[]any) []doc.Block {
	return numberTables(of, false, heads, results, first...)
}

func numberTables(of string, named bool, heads []string, results []*metrics.Result, first ...[]any) []doc.Block {
	columns := []doc.Column{{Title: of}}
	for _, head := range heads {
		columns = append(columns, doc.Column{Title: head})
	}
	columns = append(columns, doc.Column{Title: "better", Minor: true}, doc.Column{Title: "what it is", Wrap: true, Minor: true})
	main, other := &doc.Table{Columns: columns}, &doc.Table{Title: "Variants of these numbers", Columns: columns, Folded: true}
	for _, cells := range first {
		main.Row(cells...)
	}
	for _, name := range inOrder(results, named) {
		m, _ := metrics.MeasureOf(name)
		row := []any{name}
		for _, r := range results {
			row = append(row, valueIn(r, name))
		}
		row = append(row, string(m.Better), AboutOf(m))
		if metrics.IsVariant(name) {
			other.Row(row...)
		} else {
			main.Row(row...)
		}
	}
	blocks := []doc.Block{main}
	if len(other.Rows) > 0 {
		blocks = append(blocks, other)
	}
	return blocks
}

// inOrder returns the names of the metrics that have a value or, if named is true, were selected by name: in the order of the results, which
// have the metrics by which their models are judged first. useful_units stands beside dead_units.
func inOrder(results []*metrics.Result, named bool) (names []string) {
	for _, r := range results {
		if r == nil {
			continue
		}
		for _, v := range r.Shown() {
			if (named || v.Missing == "") && !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	useful, dead := slices.Index(names, "useful_units"), slices.Index(names, "dead_units")
	if useful > dead && dead >= 0 {
		names = slices.Insert(slices.Delete(names, useful, useful+1), dead+1, "useful_units")
	}
	return names
}

// tableTitles are the titles of known tables.
var tableTitles = map[string]string{"classes": "Classes", "targets": "Targets", "fairness": "Fairness: rates by group, with 95 % intervals"}

// MetricTables returns the tables of the metrics that have some.
func MetricTables(r *evaluation.Report) (list []*doc.Table) {
	for _, t := range r.Tables {
		head, name, ok := strings.Cut(t.Name, ".")
		if !ok {
			head, name = "", t.Name
		}
		one := &doc.Table{Title: cmp.Or(tableTitles[name], name), Notes: t.Notes, Columns: doc.Columns(append([]string{t.Of}, t.Columns...)...)}
		if head != "" {
			one.Title = "Head " + head + ": " + one.Title
		}
		for _, row := range t.Rows {
			cells := []any{row.Name}
			for _, v := range row.Numbers {
				if v == math.Trunc(v) {
					cells = append(cells, int(v))
				} else {
					cells = append(cells, v)
				}
			}
			one.Row(cells...)
		}
		list = append(list, one)
	}
	return list
}

// remarks lists what a reader of the numbers should know.
func remarks(run *tessera.Run, r *evaluation.Report) (list []*doc.Note) {
	for _, f := range append(train.Findings(run.Model, run.Path, run.Shape(), run.Units(), r), train.Unreached(run.Model, run.Epoch)...) {
		list = append(list, doc.Warning("%s", f))
	}
	list = append(list, constants(run, r)...)
	if _, ok := r.Number("mse"); ok && run.Scaling() != nil {
		list = append(list, doc.Remark("errors such as mse are of the scaled values (scale of the dataset), not in the units of the file"))
	}
	fitted, units, noun := r.CountFitted(), run.Units(), NounOf(run.Shape())
	sparse := data.SparseOf(run.Model.Dataset.Source) != nil // whose atoms are not parts, and of which some rows are measured
	crowded := fitted > 0 && 5*units > fitted
	if crowded && run.Atoms() != nil && !sparse {
		list = append(list, doc.Advice("%s for %d fitted %ss: with more than about one unit for 5 %[3]ss, atoms tend to be whole %[3]ss instead of parts; compare fewer units in a sweep over %[4]s",
			numeral.Of(units, "unit"), fitted, noun, run.Model.Training().UnitsKey))
	}
	if text := deadAndUseful(r.Values, units); text != "" {
		list = append(list, doc.Remark("%s", text))
	}
	if area, ok := r.Number("atom_area"); ok {
		if shape := run.Shape(); len(shape) > 1 {
			if text := wholePictures(area/float64(shape[0]*shape[1]), crowded, changes(run, r)...); text != "" {
				list = append(list, doc.Remark("%s", text))
			}
		}
	}
	return list
}

// constants compares numbers with those of constant predictions.
func constants(run *tessera.Run, r *evaluation.Report) (list []*doc.Note) {
	for _, v := range r.Values {
		if v.Constant > 0 && v.Missing == "" {
			note, what, worse := doc.Remark, "the most frequent class", v.Number <= v.Constant
			if m, _ := metrics.MeasureOf(v.Name); m.Better == metrics.Lower {
				what, worse = "the mean", v.Number >= v.Constant
			}
			if worse {
				note = doc.Warning
			}
			list = append(list, note("%s is %s; always predicting %s has %s", v.Name, numeral.Float(v.Number), what, numeral.Float(v.Constant)))
		}
		if v.Worse == "" && r.Fitted != nil { // whose hidden values are not fitted either
			fitted, _ := r.Fitted.Values.Find(v.Name)
			v.Worse = fitted.Worse
		}
		if places := strings.Fields(v.Worse); len(places) > 0 {
			const most = 8
			names := ValueNames(context.Background(), run)
			texts := lists.Map(places[:min(most, len(places))], func(place string) string {
				if k, err := strconv.Atoi(place); err == nil && names != nil {
					return strconv.Quote(names[k])
				}
				return "value " + place
			})
			if more := len(places) - most; more > 0 {
				texts = append(texts, fmt.Sprintf("and %d more", more))
			}
			list = append(list, doc.Warning("hidden values are predicted worse than by the mean: %s", strings.Join(texts, ", ")))
		}
	}
	return list
}

// wholePictures says what makes atoms smaller that cover more than a third of a picture; "" for others. Of known parts, a code that is too
// sparse finds none at any number of units; then more units find more parts, unless each has few samples (crowded). others are further
// changes that help.
func wholePictures(share float64, crowded bool, others ...string) string {
	if share <= 1.0/3 {
		return ""
	}
	number := "more units"
	if crowded {
		number = "fewer units"
	}
	return "An atom covers " + numeral.Percent(share) + " of the picture on average. Smaller parts need " + strings.Join(append(others, number), " or ") + "."
}

// leastSparse is the Hoyer sparseness above which most units are 0 for most samples.
const leastSparse = 0.5

// changes lists what makes the atoms of a model local and is not so yet.
func changes(run *tessera.Run, r *evaluation.Report) (list []string) {
	method := run.Model.Training().Method
	if hoyer, ok := r.Number("hoyer"); ok && hoyer > leastSparse && method != "kmeans" {
		list = append(list, "a less sparse code")
	}
	switch atoms := run.Atoms(); {
	case atoms == nil || len(atoms.Values) == 0 || slices.Min(atoms.Values) >= -1e-5*slices.Max(atoms.Values): // means of positive samples are rounded
	case method == "":
		list = append(list, "non-negative weights (the constraint nonneg)")
	default:
		list = append(list, `non-negative atoms (kind = "nmf")`)
	}
	return list
}

// deadAndUseful explains numbers of dead and of useful units that together exceed the number of units; "" if they do not.
func deadAndUseful(values metrics.Values, units int) string {
	dead, ok := values.Number("dead_units")
	useful, counted := values.Number("useful_units")
	if !ok || !counted || int(dead+useful) <= units {
		return ""
	}
	return "Some of the " + numeral.Float(dead) + " dead units are among the " + numeral.Float(useful) + " useful ones. A unit is dead if its activations stay below 1 % of the largest of any unit; " +
		"it is useful if the error rises without it, as it may if its atom is large."
}
