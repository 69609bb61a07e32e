package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config"
)

func checkCommand() *cobra.Command {
	var f modelFlags
	var fill string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report all errors of a models.toml",
		Long:  "Report all errors of the models and sweeps in FILE (default ./" + tessera.ModelsFile + ", or the shipped models if there is none).\n--fill prints one model with every default instead.",
		Args:  cobra.MaximumNArgs(1),
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
			for _, name := range models.Names() {
				if m, err := models.Model(name); err == nil {
					warn(cmd, m.Warnings()...)
				}
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
