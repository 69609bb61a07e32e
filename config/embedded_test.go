package config

import (
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
	"tessera/losses"
)

// A Go program can set every setting of a part in a struct literal: no setting is in an embedded struct that is not
// exported.
func TestNoSettingIsHiddenInAnUnexportedStruct(t *testing.T) {
	for _, v := range language.Vocabularies {
		for _, name := range v.Names() {
			part, _ := v.New(name)
			if of := reflect.TypeOf(part).Elem(); of.Kind() == reflect.Struct {
				for _, hidden := range hiddenSettings(of) {
					t.Errorf("%s %s: %s cannot be set from outside", v.What, name, hidden)
				}
			}
		}
	}
}

// hiddenSettings lists the keys in embedded structs that are not exported.
func hiddenSettings(of reflect.Type) (keys []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		if !f.Anonymous || f.Type.Kind() != reflect.Struct {
			continue
		}
		keys = append(keys, hiddenSettings(f.Type)...)
		for j := range f.Type.NumField() {
			if key := f.Type.Field(j).Tag.Get("toml"); key != "" && !f.IsExported() {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func TestALiteralKeepsTheSettingsOfEmbeddedStructs(t *testing.T) {
	m, err := Complete(&Model{
		Encoder: []Layer{{Layer: &layers.Dense{Units: 3}}},
		Losses: []Loss{
			{Loss: &losses.MSE{}, Weight: &losses.Linear{Between: losses.Between{From: 3, To: 4, Epochs: 5}}},
			{Loss: &losses.L2{Targeted: losses.Targeted{Target: 0.3}}},
		},
	})
	fatal.If(t, err)
	expect.Equal(t, m.Losses[0].Weight.At(2.5), 3.5, "the weight after 2.5 epochs")
	expect.Equal(t, m.Losses[1].Loss.(*losses.L2).Target, 0.3, "the target")
}
