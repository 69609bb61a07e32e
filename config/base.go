package config

import (
	"slices"

	"tessera/part/table"
)

// Extend adds the declarations of base to those of f: models of f can extend models of base, sweeps of f can train them,
// and [File.Model] and [File.Sweep] return the declarations of both. A declaration of f hides base's declaration with the
// same name. The models and sweeps of base do not change by that. A hidden model can still be extended by the model that
// hides it:
//
//	[model.shallow]
//	extends = "shallow" # of base
//
// f takes over base: base must not be used afterwards.
func (f *File) Extend(base *File) {
	if !f.empty() && !base.empty() {
		f.base = base
	}
}

// Names lists the models, those of the file first, in its order.
func (f *File) Names() []string {
	return f.names(func(f *File) *table.Node { return f.models })
}

// SweepNames lists the sweeps, those of the file first, in its order.
func (f *File) SweepNames() []string {
	return f.names(func(f *File) *table.Node { return f.sweeps })
}

func (f *File) names(declared func(*File) *table.Node) (names []string) {
	if f.empty() {
		return nil
	}
	own := declared(f)
	names = slices.Clone(own.Keys)
	for _, name := range f.base.names(declared) {
		if own.Child(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// FileOf returns the name of the file that declares a model, "" if there is no such model.
func (f *File) FileOf(model string) string { return f.owner(model).name() }

// FileOfSweep is FileOf for a sweep.
func (f *File) FileOfSweep(sweep string) string { return f.sweepOwner(sweep).name() }

func (f *File) name() string {
	if f.empty() {
		return ""
	}
	return f.source.File
}

// sources names the file and the files that it extends.
func (f *File) sources() string {
	text := f.source.File
	if f.base != nil {
		text += " and " + f.base.sources()
	}
	return text
}

// owner returns the file that declares a model: f, or a file that it extends; nil if there is none.
func (f *File) owner(model string) *File {
	for ; !f.empty(); f = f.base {
		if f.models.Child(model) != nil {
			return f
		}
	}
	return nil
}

func (f *File) sweepOwner(sweep string) *File {
	for ; !f.empty(); f = f.base {
		if f.sweeps.Child(sweep) != nil {
			return f
		}
	}
	return nil
}

// scope returns the file in which the parent of a model is looked up: a model that extends its own name extends the model
// that it hides.
func (f *File) scope(model, parent string) *File {
	if model == parent && f.models.Child(model) != nil && f.base.owner(parent) != nil {
		return f.base
	}
	return f
}

// soundAbove returns the errors of the model of another file that a model of this file extends.
func (f *File) soundAbove(model string) []table.Diagnostic {
	parent, ok := f.models.Child(model).Child("extends").Text()
	if !ok {
		return nil
	}
	if home := f.scope(model, parent).owner(parent); home != nil && home != f {
		return home.sound(parent)
	}
	return nil
}
