package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"tessera/metrics"
)

func TestMetricsAreListedWithTheirDirection(t *testing.T) {
	b := newBench(t)
	text := b.must(0, "list", "metrics").stdout
	for _, e := range metrics.Registry.All() {
		m := e.New()
		for _, one := range m.Describe().Measures {
			if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
				words := strings.Fields(line)
				return len(words) > 2 && words[0] == one.Name && words[1] == string(one.Better)
			}) {
				t.Errorf("no line of %s, %s:\n%s", one.Name, one.Better, text)
			}
		}
		for _, s := range metrics.Settings(m) {
			b.contains("list metrics", text, "\n      "+s.Key+" ")
		}
	}
	var all map[string][]describedMetric
	if err := json.Unmarshal([]byte(b.must(0, "list", "--json", "metrics", "losses").stdout), &all); err != nil ||
		len(all["metrics"]) != len(metrics.Registry.All()) || all["metrics"][0].Measures[0].About == "" || len(all["losses"]) < 10 {
		t.Errorf("list --json: %v, %+v", err, all)
	}
}

func TestEvalMeasuresWhatIsChosen(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	whole := b.eval("runs/small")
	text := b.must(0, "eval", "runs/small", "--json", "--metrics", "hoyer,max_approx_cl*,mse").stdout
	var got struct {
		MSE    float64 `json:"mse"`
		Hoyer  float64 `json:"hoyer"`
		Approx float64 `json:"max_approx_clipped"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&got); err != nil || got.MSE != whole.MSE || got.Hoyer != whole.Hoyer || got.Approx == 0 {
		t.Errorf("%s, %v; all of it is %+v", text, err, whole)
	}
	if strings.Contains(text, `"max_approx":`) || !slices.IsSorted([]int{strings.Index(text, "images"), strings.Index(text, "hoyer"),
		strings.Index(text, "max_approx_clipped"), strings.Index(text, `"mse"`)}) {
		t.Errorf("not what was chosen, in that order:\n%s", text)
	}
	b.contains("standard error", b.must(exitUsage, "eval", "runs/small", "--metrics", "mse,hoier").stderr, `--metrics: unknown "hoier": did you mean "hoyer"?`)
	for _, format := range [][]string{nil, {"--json"}} {
		none := b.must(exitUsage, append([]string{"eval", "runs/small", "--metrics", "accuracy,nll"}, format...)...)
		b.contains("standard error", none.stderr, "none of these metrics has a value", "accuracy, nll: ")
		b.contains("no output", none.stdout+"end", "end")
	}
	b.contains("one of two", b.must(0, "eval", "runs/small", "--metrics", "accuracy,mse").stderr, "no value of accuracy: ")
	b.contains("one of two as JSON", b.must(0, "eval", "runs/small", "--metrics", "accuracy,mse", "--json").stderr, "no value of accuracy: ")
	b.contains("standard error", b.must(exitUsage, "eval", "runs/small", "--metrics", "mse", "--radius", "2").stderr,
		`none of the selected metrics has a setting "radius"`)
	b.contains("standard error", b.must(exitData, "eval", "runs/small", "--metrics", "svm_c").stderr, "swimmer: its samples have no labels, but svm_accuracy needs them")
}
