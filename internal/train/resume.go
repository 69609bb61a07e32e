package train

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera/config"
	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// editable lists the keys of config.toml that may be changed before a run is resumed: the length of the run, the interval of
// checkpoints, early stopping.
var editable = []string{"train.epochs", "iterations", "hook.early_stopping.patience", "hook.early_stopping.min_delta", "train.checkpoint_seconds"}

// sameDeclaration returns an error that lists the keys whose values differ between the declaration and the state.
func sameDeclaration(spec *config.Model, from *stored) error {
	was, err := from.declared()
	if err != nil {
		return checkpoint.Mismatchf(from.path, "does not match: its declaration cannot be read: %v", err)
	}
	differing := slices.DeleteFunc(config.Differences(was, spec), func(d config.Difference) bool { return slices.Contains(editable, d.Key) })
	if len(differing) == 0 {
		return nil
	}
	lines := lists.Map(differing, config.Difference.String)
	return checkpoint.Mismatchf(from.path, "does not match %s: %s", folder.Config, strings.Join(lines, "; "))
}

// sameModel returns an error if the parameters belong to a model that differs from the declared one. It ignores settings that
// affect neither parameters nor metrics: the training schedule, the description, and paths of files, which may have been
// moved.
func sameModel(spec *config.Model, path string, f *checkpoint.File) error {
	was, err := parseConfig(path, []byte(f.Metadata[declarationKey]))
	if err != nil {
		return checkpoint.Errorf(path, "the declaration in its metadata cannot be read: %v", err)
	}
	var lines []string
	for _, d := range config.Differences(was, spec) {
		file := strings.HasPrefix(d.Key, "dataset.") && strings.HasPrefix(d.Is, `"`) || strings.HasPrefix(d.Key, "start")
		if !file && d.Key != "about" && d.Key != "kind" && // [openBaseline] says that
			!slices.Contains(editable, d.Key) {
			lines = append(lines, d.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return checkpoint.Mismatchf(path, "does not match %s: %s; restore that file, or train a new run", folder.Config, strings.Join(lines, "; "))
}

// edited warns of keys that were edited after the state was written. A missing key for epochs or iterations is an error: a
// run's config.toml contains every key, so the file was probably truncated.
func (o Options) edited(run string, spec *config.Model, from *stored) error {
	was, err := from.declared()
	if err != nil {
		return nil // reported where the state is compared with the declaration
	}
	path := filepath.Join(run, folder.Config)
	for _, d := range config.Differences(was, spec) {
		if !slices.Contains(editable, d.Key) {
			continue
		}
		if slices.Contains([]string{"train.epochs", "iterations"}, d.Key) && !spec.Sets(d.Key) {
			return checkpoint.Errorf(path, "%s is missing, as if the file was cut short (the run was trained with %s); restore the file, or add the key", d.Key, d.Was)
		}
		if o.Warn != nil {
			o.Warn(path + " was edited: " + d.String())
		}
	}
	return nil
}

// muchFaster is the growth of the learning rate that a longer schedule may cause without a warning.
const muchFaster = 1.5

// lengthen returns the model of a run with a new number of epochs, and the edited config.toml, which is written when the run
// is ready to continue.
func (o Options) lengthen(held *folder.Folder, spec *config.Model, from *stored) (longer *config.Model, edited []folder.File, err error) {
	wrong := func(problem string, a ...any) error {
		return fmt.Errorf("run %s: %w", held.Path(), part.KeyErrorf("epochs", problem, a...))
	}
	switch {
	case o.Epochs == 0:
		return spec, nil, nil
	case spec.Training().Method != "": // also if the number is that of its iterations
		return nil, nil, wrong("a baseline (%s) has no epochs; edit its keys, for example iterations, in %s", spec.Kind, held.Join(folder.Config))
	case o.Epochs == spec.Training().Most:
		return spec, nil, nil
	case o.Epochs < max(1, from.Epoch):
		return nil, nil, wrong("got %d, but %d are complete; want more", o.Epochs, from.Epoch)
	}
	if err := sameDeclaration(spec, from); err != nil {
		return nil, nil, err
	}
	if longer, err = spec.With(config.Passes(o.Epochs)); err != nil {
		return nil, nil, err
	}
	for _, p := range spec.AllPlayers() {
		at, s := float64(from.Epoch), p.Optimizer.Schedule
		if was, is := s.Schedule.Factor(at, float64(spec.Train.Epochs)), s.Schedule.Factor(at, float64(o.Epochs)); is > muchFaster*was && o.Warn != nil {
			o.Warn(fmt.Sprintf("the schedule %s is now that of %d epochs: after epoch %d the learning rate rises from %.3g to %.3g times its base",
				s.Kind, o.Epochs, from.Epoch, was, is))
		}
	}
	return longer, []folder.File{{Name: folder.Config, Data: longer.Text()}}, nil
}

// enough returns an error for a number of epochs that the state already exceeds: the parameters would then include steps
// after the end of the training.
func enough(run string, spec *config.Model, from *stored) error {
	if from.Stopped || from.Position == 0 || spec.Train.Epochs > from.Epoch {
		return nil
	}
	return fmt.Errorf("run %s: %w", run, part.KeyErrorf("epochs", "got %d, but the last checkpoint is within epoch %d; want at least %d",
		spec.Train.Epochs, from.Epoch+1, from.Epoch+1))
}
