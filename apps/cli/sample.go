package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/show/figures"
	"tessera/config/part"
	"tessera/data"
	"tessera/internal/train/folder"
	"tessera/losses"
)

// maxDrawn is the largest number of values that sample draws: 4 GB of float32.
const maxDrawn = 1 << 30

// sampleFlags contains the flags of sample.
type sampleFlags struct {
	codeFlags
	count int
	seed  uint64
	steps int
	eta   float64

	mixture         bool
	features, value string
}

func sampleCommand() *cobra.Command {
	var f sampleFlags
	cmd := f.addTo(&cobra.Command{
		Use:   "sample RUN",
		Short: "Draw new images from a generative model or an auto-encoder",
		Long: "Draw images, or vectors, from a model. A model that is a distribution (gmm, bmm, factor_analysis, the layers gaussian and diffuse, a head that reads drawn columns alone) " +
			"is sampled itself. If the encoder ends in a code book (the layer vq), its indices are drawn, each given its place, the one on its left and the one above, by frequencies " +
			"in at most 10,000 training images. The codes of any other model with a decoder are drawn from a mixture of normal distributions, which is fitted to the codes of at most 10,000 " +
			"training images, and decoded; --mixture does this for a model with a prior or a code book too. The scaling of the training is undone. " +
			"The output is .npy (float32), .npz, .idx, a .png (a grid of the images) or a new folder of PNG files; vectors are written as .npy, .npz or .csv. " +
			"Equal seeds give equal images; more images continue those of a smaller count. " +
			"A diffusion model computes its images in --steps steps; --eta 1, the default of the layer, is DDPM, --eta 0 is DDIM. " +
			"--features RUN prints the precision and the recall of the images: how many look like test images, and how many test images look like them, " +
			"in the space of a value of another run (Kynkäänniemi et al. 2019). Only numbers with the same features and count can be compared.",
		Example: "  tessera sample runs/mixture --count 100 -o drawn.npy\n  tessera sample runs/vae --count 64 --seed 2 -o drawn.png\n  tessera sample runs/diffusion --count 64 --steps 250 -o drawn.png\n  tessera sample runs/vae --count 1000 --features runs/classifier -o drawn.npy",
	}, "", f.sample)
	cmd.Flags().IntVar(&f.count, "count", 0, "number of images")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the images")
	cmd.Flags().BoolVar(&f.mixture, "mixture", false, "draw codes from the mixture fitted to codes also for a model with a prior or a code book")
	cmd.Flags().IntVar(&f.steps, "steps", 0, "number of steps of a diffusion model; the default is that of its layer")
	cmd.Flags().Float64Var(&f.eta, "eta", -1, "share of fresh noise in a step of a diffusion model, in [0,1]; the default is that of its layer")
	cmd.Flags().StringVar(&f.features, "features", "", "run whose values are the features for precision and recall")
	cmd.Flags().StringVar(&f.value, "value", losses.Code, "value of that run")
	_ = cmd.MarkFlagRequired("count")
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
	if cmd.Flags().Changed("steps") && f.steps < 1 {
		return usagef("--steps: got %d, want at least 1", f.steps)
	}
	if cmd.Flags().Changed("eta") && !(f.eta >= 0 && f.eta <= 1) {
		return usagef("--eta: got %v, want in [0,1]", f.eta)
	}
	if cmd.Flags().Changed("value") && f.features == "" {
		return usagef("--value: got %q without a run; add --features RUN", f.value)
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	var features *tessera.Run
	if f.features != "" {
		if features, err = f.open(f.features); err != nil {
			return err
		}
		defer features.Close()
		if all := slices.Concat(features.Values(), features.Named()); !slices.Contains(all, f.value) {
			return usagef("--value: got %q, want a value of %s: one of %q", f.value, f.features, all)
		}
	}
	if err := f.drawable(r, features); err != nil {
		return err
	}
	draw, stepped := r.Draw, cmd.Flags().Changed("steps") || cmd.Flags().Changed("eta")
	switch {
	case f.mixture && stepped:
		return usagef("--mixture: codes of a mixture are decoded at once: leave out --steps and --eta")
	case f.mixture:
		draw = r.DrawFromCodes
	case stepped:
		draw = func(ctx context.Context, n int, seed uint64) ([]float32, error) {
			return r.DrawInSteps(ctx, n, seed, f.steps, f.eta)
		}
	}
	values, err := draw(cmd.Context(), f.count, f.seed)
	if key, ok := errors.AsType[part.KeyError](err); ok && stepped { // the keys of the flags, which the declaration has not
		return usagef("sample %s: --%w", r.Path, key)
	}
	if err != nil {
		return err
	}
	var q *tessera.Quality
	if features != nil { // an error leaves no file
		if q, err = r.Quality(cmd.Context(), values, features, f.value); err != nil {
			return err
		}
	}
	if format == "png" && f.count > 1 && len(r.Shape()) > 1 {
		err = f.writeGrid(cmd, r, 0, values)
	} else {
		err = f.writeImages(cmd, r, format, values, &data.Rows{})
	}
	if err != nil || features == nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "precision %.3f, recall %.3f: %d drawn and %d test images, %s of %s\n", q.Precision, q.Recall, f.count, q.Real, f.value, f.features)
	return nil
}

// drawable checks before anything is drawn what would fail afterwards. The images of a command are all in memory.
func (f *sampleFlags) drawable(r, features *tessera.Run) error {
	size := 1
	for _, n := range r.Shape() {
		size *= n
	}
	if most := max(1, maxDrawn/size); f.count > most {
		return usagef("--count: got %d, want at most %d images of %s: draw several files with other seeds", f.count, most, r.Path)
	}
	if features != nil && f.count <= tessera.QualityNeighbours {
		return usagef("--count: got %d, want more than %d images for --features", f.count, tessera.QualityNeighbours)
	}
	if features != nil && !slices.Equal(features.Shape(), r.Shape()) {
		return usagef("--features: the images of %s have the shape %v, want %v as %s", features.Path, features.Shape(), r.Shape(), r.Path)
	}
	return nil
}

// writeGrid writes images as one PNG file, a grid.
func (f *codeFlags) writeGrid(cmd *cobra.Command, r *tessera.Run, columns int, values []float32) error {
	low, high := r.Range()
	grid, err := figures.Grid(r.Shape(), columns, low, high, values)
	if err != nil {
		return usageError{err}
	}
	if err := grid.Save(f.out); err != nil {
		return &folder.WriteError{Path: f.out, Err: err}
	}
	fmt.Fprintln(cmd.OutOrStdout(), f.out)
	return nil
}
