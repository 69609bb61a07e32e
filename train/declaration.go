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

// editable are the keys of config.toml that may be changed before a run is resumed: its length and the interval of
// checkpoints.
var editable = []string{"train.epochs", "iterations", "train.patience", "train.min_delta", "train.checkpoint_seconds"}

// sameDeclaration returns an error that lists the keys whose values differ between the declaration and the state. States of
// earlier versions do not contain the declaration; see [identity].
func sameDeclaration(spec *config.Model, from *stored) error {
	text := from.file.Metadata[declarationKey]
	if text == "" {
		return nil
	}
	was, err := parseConfig(from.path, []byte(text))
	if err != nil {
		return checkpoint.Mismatchf(from.path, "does not match: its declaration cannot be read: %v", err)
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

// lengthen returns the model of a run with another number of epochs, and the edited config.toml, which is written when the run is
// ready to continue.
func (o Options) lengthen(held *folder.Folder, spec *config.Model, from *stored) (longer *config.Model, edited []folder.File, err error) {
	wrong := func(problem string, a ...any) error {
		return fmt.Errorf("run %s: %w", held.Path(), part.KeyErrorf("epochs", problem, a...))
	}
	switch {
	case o.Epochs == 0 || o.Epochs == spec.Train.Epochs:
		return spec, nil, nil
	case spec.Baseline != nil:
		return nil, nil, wrong("a baseline (%s) has no epochs; edit its keys, for example iterations, in %s", spec.Kind, held.Join(folder.Config))
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
