package coder

import (
	"fmt"
	"slices"

	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
)

// Heads returns the calibrations and thresholds of the heads. The map does not change.
func (c *Coder) Heads() map[string]posthoc.Head {
	if c == nil || c.state == nil || c.heads.Load() == nil {
		return nil
	}
	return *c.heads.Load()
}

// Refit changes the calibrations and thresholds of the heads in the folder of the run and in the coder. No other change of them is lost,
// and nobody sees the coder between two states. With fresh, what the folder contains is discarded, even if it is damaged.
func (c *Coder) Refit(fresh bool, change func(heads map[string]posthoc.Head)) error {
	return c.Do(func(metrics.Coder) error {
		heads, err := c.trained.ChangePostHoc(fresh || c.raw, change)
		if err != nil {
			return err
		}
		c.raw = false
		c.heads.Store(&heads)
		return nil
	})
}

// PostHoc returns a description of the calibrations and thresholds of the heads, for example "class: temperature 1.83"; "" if
// there are none.
func (c *Coder) PostHoc() string { return posthoc.Describe(c.Heads()) }

// Calibration returns the calibration of a head, nil if it has none.
func (c *Coder) Calibration(head string) *posthoc.Calibration { return c.Heads()[head].Calibration }

// Thresholds returns the thresholds of a head, nil if it has none.
func (c *Coder) Thresholds(head string) *posthoc.Thresholds { return c.Heads()[head].Thresholds }

// DecisionColumns returns descriptions of the columns on which the predicted classes of a head depend: those of Columns and, if the head
// has thresholds, the groups.
func (c *Coder) DecisionColumns(head string) []data.Column {
	columns := c.Columns(head)
	t := c.Thresholds(head)
	if t == nil || slices.ContainsFunc(columns, func(column data.Column) bool { return column.Name == t.Column }) {
		return columns
	}
	return append(columns, data.Column{Name: t.Column, Type: data.Whole, Names: t.Names})
}

// decide replaces the predicted classes by the decisions of the head's thresholds. A decision is the positive class or the
// most probable other class.
func (c *Coder) decide(p *Prediction, logits []float32, columns map[string][]float32) error {
	t := c.Thresholds(p.Head)
	if t == nil {
		return nil
	}
	groups, n, classes := columns[t.Column], len(p.Labels), len(p.Classes)
	if len(groups) != n {
		return fmt.Errorf("%s: the thresholds of the head %q decide by the column %q (got %d values of it, want %d)", c.path, p.Head, t.Column, len(groups), n)
	}
	for i := range p.Labels {
		row := logits[i*classes : (i+1)*classes]
		decided, known := t.Decide(row, int(groups[i]))
		switch {
		case groups[i] < 0:
			return &data.Error{Problem: fmt.Sprintf("sample %d: its group, of the column %q, is unknown, and thresholds decide by it", i, t.Column), Hint: "give the group, or leave the sample out"}
		case !known:
			return &data.Error{Problem: fmt.Sprintf("sample %d: the group %g of the column %q has no threshold: no sample of it was held out when the thresholds were fitted", i, groups[i], t.Column)}
		case decided:
			p.Labels[i] = t.Positive
		case p.Labels[i] == t.Positive:
			p.Labels[i] = (t.Positive + 1) % classes
			for k, z := range row { // all are finite
				if k != t.Positive && z > row[p.Labels[i]] {
					p.Labels[i] = k
				}
			}
		}
	}
	return nil
}
