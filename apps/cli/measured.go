package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config"
	"tessera/layers"
	"tessera/metrics"
	"tessera/train/evaluation"
)

// printReport prints metrics as a table, with "-" for values that are not applicable: one column for held-out images, one for
// fitted ones.
func printReport(out io.Writer, r *evaluation.Report) error {
	t := newTable(out)
	t.row("model", r.Model)
	t.row("dataset", r.Dataset)
	sampleRows(t, r)
	settings := map[string]any{}
	var keys []string
	r.Each(func(key string, value any) {
		switch value.(type) {
		case nil, float64:
		default: // a setting
			settings[key] = value
		}
		keys = append(keys, key)
	})
	for _, key := range usefulBesideDead(keys) {
		if value, ok := settings[key]; ok {
			t.row(key, value)
		} else {
			reportRow(t, key, key, r)
		}
	}
	return t.flush()
}

// usefulBesideDead moves useful_units behind dead_units: the two are read together.
func usefulBesideDead(keys []string) []string {
	dead, useful := slices.Index(keys, "dead_units"), slices.Index(keys, "useful_units")
	if dead < 0 || useful < 0 {
		return keys
	}
	keys = slices.Delete(keys, useful, useful+1)
	if useful < dead {
		dead--
	}
	return slices.Insert(keys, dead+1, "useful_units")
}

// sampleRows says which images were measured: the held-out ones first, the fitted ones beside them.
func sampleRows(t columns, r *evaluation.Report) {
	split := r.Split
	if r.Note != "" {
		split += " (" + r.Note + ")"
	}
	if r.Fitted == nil {
		t.row("split", split)
		t.row(r.Counted(), r.Images)
		return
	}
	t.row("split", split, r.Fitted.Split+" (fitted)")
	fitted := fmt.Sprint(r.Fitted.Images)
	if r.Fitted.Images < r.FittedImages {
		fitted += fmt.Sprintf(" of %d", r.FittedImages)
	}
	t.row(r.Counted(), r.Images, fitted)
}

// reportRow prints one metric of both samples; metrics that do not depend on images have one value.
func reportRow(t columns, title, name string, r *evaluation.Report) {
	row := []any{title, valueText(r.Values, name)}
	if r.Fitted != nil {
		if _, ok := r.Fitted.Find(name); ok {
			row = append(row, valueText(r.Fitted.Values, name))
		} else {
			row = append(row, "") // keeps the columns of the rows around it
		}
	}
	t.row(row...)
}

// warnUseless warns if most units of a model could be replaced by constants. It says what to change.
func warnUseless(cmd *cobra.Command, r *tessera.Run, measured metrics.Values) {
	useful, ok := measured.Number("useful_units")
	units := r.Units()
	if !ok || 2*int(useful) >= units {
		return
	}
	warn(cmd, fmt.Sprintf("%d of %d units are useless: freezing them at their mean activation raises the mse by 1 %% or less\n  what helps: %s",
		units-int(useful), units, moreUseful(r.Model)))
}

// moreUseful says what makes more units useful.
func moreUseful(m *config.Model) string {
	if m.Baseline != nil {
		return "lower components"
	}
	relu := ""
	if last, ok := m.Encoder[len(m.Encoder)-1].Layer.(*layers.Dense); ok && last.Activation != "relu" {
		relu = `, set activation = "relu" in the last layer of the encoder`
	}
	return "raise optimizer.learning_rate or train.epochs" + relu + ", or lower the units of the encoder"
}
