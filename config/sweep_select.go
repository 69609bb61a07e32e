package config

import (
	"fmt"
	"strings"

	"tessera/data"
	"tessera/metrics"
	"tessera/part/table"
)

// Criterion is one metric by which a sweep selects settings: the least mean over the seeds is best, or the largest.
type Criterion struct {
	Metric  string // "mse", or "class.accuracy" of a head
	Largest bool
}

// String returns the criterion as it is written: "mse", "-hoyer".
func (c Criterion) String() string {
	if c.Largest {
		return "-" + c.Metric
	}
	return c.Metric
}

// MarshalText implements [encoding.TextMarshaler].
func (c Criterion) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (c *Criterion) UnmarshalText(text []byte) error {
	*c = criterion(string(text))
	return nil
}

// criterion reads "mse" or "-hoyer".
func criterion(text string) Criterion {
	name, largest := strings.CutPrefix(text, "-")
	return Criterion{Metric: name, Largest: largest}
}

// readSelect reads `select`: one criterion, or a list of them.
func (p *sweepPlan) readSelect(d *table.Decoder) {
	given := p.table.Select
	if given == nil {
		return
	}
	list := []*table.Node{given}
	if given.IsArray() {
		list = given.Items
	}
	if len(list) == 0 {
		d.Report("", given, "select: got an empty list, want at least one metric", "")
	}
	for _, at := range list {
		text, ok := at.Text()
		if !ok {
			d.Report("", at, fmt.Sprintf("select: got %s, want the name of a metric", at.Describe()), "")
			continue
		}
		c := criterion(text)
		if problem, hint := c.problem(); problem != "" {
			d.Report("", at, "select: "+problem, hint)
			continue
		}
		p.criteria = append(p.criteria, c)
	}
	if p.table.Split != "" && p.table.Split != string(data.ValidationSplit) {
		d.Report("", given, fmt.Sprintf("select: selects on the %s images", p.table.Split), `leave "split" out: settings are selected on validation images`)
	}
}

// problem says what is wrong with a criterion and what to do, "" where nothing is.
func (c Criterion) problem() (problem, hint string) {
	m, ok := metrics.MeasureOf(c.Metric)
	switch {
	case !ok:
		return fmt.Sprintf("unknown metric %q", c.Metric), table.Suggest(c.Metric, metrics.Names())
	case m.Better == metrics.Higher && !c.Largest:
		return fmt.Sprintf("a larger %s is better, and %q selects the least", c.Metric, c), fmt.Sprintf("write %q", "-"+c.Metric)
	case m.Better == metrics.Lower && c.Largest:
		return fmt.Sprintf("a smaller %s is better, and %q selects the largest", c.Metric, c), fmt.Sprintf("write %q", c.Metric)
	}
	return "", ""
}

// split returns the images that the trials are measured on: where the sweep does not say, those held out for validation if
// every trial holds some out, else the test images. It is an error where a trial lacks the images that the sweep asks for.
func (p *sweepPlan) split(trials []Trial) (data.Split, []table.Diagnostic) {
	asked := data.Split(p.table.Split)
	if len(p.criteria) > 0 {
		asked = data.ValidationSplit
	}
	if asked != "" && asked != data.ValidationSplit {
		return asked, nil
	}
	for _, t := range trials {
		err := t.Model.Dataset.HoldsOut()
		switch {
		case err != nil && asked == "":
			return data.TestSplit, nil
		case err != nil:
			key := "split"
			if len(p.criteria) > 0 {
				key = "select"
			}
			return "", []table.Diagnostic{table.Diagnostic{At: p.node.Child(key).Key, Subject: p.subject(),
				Problem: fmt.Sprintf("%s: model %q: %v", key, t.Model.Name, err), Suggestion: "set.dataset.validation = 0.1 holds a tenth out"}.In(p.node)}
		}
	}
	return data.ValidationSplit, nil
}
