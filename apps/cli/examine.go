package cli

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/train"
)

// examine reads the data files that the models of a file name. An error of a file is an error, as it would be of a training. A missing
// file is a warning: it may be on another machine.
func examine(cmd *cobra.Command, f *modelFlags, models *config.File) error {
	seen := map[string]bool{}
	o := train.Options{Load: loadOnce(data.SearchDirs(f.data))}
	for _, name := range models.Names() {
		if models.FileOf(name) == tessera.ShippedName {
			continue
		}
		m, err := models.Model(name)
		if err != nil || !data.IsOwn(m.Dataset.Source) {
			continue
		}
		notes, err := train.Examine(cmd.Context(), m, o)
		var bad *data.Error
		if errors.As(err, &bad) && bad.Problem == data.NotFound {
			notes, err = append(notes, bad.Error()), nil
		}
		for _, note := range notes {
			if !seen[note] {
				warn(cmd, note)
			}
			seen[note] = true
		}
		if err != nil {
			return fmt.Errorf("model %q: %w", name, err)
		}
	}
	return nil
}

// loadOnce loads a data set that several models use one after the other once.
func loadOnce(dirs data.Dirs) train.LoadData {
	var last *config.Dataset
	var set *data.Set
	return func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
		if last != nil && last.Need() == d.Need() && reflect.DeepEqual(last.Source, d.Source) {
			return set, nil
		}
		loaded, err := d.Source.Load(ctx, dirs, d.Need())
		if err == nil {
			last, set = d, loaded
		}
		return loaded, err
	}
}
