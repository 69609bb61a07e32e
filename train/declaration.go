package train

import (
	"fmt"
	"slices"
	"strings"

	"tessera/config"
	"tessera/part"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// editable are the keys that may be changed in config.toml before a run is resumed: how long it is trained, and how often it is
// saved.
var editable = []string{"train.epochs", "iterations", "train.patience", "train.min_delta", "train.checkpoint_seconds"}

// sameDeclaration refuses a declaration that is another one than the state was trained with, key by key. A state of an
// earlier version has no record of it; see [identity].
func sameDeclaration(spec *config.Model, from *stored) error {
	text := from.file.Metadata[declarationKey]
	if text == "" {
		return nil
	}
	was, err := parseConfig(from.path, []byte(text))
	if err != nil {
		return checkpoint.Mismatchf(from.path, "does not match: the declaration that it was trained with cannot be read: %v", err)
	}
	differing := slices.DeleteFunc(config.Differences(was, spec), func(d config.Difference) bool { return slices.Contains(editable, d.Key) })
	if len(differing) == 0 {
		return nil
	}
	lines := make([]string, len(differing))
	for i, d := range differing {
		lines[i] = d.String()
	}
	return checkpoint.Mismatchf(from.path, "does not match %s: %s", folder.Config, strings.Join(lines, "; "))
}

// lengthen returns the model of a run with another number of epochs, and what is to be written once the run is ready to continue: its
// config.toml with that number, or nothing.
func (o Options) lengthen(held *folder.Folder, spec *config.Model, from *stored) (longer *config.Model, edited []folder.File, err error) {
	wrong := func(problem string, a ...any) error {
		return fmt.Errorf("run %s: %w", held.Path(), part.KeyErrorf("epochs", problem, a...))
	}
	switch {
	case o.Epochs == 0 || o.Epochs == spec.Train.Epochs:
		return spec, nil, nil
	case spec.Baseline != nil:
		return nil, nil, wrong("a baseline (%s) has none; edit its own keys, such as iterations, in %s", spec.Kind, held.Join(folder.Config))
	case o.Epochs < max(1, from.Epoch):
		return nil, nil, wrong("got %d, but %d are complete; want more", o.Epochs, from.Epoch)
	}
	if err := sameDeclaration(spec, from); err != nil {
		return nil, nil, err
	}
	other := *spec
	other.Train.Epochs = o.Epochs
	text := config.Fill(&other)
	longer, err = parseConfig(held.Join(folder.Config), text)
	return longer, []folder.File{{Name: folder.Config, Data: text}}, err
}
