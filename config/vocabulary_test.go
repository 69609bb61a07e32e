package config

import (
	"reflect"
	"slices"
	"testing"

	"tessera/config/part/table"
	"tessera/internal/expect"
)

// TestEveryRegisteredPartCanBeDeclared checks the registered parts: tags are well formed, no part has a key that its
// table already has, defaults are valid values of their keys (or mean that the key is not set), and every type can be
// decoded.
func TestEveryRegisteredPartCanBeDeclared(t *testing.T) {
	for _, v := range language.Vocabularies {
		for _, name := range v.Names() {
			part, _ := v.New(name)
			if k := reflect.TypeOf(part).Kind(); k != reflect.Pointer {
				t.Errorf("%s %s: the constructor returns a %s, want a pointer", v.What, name, k)
				continue
			}
			if v.About(name) == "" {
				t.Errorf("%s %s has no description", v.What, name)
			}
			fields := table.Fields(part)
			if v.Around != nil {
				fields = append(fields, language.FieldsOf(reflect.New(v.Around).Interface(), name)...)
			}
			checkFields(t, v.What+" "+name, fields)
		}
	}
	checkFields(t, "model", language.FieldsOf(&Model{}, Autoencoder))
}

func checkFields(t *testing.T, part string, fields []table.Field) {
	var keys []string
	for _, f := range fields {
		if slices.Contains(keys, f.Key) {
			t.Errorf("%s: two keys %q", part, f.Key)
		}
		keys = append(keys, f.Key)
		expect.NoError(t, f.Malformed(), part, f.Key)
		if f.Doc == "" {
			t.Errorf("%s: %s has no doc", part, f.Key)
		}
		if c := f.Choices(); c != nil && f.Value.String() != "" && !slices.Contains(c, f.Value.String()) {
			t.Errorf("%s: %s: the default %q is none of %q", part, f.Key, f.Value.String(), c)
		}
		switch f.Value.Kind() {
		case reflect.Func, reflect.Chan, reflect.Complex128:
			t.Errorf("%s: %s: a %s cannot be decoded", part, f.Key, f.Value.Type())
		case reflect.Interface:
			if !slices.ContainsFunc(language.Vocabularies, func(v *table.Vocabulary) bool { return v.Holds(f.Value.Type()) }) {
				t.Errorf("%s: %s: no registry of %s", part, f.Key, f.Value.Type())
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
	i := slices.IndexFunc(list, func(d table.Description) bool { return d.Name == "kl" })
	want := []table.KeyDescription{
		{Key: "target", Want: "a number in (0,1)", Default: "0.1", About: "p, the target mean activation of every unit"},
		{Key: "on", Want: "a string", Default: `"code"`, About: "value that the term reads: output, code, a head, atoms, or a glob over parameter paths"},
		{Key: "weight", Want: "a number, a name or a table", Default: "1.0", About: "factor of the term: a number or a schedule"},
		{Key: "name", Want: "a string", About: "name of the term in metrics and for players; by default its kind, or kind.2, ... if the kind is repeated"},
	}
	if !reflect.DeepEqual(list[i].Keys, want) {
		t.Errorf("kl: got\n%+v\nwant\n%+v", list[i].Keys, want)
	}
}

func TestASearchIsNotDescribedWithKeysThatItRefuses(t *testing.T) {
	list, _ := Describe("optimizers")
	for _, d := range list {
		clips := slices.ContainsFunc(d.Keys, func(k table.KeyDescription) bool { return k.Key == "clip_norm" || k.Key == "schedule" })
		if search := d.Name == "lbfgs"; clips == search {
			t.Errorf("%s: %+v", d.Name, d.Keys)
		}
	}
}
