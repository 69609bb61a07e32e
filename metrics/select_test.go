package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/data/morph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func selected(t *testing.T, names ...string) Selection {
	t.Helper()
	s, err := Select(names...)
	fatal.If(t, err)
	return s
}

// chosenNames lists the measures of a selection. Measures of optional choices are in brackets.
func chosenNames(s Selection) string {
	var names []string
	for _, c := range s {
		for _, name := range c.names() {
			if c.Optional {
				name = "[" + name + "]"
			}
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

func TestMetricsAreSelectedByNamesAndGlobs(t *testing.T) {
	for names, want := range map[string]string{
		"mse":                        "mse",
		"kl mse":                     "kl mse",
		"max_approx":                 "max_approx max_approx_clipped max_approx_bias_dilated max_approx_reconstructed",
		"max_approx_clipped":         "max_approx_clipped",
		"max_approx_clipped mse mse": "max_approx_clipped mse",
		"svm":                        "svm_accuracy svm_std svm_c svm_c_at_edge",
		"svm_c svm_std":              "svm_std svm_c",
		"hoyer*":                     "[hoyer] [hoyer_atoms] [hoyer_atoms_dilated] [hoyer_contribution]",
		"hoyer* hoyer":               "hoyer [hoyer_atoms] [hoyer_atoms_dilated] [hoyer_contribution]",
		"mse_?lipped":                "[mse_clipped]",
	} {
		expect.Equal(t, chosenNames(selected(t, strings.Fields(names)...)), want, names)
	}
	for _, name := range []string{"mes", "", "hoyer**x", "[", "MSE"} {
		_, err := Select("mse", name)
		if unknown, ok := errors.AsType[*UnknownError](err); !ok || unknown.Name != name || !strings.Contains(err.Error(), "metrics.Names") || strings.Contains(err.Error(), "tessera ") {
			t.Errorf("%q: got %v", name, err)
		}
	}
}

func TestASelectionIsExtendedWithoutRepeating(t *testing.T) {
	base := selected(t, "mse", "svm_c")
	expect.Equal(t, chosenNames(base.Add(selected(t, "svm_std", "kl", "mse"))), "mse svm_std svm_c kl")
	expect.Equal(t, chosenNames(base), "mse svm_c", "adding changed the selection to")
	expect.Equal(t, chosenNames(Default().Add(selected(t, "mse", "max_approx_clipped"))), chosenNames(Default()))
}

func TestEveryMetricDescribesItself(t *testing.T) {
	seen := map[string]string{}
	for _, e := range Registry.All() {
		d := e.New().Describe()
		if len(d.Measures) == 0 || d.Reads == 0 {
			t.Errorf("%s: %+v", e.Name, d)
		}
		for _, m := range d.Measures {
			expect.Equal(t, seen[m.Name], "", m.Name, "is a measure of", seen[m.Name], "and of", e.Name)
			seen[m.Name] = e.Name
			if m.Doc == "" || m.Summary() == "" || strings.HasSuffix(m.Summary(), "et al") || !slices.Contains([]Better{Lower, Higher, Neither}, m.Better) || strings.ContainsAny(m.Name, " .*?[") {
				t.Errorf("%s: %+v", e.Name, m)
			}
			if found, ok := MeasureOf("head." + m.Name); !ok || found != m {
				t.Errorf("%s is not found: %+v", m.Name, found)
			}
		}
		for _, s := range table.Fields(e.New()) {
			if s.Doc == "" {
				t.Errorf("%s: the setting %s has no doc", e.Name, s.Key)
			}
		}
	}
	for _, name := range Standard {
		if _, ok := Registry.Lookup(name); !ok {
			t.Errorf("the standard metric %s is not registered", name)
		}
	}
	if _, ok := MeasureOf("nothing"); ok {
		t.Error("a measure of that name is known")
	}
}

func TestSettingsReachEveryMetricThatHasThem(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 1))
	c := newAffine(r, []int{6, 5}, 7)
	images := uniform(r, 41*30)
	s := selected(t, "mse", "max_approx", "hoyer_atoms_dilated")
	fatal.If(t, errors.Join(s.Set("operator", "opening"), s.Set("radius", 2)))
	got := measured(t, c, images, s...)
	m := Morphology{Operator: morph.Opening, Radius: 2}
	want := measured(t, c, images, Choice{Metric: &MSE{}}, Choice{Metric: &MaxApprox{m}}, Choice{Metric: &HoyerAtomsDilated{m}})
	expect.Slice(t, got.Values, want.Values)
	text, err := json.Marshal(got)
	fatal.If(t, err)
	const shown = `"operator":"opening","radius":2,"max_approx":`
	if before, after, ok := strings.Cut(string(text), shown); !ok || strings.Contains(after, "radius") || !strings.Contains(before, `"mse"`) {
		t.Errorf("the settings are not before the first metric that has them: %s", text)
	}
	var read Result
	if err := json.Unmarshal(text, &read); err != nil || !slices.Equal(read.Values, want.Values) {
		t.Errorf("read back as %+v (%v)", read, err)
	}
	if !s.SameSettings(got) || !s.SameSettings(&read) || selected(t, "max_approx").SameSettings(&read) || !selected(t, "mse").SameSettings(&read) {
		t.Error("the settings of a result are not compared with those of a selection")
	}
	if picked, ok := s.Of(&read); !ok {
		t.Error("nothing is picked")
	} else if again, _ := json.Marshal(picked); string(again) != string(text) {
		t.Errorf("picked: %s, want %s", again, text)
	}
	if other := selected(t, "max_approx"); other.Set("operator", "closing") != nil || other.SameSettings(&read) {
		t.Error("another operator is the same")
	}
	for key, value := range map[string]any{"operator": 3, "radius": "2", "colour": 1} {
		expect.Error(t, s.Set(key, value), key, key, "=", value)
	}
	expect.AnyError(t, s.Set("radius", nil), "a setting of nothing was taken")
}

func TestAnEarlierResultIsPickedFrom(t *testing.T) {
	whole := &Result{Model: "m", Images: 3, Values: Values{{Name: "hoyer", Number: 1}, {Name: "mse", Number: 2}, {Name: "a.kl", Number: 3},
		{Name: "b.kl", Missing: "none"}, {Name: "dead_units", Missing: "none"}}}
	picked, ok := selected(t, "mse", "k?", "hoyer").Of(whole)
	if !ok || picked.Model != "m" || picked.Images != 3 {
		t.Fatalf("%+v, %t", picked, ok)
	}
	if text, err := json.Marshal(picked); err != nil || string(text) != `{"model":"m","dataset":"","images":3,"mse":2,"a.kl":3,"hoyer":1}` {
		t.Errorf("%s, %v", text, err)
	}
	if text, _ := json.Marshal(picked.Whole()); !strings.Contains(string(text), `"b.kl":null`) {
		t.Errorf("whole: %s", text)
	}
	if _, ok := selected(t, "mse_clipped").Of(whole); ok {
		t.Error("what is not there was picked")
	}
	if picked, ok := selected(t, "dead_units").Of(whole); !ok || picked.Shown()[0].Missing != "none" {
		t.Errorf("what is not applicable: %+v, %t", picked, ok)
	}
}

func TestResultsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]string{
		`{"model":"m","dataset":"d","images":2,"b":1.5,"a":null,"operator":"opening","radius":2,"z":3}`: `{"model":"m","dataset":"d","images":2,"b":1.5,"a":null,"z":3}`,
		`{"model":"m","dataset":"","images":0}`:                                                         `{"model":"m","dataset":"","images":0}`,
	} {
		var r Result
		fatal.If(t, json.Unmarshal([]byte(text), &r))
		if got, err := json.Marshal(&r); err != nil || string(got) != want {
			t.Errorf("%s became %s (%v)", text, got, err)
		}
	}
	for _, text := range []string{"[1]", "3", `{"images":"many"}`, `{"model":`} {
		if json.Unmarshal([]byte(text), &Result{}) == nil {
			t.Errorf("%s was read", text)
		}
	}
	var v Values
	if text, err := json.Marshal(v); err != nil || string(text) != "{}" {
		t.Errorf("no values are written as %s (%v)", text, err)
	}
	if err := json.Unmarshal([]byte(`{"x":[1,{"y":2}],"z":true,"w":1}`), &v); err != nil || len(v) != 1 || v[0].Name != "w" {
		t.Errorf("got %+v, %v", v, err)
	}
}

// counting is a coder that counts calls.
type counting struct {
	*affine
	encoded, decoded *int
}

func (c counting) Encode(images []float32) ([]float32, error) {
	*c.encoded++
	return c.affine.Encode(images)
}

func (c counting) Decode(codes []float32) ([]float32, error) {
	*c.decoded++
	return c.affine.Decode(codes)
}

func TestOnlyWhatIsReadIsComputedAndOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 1))
	images := uniform(r, (batchSize+1)*16)
	for names, want := range map[string][2]int{
		"mse mse_clipped hoyer kl dead_units": {2, 2},
		"max_approx mse":                      {2, 2}, // the coders with operated atoms are others
		"hoyer kl":                            {2, 0},
		"hoyer_atoms negative_weights":        {0, 0},
	} {
		c := counting{newAffine(r, []int{4, 4}, 3), new(int), new(int)}
		measured(t, c, images, selected(t, strings.Fields(names)...)...)
		expect.Equal(t, *c.encoded, want[0], names)
		expect.Equal(t, *c.decoded, want[1], names)
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 1))
	c := newAffine(r, []int{16}, 3) // vectors
	for name, v := range map[string]string{"max_approx": "no rows and columns", "jaccard": "no rows and columns", "mse": "", "hoyer_atoms": ""} {
		for _, got := range measured(t, c, uniform(r, 320), selected(t, name)...).Values {
			expect.Equal(t, got.Missing == "", v == "", got.Name)
			expect.Contains(t, got.Missing, v, got.Name)
		}
	}
	_, err := Evaluate(context.Background(), c, Sample{Images: uniform(r, 320)}, selected(t, "svm"))
	expect.As[*data.Error](t, err, "")
	expect.Equal(t, len(measured(t, c, uniform(r, 320), selected(t, "svm*")...).Shown()), 0, "optional metrics without labels")
	expect.Error(t, expect.Err(Evaluate(context.Background(), c, Sample{Images: uniform(r, 320), Labels: []int{1}}, nil)), "1 labels")
}
