package cli

import (
	"cmp"
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

func checkCommand() *cobra.Command {
	var f modelFlags
	var fill string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report all errors of a models.toml",
		Long: "Report all errors of the models and sweeps in FILE (default ./" + tessera.ModelsFile + ", or the shipped models if there is none), and of\n" +
			"the data files that they name, if these exist.\n--fill prints one model with every default instead.",
		Args: cobra.MaximumNArgs(1),
		RunE: work(func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if f.file != "" && f.file != args[0] {
					return usagef("check: which file, %s or --file %s?", args[0], f.file)
				}
				f.file = args[0]
			}
			models, err := f.load()
			if err != nil {
				return err
			}
			if fill != "" {
				m, err := models.Model(fill)
				if err != nil {
					return err
				}
				_, err = cmd.OutOrStdout().Write(config.Fill(m))
				return err
			}
			if err := models.Check(); err != nil {
				return err
			}
			if err := f.examine(cmd, models); err != nil {
				return err
			}
			if len(models.Names()) == 0 && len(models.SweepNames()) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s declares nothing: a model begins with [model.NAME]; `tessera check -f %s --fill shallow` prints one to copy\n",
					cmp.Or(f.file, tessera.ModelsFile), shippedFile)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s, no errors\n", counted(len(models.Names()), "model"))
			return nil
		}),
	}
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "the same as FILE")
	addDataFlag(cmd, &f.data)
	cmd.Flags().StringVar(&fill, "fill", "", "print this model with every default")
	_ = cmd.RegisterFlagCompletionFunc("fill", f.complete)
	return cmd
}

// examine prints the warnings of all models, and reads the user's files that their data sets name. An error of a file is an error, as
// it would be of a training. A missing file is a warning: it may be on another machine.
func (f *modelFlags) examine(cmd *cobra.Command, models *config.File) error {
	seen := map[string]bool{}
	o := train.Options{Load: loadOnce(data.SearchDirs(f.data))}
	for _, name := range models.Names() {
		m, err := models.Model(name)
		if err != nil {
			continue
		}
		warn(cmd, m.Warnings()...)
		if !data.IsOwn(m.Dataset.Source) {
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
