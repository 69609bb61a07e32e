package page

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/numeral"
	"tessera/internal/train"
	"tessera/metrics"
)

// mostPoints is the maximum number of epochs in a curve; for longer trainings they are evenly spaced.
const mostPoints = 1000

// Curve contains the metrics of one training over its epochs: the columns of its metrics.jsonl.
type Curve struct {
	Label   string              `json:"label"`
	Epochs  []float64           `json:"epochs"`
	Columns map[string][]*Point `json:"columns"`

	names []string // names of the columns, in order
	unit  string   // "epoch" or "iteration"
}

// Point is a number that is written to JSON with few digits; a missing number is null.
type Point float64

// MarshalJSON writes few digits, null for what is not finite.
func (p Point) MarshalJSON() ([]byte, error) {
	if v := float64(p); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(round(v))
	}
	return []byte("null"), nil
}

// ChartsOf reads the metrics.jsonl of a run for the charts of a page; a run without finished epochs has no panels. For a
// damaged file the error is a [*checkpoint.Error].
func ChartsOf(run string) (*Charts, error) {
	c, err := readCurve(run, filepath.Base(filepath.Clean(run)))
	if err != nil {
		return nil, err
	}
	return &Charts{Runs: []Curve{c}, Panels: panelsOf([]Curve{c}, "epoch")}, nil
}

// readCurve reads the metrics.jsonl of a run.
func readCurve(run, label string) (Curve, error) {
	c := Curve{Label: label, Columns: map[string][]*Point{}, Epochs: []float64{}}
	epochs, err := train.ReadHistory(run)
	if err != nil {
		return c, err
	}
	c.fill(epochs)
	return c, nil
}

// fill adds the columns of the given epochs.
func (c *Curve) fill(epochs []train.Epoch) {
	every := max(1, (len(epochs)+mostPoints-1)/mostPoints)
	for i, e := range epochs {
		for _, v := range e.Values {
			if !slices.Contains([]string{"epoch", "step", "seconds", "crc32"}, v.Name) && !slices.Contains(c.names, v.Name) {
				c.names = append(c.names, v.Name)
			}
		}
		if i%every != 0 && i < len(epochs)-1 {
			continue
		}
		c.Epochs = append(c.Epochs, e.Epoch)
		for _, name := range c.names {
			column := c.Columns[name]
			for len(column) < len(c.Epochs)-1 { // it began later
				column = append(column, nil)
			}
			var p *Point
			if v, ok := e.Values.Number(name); ok {
				value := Point(v)
				p = &value
			}
			c.Columns[name] = append(column, p)
		}
	}
}

// Panel is one chart.
type Panel struct {
	Title   string   `json:"title"`
	About   string   `json:"about"`
	Columns []string `json:"columns"` // names of the columns of every run
	Log     bool     `json:"log"`
	Whole   bool     `json:"whole,omitempty"` // the values are counts: no ticks between whole numbers
}

// panelTexts lists the charts of known columns, in the order in which they are shown.
var panelTexts = []Panel{
	{Title: "Loss", About: "Mean of the objective over each epoch.", Columns: []string{"loss"}, Log: true},
	{Title: "Error on the validation set", About: "Mean squared error on the validation set, after each epoch.", Columns: []string{"val_mse"}, Log: true},
	{Title: "Objective on the validation set", About: "The loss on the validation set, after each epoch, without noise.", Columns: []string{"val_loss"}, Log: true},
	{Title: "Accuracy on the validation set", Columns: []string{"val_accuracy"}},
	{Title: "Negative log-likelihood on the validation set", Columns: []string{"val_nll"}, Log: true},
	{Title: "Sparsity of codes", About: "Mean Hoyer sparsity: 0 where all units are equally active, 1 where only one is.", Columns: []string{"code_hoyer"}},
	{Title: "Dead units", About: "Units that no sample activates.", Columns: []string{"dead_units"}, Whole: true},
	{Title: "Spread of codes", About: "Variance of the codes scaled to length 1: 0 where the codes of all samples are equal.", Columns: []string{"code_spread"}},
	{Title: "Dimensions of codes", About: "Effective rank: the number of dimensions that the codes use.", Columns: []string{"effective_rank"}},
	{Title: "Negative weights", About: "Values below 0 in the last layer of the decoder.", Columns: []string{"negative_weights"}, Whole: true},
	{Title: "Learning rate", Columns: []string{"learning_rate"}},
}

// commonUnit returns "iteration" if all curves are over iterations, else "epoch".
func commonUnit(curves []Curve) string {
	if slices.ContainsFunc(curves, func(c Curve) bool { return c.unit != "iteration" }) {
		return "epoch"
	}
	return "iteration"
}

// panelsOf lists the charts of curves: those of known columns, then the terms of the loss, then further metrics of the validation
// set. The axis of a chart is logarithmic only if all of its values are positive or 0. unit is that of the curves.
func panelsOf(curves []Curve, unit string) (list []Panel) {
	known := map[string]bool{}
	var terms, further []string
	for _, p := range panelTexts {
		known[p.Columns[0]] = true
	}
	for _, c := range curves {
		for _, name := range c.names {
			if known[name] || name == "images_per_second" || !c.positive(name) {
				continue
			}
			list := &terms
			if strings.HasPrefix(name, "val_") || strings.HasPrefix(name, train.PlayerKey) {
				list = &further
			}
			if !slices.Contains(*list, name) {
				*list = append(*list, name)
			}
		}
	}
	for _, p := range panelTexts {
		if !slices.ContainsFunc(curves, func(c Curve) bool { return c.changes(p.Columns[0]) }) {
			continue
		}
		list = append(list, p)
		if p.Columns[0] == "loss" && len(terms) > 1 {
			list = append(list, Panel{Title: "Terms of the loss", About: "Each term, weighted: their sum is the loss.", Columns: terms, Log: true})
		}
	}
	for _, name := range further {
		if strings.HasPrefix(name, "val_loss.") && !slices.ContainsFunc(curves, func(c Curve) bool { return !c.equal(name, "val_loss") }) {
			continue // the only term
		}
		if slices.ContainsFunc(curves, func(c Curve) bool { return c.changes(name) }) {
			list = append(list, Panel{Title: titleFurther(name), About: aboutFurther(name), Columns: []string{name}})
		}
	}
	for i := range list {
		p := &list[i]
		p.About = strings.ReplaceAll(p.About, "epoch", unit)
		p.Log = p.Log && !slices.ContainsFunc(curves, func(c Curve) bool { return slices.ContainsFunc(p.Columns, c.negative) })
	}
	return list
}

// negative reports whether a column has a value below 0.
func (c Curve) negative(name string) bool {
	return slices.ContainsFunc(c.Columns[name], func(p *Point) bool { return p != nil && *p < 0 })
}

// titleFurther returns the title of a column with a declared name: player.forger.learning_rate is "Learning rate of forger".
func titleFurther(name string) string {
	rest, of := strings.TrimPrefix(name, train.PlayerKey), ""
	if i := strings.LastIndex(rest, "."); rest != name && i > 0 {
		rest, of = rest[i+1:], " of "+rest[:i]
	} else if held, ok := strings.CutPrefix(name, "val_"); ok {
		rest, of = held, " on the validation set"
	}
	if _, ok := metrics.MeasureOf(rest); ok && !strings.HasPrefix(name, train.PlayerKey) { // a name, such as r2
		return rest + of
	}
	return strings.ToUpper(rest[:1]) + strings.ReplaceAll(rest[1:], "_", " ") + of
}

// aboutFurther returns a description of a column with a declared name, such as a term.
func aboutFurther(name string) string {
	if strings.HasPrefix(name, train.PlayerKey) {
		return "Of one player of the model, in each epoch."
	}
	return "On the validation set, after each epoch."
}

// positive reports whether a term has values to draw. A term whose weight is always 0 has none.
func (c Curve) positive(name string) bool {
	return slices.ContainsFunc(c.Columns[name], func(p *Point) bool { return p != nil && *p > 0 })
}

// changes reports whether a column is drawn as a curve: the loss always, another column unless it is constant. A constant
// column is shown as a number in the table.
func (c Curve) changes(name string) bool {
	var first *Point
	for _, p := range c.Columns[name] {
		if p == nil {
			continue
		}
		if first != nil && *first != *p || name == "loss" {
			return true
		}
		first = p
	}
	return false
}

// equal reports whether two columns have the same values.
func (c Curve) equal(a, b string) bool {
	return slices.EqualFunc(c.Columns[a], c.Columns[b], func(p, q *Point) bool { return p == q || p != nil && q != nil && *p == *q })
}

// summary returns a description of the changes of a column, for readers who do not see the chart.
func (c Curve) summary(name string) string {
	var first, last *Point
	for _, p := range c.Columns[name] {
		if p != nil {
			if first == nil {
				first = p
			}
			last = p
		}
	}
	if first == nil {
		return ""
	}
	return fmt.Sprintf("%s: from %s to %s", strings.ReplaceAll(name, "_", " "), numeral.Float(float64(*first)), numeral.Float(float64(*last)))
}

// Charts are the curves of a page.
type Charts struct {
	Runs   []Curve `json:"runs"`
	Panels []Panel `json:"panels"`
}

// Summary returns a description of one chart in words.
func (c *Charts) Summary(p Panel) string {
	var parts []string
	for _, run := range c.Runs {
		for _, name := range p.Columns {
			if s := run.summary(name); s != "" && len(c.Runs) > 1 {
				parts = append(parts, run.Label+", "+s)
			} else if s != "" {
				parts = append(parts, s)
			}
		}
	}
	return strings.Join(parts, "; ")
}
