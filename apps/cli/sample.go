package cli

import (
	"github.com/spf13/cobra"
	"tessera/data"
)

// sampleFlags contains the flags of sample.
type sampleFlags struct {
	codeFlags
	count int
	seed  uint64
}

func sampleCommand() *cobra.Command {
	var f sampleFlags
	cmd := &cobra.Command{
		Use:   "sample RUN",
		Short: "Draw new images from a model that is a distribution",
		Long: "Draw images, or vectors, from the distribution that a model has learned: gmm, bmm, factor_analysis. The scaling of the training is undone. " +
			"The output is .npy (float32), .npz, .idx, a .png for one image or a new folder of PNG files; vectors are written as .npy, .npz or .csv. " +
			"Equal seeds give equal images; more images continue those of a smaller count.",
		Example: "  tessera sample runs/mixture --count 100 -o drawn.npy\n  tessera sample runs/digits --count 16 --seed 2 -o drawn",
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.sample(cmd, args[0]) }),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().IntVar(&f.count, "count", 0, "number of images")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the images")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "output file or folder; its name selects the format")
	_ = cmd.MarkFlagRequired("count")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (f *sampleFlags) sample(cmd *cobra.Command, run string) error {
	format, err := data.FormatOf(f.out)
	if err != nil {
		return usageError{err}
	}
	if f.count < 1 {
		return usagef("--count: got %d, want at least 1", f.count)
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	values, err := r.Draw(f.count, f.seed)
	if err != nil {
		return err
	}
	return f.writeImages(cmd, r, format, values, &data.Rows{})
}
