package sweep

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/expect"
)

// labelledSettings returns results with settings that have the given values.
func labelledSettings(keys []string, models []string, values ...[]any) *Results {
	r := &Results{Keys: keys}
	for i, v := range values {
		s := Setting{Model: models[i%len(models)], Values: map[string]any{}}
		for j, key := range keys {
			if v[j] != nil {
				s.Values[key] = v[j]
			}
		}
		r.Settings = append(r.Settings, s)
	}
	return r
}

func TestLabelsSayWhatDiffers(t *testing.T) {
	for want, r := range map[string]*Results{
		"units 16, weight 0.00464":             labelledSettings([]string{"encoder.0.units", "loss.1.weight"}, []string{"m"}, []any{16.0, 0.00464159}, []any{16.0, 0.1}),
		"weight 0.00464159":                    labelledSettings([]string{"loss.1.weight"}, []string{"m"}, []any{0.00464159}, []any{0.00464158}),
		"loss.0.weight 1, loss.1.weight 2":     labelledSettings([]string{"loss.0.weight", "loss.1.weight"}, []string{"m"}, []any{1.0, 2.0}, []any{2.0, 1.0}),
		"encoder.0.units 3, encoder.1.units 4": labelledSettings([]string{"encoder.0.units", "encoder.1.units"}, []string{"m"}, []any{3.0, 4.0}, []any{4.0, 3.0}),
		"adam, 128":                            labelledSettings([]string{"optimizer", "optimizer.kind"}, []string{"m"}, []any{map[string]any{"kind": "adam"}, 128.0}, []any{1.0, 2.0}),
		`dataset { name = "mnist", limit = 1000000, validation = 0.1 }, constraint [{ kind = "nonneg", on = ["a", "b"] }]`: labelledSettings([]string{"dataset", "constraint"}, []string{"m"},
			[]any{map[string]any{"limit": 1e6, "name": "mnist", "validation": 0.1}, []any{map[string]any{"on": []any{"a", "b"}, "kind": "nonneg"}}}, []any{1.0, 2.0}),
		"a: units 3": labelledSettings([]string{"units", "components"}, []string{"a", "b"}, []any{3.0, nil}, []any{nil, 3.0}),
		"a":          labelledSettings(nil, []string{"a", "b"}, nil, nil),
		"m":          labelledSettings(nil, []string{"m"}, nil),
	} {
		expect.Equal(t, r.Labels().Setting(r.Settings[0]), want)
	}
}

// The columns of results.csv and of the table in the terminal.
func TestValuesOfTablesAreTOML(t *testing.T) {
	s := Setting{Values: map[string]any{"loss": []any{map[string]any{"kind": "l2", "target": 0.05, "weight": 1.0}}, "limit": 16777215.0, "rate": 1e-6, "far": math.Inf(1)}}
	want := []string{`[{ kind = "l2", target = 0.05, weight = 1 }]`, "16777215", "1e-06", "+Inf", ""}
	expect.Slice(t, s.Texts([]string{"loss", "limit", "rate", "far", "absent"}), want)
}

func TestTrialsOfASweepAreLabelledBySettingAndSeed(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	r := run(t, declared, Options{Out: out})
	var labels []string
	for _, row := range r.Trials {
		label, ok := LabelOf(filepath.Join(out, "trials", row.Trial) + "/")
		if !ok {
			t.Errorf("%s: no label", row.Trial)
		}
		labels = append(labels, label)
	}
	expect.Slice(t, labels, []string{"target 0.1, seed 1", "target 0.1, seed 2", "target 0.3, seed 1", "target 0.3, seed 2"})
	if label, ok := LabelOf(out); ok {
		t.Errorf("the sweep itself is labelled %q", label)
	}
	runs, names := r.Shown(out)
	if want := []string{"target 0.1", "target 0.3"}; !slices.Equal(names, want) || runs[0] != TrialPath(out, r.Trials[0].Trial) || runs[1] != TrialPath(out, r.Trials[2].Trial) {
		t.Errorf("got %q, %q", runs, names)
	}
}
