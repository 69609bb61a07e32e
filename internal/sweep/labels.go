package sweep

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
)

// Labels generates the labels of the settings and trials of a sweep for figures, from the values that vary.
type Labels struct {
	results *Results
	short   map[string]string // maps each key to its shortened form
	digits  map[string]int    // for each key, the number of significant digits at which its numbers are distinct
	models  bool              // the sweep has several models
}

// Labels returns the labels of these results.
func (r *Results) Labels() Labels {
	several := slices.ContainsFunc(r.Settings, func(s Setting) bool { return s.Model != r.Settings[0].Model })
	digits := map[string]int{}
	for _, key := range r.Keys {
		digits[key] = r.digits(key)
	}
	return Labels{r, shortened(r.Keys), digits, several}
}

// leastDigits is the minimum number of significant digits in a label.
const leastDigits = 3

// digits returns the number of significant digits at which the numbers of a key are distinct, -1 for all digits.
func (r *Results) digits(key string) int {
	exact := map[string]float64{}
	for _, s := range r.Settings {
		v, ok := s.Values[key].(float64)
		if !ok {
			continue
		}
		rounded := strconv.FormatFloat(v, 'g', leastDigits, 64)
		if other, ok := exact[rounded]; ok && other != v {
			return -1
		}
		exact[rounded] = v
	}
	return leastDigits
}

// value returns the text of a value of a key.
func (l Labels) value(key string, v any) string {
	if v, ok := v.(float64); ok && l.digits[key] > 0 && v != math.Trunc(v) {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', l.digits[key], 64), 64) // cannot fail, because the text is a formatted number
		return text(rounded)
	}
	if v, ok := v.(string); ok {
		return v
	}
	return inline(v)
}

// inline returns a value as it is declared in models.toml: { name = "mnist", limit = 1000 }. The kind or name of a table comes
// first.
func inline(v any) string {
	var items []string
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			item := table.KeyText(key) + " = " + inline(v[key])
			if key == "kind" || key == "name" {
				items = slices.Insert(items, 0, item)
			} else {
				items = append(items, item)
			}
		}
		return "{ " + strings.Join(items, ", ") + " }"
	case []any:
		for _, item := range v {
			items = append(items, inline(item))
		}
		return "[" + strings.Join(items, ", ") + "]"
	case string:
		return table.StringText(v)
	}
	return text(v)
}

// Setting returns a label with the values of a setting, and the model if there are several models: "shallow: weight
// 0.01, units 64". A key is shortened to as few last parts as possible such that no other key ends in them. The value
// of a key "kind" is shown without the key.
func (l Labels) Setting(s Setting) string { return l.of(s.Model, s.Values) }

// Values is like Setting, but with the values of only some keys.
func (l Labels) Values(s Setting, keys []string) string {
	some := map[string]any{}
	for _, key := range keys {
		if v, ok := s.Values[key]; ok {
			some[key] = v
		}
	}
	return l.of(s.Model, some)
}

// Trial returns the label of the trial's setting, followed by the seed if the setting has several seeds.
func (l Labels) Trial(row Row) string {
	label := l.of(row.Model, row.Values)
	i := slices.IndexFunc(l.results.Settings, func(s Setting) bool { return slices.Contains(s.Trials, row.Trial) })
	if i < 0 || len(l.results.Settings[i].Trials) < 2 {
		return label
	}
	return label + ", seed " + strconv.FormatUint(row.Seed, 10)
}

func (l Labels) of(model string, values map[string]any) string {
	var parts []string
	for _, key := range l.results.Keys {
		v, ok := values[key]
		if !ok {
			continue
		}
		name := l.short[key]
		if table, isTable := v.(map[string]any); isTable && len(table) == 1 && table["kind"] != nil {
			v, name = table["kind"], ""
		}
		if name == "kind" || strings.HasSuffix(name, ".kind") {
			name = ""
		}
		parts = append(parts, strings.TrimSpace(name+" "+l.value(key, v)))
	}
	joined := strings.Join(parts, ", ")
	switch {
	case joined == "":
		return model
	case l.models:
		return model + ": " + joined
	}
	return joined
}

// shortened maps each key to as few of its last parts as possible such that no other key ends in them.
func shortened(keys []string) map[string]string {
	short := map[string]string{}
	for _, key := range keys {
		names := strings.Split(key, ".")
		for n := 1; n <= len(names); n++ {
			end := strings.Join(names[len(names)-n:], ".")
			shared := func(other string) bool { return other != key && strings.HasSuffix("."+other, "."+end) }
			_, err := strconv.Atoi(names[len(names)-n])
			if short[key] = end; err != nil && !slices.ContainsFunc(keys, shared) {
				break
			}
		}
	}
	return short
}

// LabelOf returns the label of a run that is a trial of a sweep; see [Labels.Trial]. ok is false for other runs.
func LabelOf(run string) (label string, ok bool) {
	path, err := filepath.Abs(run)
	if err != nil || filepath.Base(filepath.Dir(path)) != trialsDir {
		return "", false
	}
	r, err := Read(filepath.Dir(filepath.Dir(path)))
	if err != nil {
		return "", false
	}
	i := slices.IndexFunc(r.Trials, func(row Row) bool { return row.Trial == filepath.Base(path) })
	if i < 0 {
		return "", false
	}
	return r.Labels().Trial(r.Trials[i]), true
}

// Shown returns, for each setting of the sweep in the folder path, the folder of its first finished trial, and the
// label of the setting.
func (r *Results) Shown(path string) (runs, labels []string) {
	l := r.Labels()
	for _, s := range r.Settings {
		for _, row := range r.Trials {
			if row.Metrics != nil && slices.Contains(s.Trials, row.Trial) {
				runs, labels = append(runs, TrialPath(path, row.Trial)), append(labels, l.Setting(s))
				break
			}
		}
	}
	return runs, labels
}
