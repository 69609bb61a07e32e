package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// verdicts compares all subjects and returns the verdicts by subject.
func verdicts(t *testing.T, c *comparison) map[string]verdict {
	t.Helper()
	subjects, _, err := c.subjects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]verdict{}
	for _, v := range c.compareAll(t.Context(), subjects, 2) {
		v := <-v
		all[v.subject] = v
	}
	return all
}

// keys returns the names of the differing values.
func keys(different []difference) []string {
	var names []string
	for _, d := range different {
		names = append(names, d.key)
	}
	return names
}

func TestTheSameSeedGivesEqualValues(t *testing.T) {
	for subject, v := range verdicts(t, fakes(t, "1", "1")) {
		if v.err != nil || v.values == 0 || len(v.different) > 0 || len(v.added) > 0 {
			t.Errorf("%s: %+v", subject, v)
		}
	}
}

func TestAnotherSeedIsReported(t *testing.T) {
	all := verdicts(t, fakes(t, "1", "2"))
	want := map[string][]string{
		"model flat": {"codes", "eval mse", "metrics line 1 loss", "parameter encoder.0.weight"},
		"model tiny": {"codes", "eval mse", "metrics line 1 loss", "parameter encoder.0.weight"},
		"sweep tiny": {"results.csv row 1 mse", "summary.csv row 1 mse"},
	}
	for subject, want := range want {
		if got := keys(all[subject].different); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", subject, got, want)
		}
	}
	if len(all) != len(want) {
		t.Errorf("got %d verdicts, want %d", len(all), len(want))
	}
}

// The first comparison fills the cache; the second one must not train base again.
func TestBaseIsTrainedOnce(t *testing.T) {
	c := fakes(t, "1", "1")
	verdicts(t, c)
	kept, err := filepath.Glob(filepath.Join(c.cache, "*.json"))
	if err != nil || len(kept) != 3 {
		t.Fatalf("got %q, %v; want three records", kept, err)
	}
	for _, name := range kept {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		// Only the cache can give this value.
		changed := slices.Concat(text[:len(text)-3], []byte(`,"eval mse":"77"}}`))
		if err := os.WriteFile(name, changed, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for subject, v := range verdicts(t, c) {
		if !slices.Contains(v.different, difference{"eval mse", "77", map[bool]string{true: "1", false: missing}[strings.HasPrefix(subject, "model")]}) {
			t.Errorf("%s: %+v", subject, v)
		}
	}
}

// Two processes that share a cache may store the same run.
func TestARunThatIsKeptAlreadyIsNoError(t *testing.T) {
	c := fakes(t, "1", "1")
	verdicts(t, c)
	records, err := filepath.Glob(filepath.Join(c.cache, "*.json"))
	if err != nil || len(records) == 0 {
		t.Fatalf("got %q, %v; want records", records, err)
	}
	for _, name := range records {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for subject, v := range verdicts(t, c) {
		if v.err != nil || len(v.different) > 0 {
			t.Errorf("%s: %+v", subject, v)
		}
	}
	if runs, err := os.ReadDir(filepath.Join(c.cache, "runs")); err != nil || len(runs) != 2 {
		t.Errorf("got %v, %v; want two runs", runs, err)
	}
}

func TestMissingDataAreNoDifference(t *testing.T) {
	v := verdicts(t, fakes(t, fakeSeedNone, "1"))["model tiny"]
	if v.leftOut != "tessera: bars: no such data" || v.err != nil || v.values != 0 {
		t.Errorf("%+v", v)
	}
}

func TestACommandThatFailsNowIsADifference(t *testing.T) {
	v := verdicts(t, fakes(t, "1", fakeSeedNone))["model tiny"]
	if got := keys(v.different); !slices.Equal(got, []string{"command"}) {
		t.Errorf("got %q", got)
	}
}
