package config

import (
	"cmp"
	"errors"
	"fmt"

	"tessera/data"
	"tessera/table"
)

// LiteralName is the name of a model from a struct literal that gives none.
const LiteralName = "model"

// Complete returns the checked model that a struct literal declares: a copy with every default in place, as [File.Model] returns
// one. m keeps its values. A field at its zero value takes the default; to set a value that is zero (bias = false, the weight 0),
// give it as a change: ParseSet("encoder.0.bias=false"). Kinds need not be given: the type of a part says its kind.
//
// Parts must be registered, since the run's config.toml names them. The images of [data.FromFloats] are kept as they are. Errors are
// [*table.Diagnostics], which name the model, the part and the key: `model "m": encoder[0] (dense): units: got -3, want an integer > 0`.
func Complete(m *Model, changes ...Set) (*Model, error) {
	if m == nil {
		return nil, errors.New("config: no model to complete")
	}
	name := cmp.Or(m.Name, LiteralName)
	tree, err := (&table.Writer{Language: language, Given: true}).Tree(m)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	root, models := table.NewTable(), table.NewTable()
	root.Put("model", models)
	models.Put(name, tree)
	f := newFile(table.NewSource(name, ""), root)
	memory, _ := m.Dataset.Source.(*data.Memory)
	complete, err := f.Model(name, changes...)
	if err == nil && memory != nil && complete.Dataset.Name == data.MemoryName {
		complete.Dataset.Source = memory
		err = complete.fitsImages(memory)
	}
	if err != nil {
		return nil, err
	}
	return complete, nil
}

// fitsImages checks what depends on the shape of images that the text does not know.
func (m *Model) fitsImages(images *data.Memory) error {
	shape, ok := images.Shape(nil)
	if !ok || m.Baseline != nil {
		return nil
	}
	return table.Report(m.check(shape))
}
