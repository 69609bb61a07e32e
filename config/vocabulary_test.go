package config

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

// TestEveryRegisteredPartCanBeDeclared: tags are well formed, no part has a key that its table has already, defaults
// are values that the key may be given (or leave it open), and every type can be decoded.
func TestEveryRegisteredPartCanBeDeclared(t *testing.T) {
	for _, v := range vocabularies {
		for _, name := range v.names() {
			part, _ := v.create(name)
			if k := reflect.TypeOf(part).Kind(); k != reflect.Pointer {
				t.Errorf("%s %s: the constructor returns a %s, want a pointer", v.what, name, k)
				continue
			}
			if nested := v.title == "inits" || v.title == "layers"; nested && v.nameOf(part) != name {
				t.Errorf("%s %s has the type of %s: a part inside another is named by its type", v.what, name, v.nameOf(part))
			}
			if v.about(name) == "" {
				t.Errorf("%s %s says nothing about itself", v.what, name)
			}
			fields := partFields(part)
			if v.table != nil {
				own, _ := tableOf(reflect.New(v.table).Elem(), name)
				fields = append(fields, own...)
			}
			checkFields(t, v.what+" "+name, fields)
		}
	}
	fields, _ := tableOf(reflect.ValueOf(&Model{}).Elem(), Autoencoder)
	checkFields(t, "model", fields)
}

func checkFields(t *testing.T, part string, fields []field) {
	var keys []string
	for _, f := range fields {
		if slices.Contains(keys, f.key) {
			t.Errorf("%s: two keys %q", part, f.key)
		}
		keys = append(keys, f.key)
		if _, err := satisfies(f.want, 1); err != nil {
			t.Errorf("%s: %s: %v", part, f.key, err)
		}
		if f.doc == "" {
			t.Errorf("%s: %s has no doc", part, f.key)
		}
		if c := f.choices(); c != nil && f.value.String() != "" && !slices.Contains(c, f.value.String()) {
			t.Errorf("%s: %s: the default %q is none of %q", part, f.key, f.value.String(), c)
		}
		switch f.value.Kind() {
		case reflect.Map, reflect.Func, reflect.Chan, reflect.Complex128:
			t.Errorf("%s: %s: a %s cannot be decoded", part, f.key, f.value.Type())
		case reflect.Interface:
			if _, ok := vocabularyOf(f.value.Type()); !ok {
				t.Errorf("%s: %s: no registry of %s", part, f.key, f.value.Type())
			}
		}
	}
}

func TestDescriptionsTellKeysDefaultsAndWants(t *testing.T) {
	for _, title := range Vocabularies() {
		if _, ok := Describe(title); !ok {
			t.Errorf("%s cannot be described", title)
		}
	}
	if _, ok := Describe("nothing"); ok {
		t.Error("nothing can be described")
	}
	list, _ := Describe("losses")
	i := slices.IndexFunc(list, func(d Description) bool { return d.Name == "kl" })
	want := []KeyDescription{
		{Key: "target", Want: "a number in (0,1)", Default: "0.1", About: "p, the wanted mean activation of every unit"},
		{Key: "on", Want: "a string", Default: `"code"`, About: "what it is taken on: output, code, atoms, or a glob over parameter paths"},
		{Key: "weight", Want: "a number >= 0", Default: "1.0", About: "multiplies the term"},
	}
	if !reflect.DeepEqual(list[i].Keys, want) {
		t.Errorf("kl: got\n%+v\nwant\n%+v", list[i].Keys, want)
	}
}

func TestWantTags(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		want    string
		yes, no []float64
	}{
		{"", []float64{0, -1, inf}, []float64{inf - inf}},
		{"> 0", []float64{5e-324}, []float64{0, -1, inf, inf - inf}},
		{">= 0", []float64{0, 1}, []float64{-5e-324, inf}},
		{"< 2", []float64{1.9}, []float64{2, -inf}},
		{"<= 2", []float64{2}, []float64{2.1}},
		{"in (0,1)", []float64{0.5}, []float64{0, 1}},
		{"in [0,1)", []float64{0}, []float64{1, -1}},
		{"in (-1,1]", []float64{0, 1}, []float64{-1, 2, inf - inf}},
		{"in [0,1]", []float64{0, 1}, []float64{1.1}},
	} {
		for _, v := range c.yes {
			if ok, err := satisfies(c.want, v); !ok || err != nil {
				t.Errorf("%g does not satisfy %q: %v", v, c.want, err)
			}
		}
		for _, v := range c.no {
			if ok, err := satisfies(c.want, v); ok || err != nil {
				t.Errorf("%g satisfies %q: %v", v, c.want, err)
			}
		}
	}
	for _, malformed := range []string{">", "over 3", "in 0,1", "in (0 1)", "in (a,b)", "> x", "in", "in ("} {
		if _, err := satisfies(malformed, 1); err == nil {
			t.Errorf("%q is taken", malformed)
		}
	}
}

func TestASearchIsNotDescribedWithKeysThatItRefuses(t *testing.T) {
	list, _ := Describe("optimizers")
	for _, d := range list {
		clips := slices.ContainsFunc(d.Keys, func(k KeyDescription) bool { return k.Key == "clip_norm" || k.Key == "schedule" })
		if search := d.Name == "lbfgs"; clips == search {
			t.Errorf("%s: %+v", d.Name, d.Keys)
		}
	}
}
