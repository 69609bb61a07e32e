package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/train/folder"
	"tessera/losses"
)

// traverseFlags contains the flags of traverse and interpolate.
type traverseFlags struct {
	codeFlags
	images, units []int
	most, steps   int
}

const imagesHelp = "of the test images, or of all images if there is no test split"

// command adds the flags that both commands have.
func (f *traverseFlags) command(cmd *cobra.Command, do func(*cobra.Command, *tessera.Run) ([]float32, error)) *cobra.Command {
	cmd.Flags().IntVar(&f.steps, "steps", 9, "number of images in a row")
	return f.addTo(cmd, "file or folder of the images, in place of the data set of the run", func(cmd *cobra.Command, run string) error {
		return f.run(cmd, run, do)
	})
}

func traverseCommand() *cobra.Command {
	var f traverseFlags
	cmd := f.command(&cobra.Command{
		Use:   "traverse RUN",
		Short: "Decode codes in which one unit at a time goes through its range",
		Long: "Decode codes that differ in one unit: each row of the output is one unit, whose value goes from its 1 % to its 99 % quantile over the codes of at most " +
			"10,000 training images. All other units have the values of a base code: the mean code, or the code of the image of --image. " +
			"Without --units the units with the largest effect are shown, the root mean square difference of the images at the two ends. " +
			"The output is a .png with a row for each unit, .npy (float32), .npz, .idx or a new folder of PNG files; vectors are written as .npy, .npz or .csv.",
		Example: "  tessera traverse runs/vae -o units.png\n  tessera traverse runs/parts-vae --image 3 --units 0,7,12 --steps 5 -o units.npy",
	}, f.traverse)
	cmd.Flags().IntSliceVar(&f.images, "image", nil, "index of the image whose code is changed, "+imagesHelp+" (default the mean code)")
	cmd.Flags().IntSliceVar(&f.units, "units", nil, "units to change, separated by commas (default those with the largest effect)")
	cmd.Flags().IntVar(&f.most, "most", 10, "number of units without --units")
	return cmd
}

func interpolateCommand() *cobra.Command {
	var f traverseFlags
	cmd := f.command(&cobra.Command{
		Use:   "interpolate RUN",
		Short: "Decode codes between the codes of images",
		Long: "Decode codes in equal steps from the code of each image to that of the next one: --images 0,1,2 gives two rows. A row begins and ends with the " +
			"reconstructions of its images. The output is a .png with a row for each pair, .npy (float32), .npz, .idx or a new folder of PNG files; vectors are written as .npy, .npz or .csv.",
		Example: "  tessera interpolate runs/vae --images 0,1 -o between.png\n  tessera interpolate runs/vae --in two.npy --steps 5 -o between.npy",
	}, f.interpolate)
	cmd.Flags().IntSliceVar(&f.images, "images", nil, "indices of at least two images, "+imagesHelp+" (default the first two)")
	return cmd
}

// run opens the run, and writes the images that a command decodes.
func (f *traverseFlags) run(cmd *cobra.Command, run string, do func(*cobra.Command, *tessera.Run) ([]float32, error)) error {
	format, err := data.FormatOf(f.out)
	if err != nil {
		return usageError{err}
	}
	if f.steps < 2 || f.steps > 1000 {
		return usagef("--steps: got %d, want 2 to 1000", f.steps)
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Decodes(); err != nil {
		return usagef("%s: %w", run, err)
	}
	images, err := do(cmd, r)
	if err != nil || images == nil {
		return err
	}
	if format == "png" && len(r.Shape()) > 1 {
		return f.writeGrid(cmd, r, f.steps, images)
	}
	return f.writeImages(cmd, r, format, images, &data.Rows{})
}

// chosen returns the images with the indices of the flag, from --in or from the data set of the run.
func (f *traverseFlags) chosen(cmd *cobra.Command, r *tessera.Run, flag string) (*data.Images, error) {
	var all *data.Images
	if f.in != "" {
		rows, err := readSamples(cmd, r, f.in, r.Columns(losses.Code)...)
		if err != nil {
			return nil, err
		}
		all = rows.Images
	} else {
		sample, err := r.Sample(cmd.Context(), data.TestSplit)
		if err != nil {
			return nil, err
		}
		all = sample.Images
	}
	if i := slices.IndexFunc(f.images, func(i int) bool { return i < 0 || i >= all.Len() }); i >= 0 {
		return nil, usagef("--%s: got %d, want 0 to %d", flag, f.images[i], all.Len()-1)
	}
	return all.Subset(f.images), nil
}

func (f *traverseFlags) traverse(cmd *cobra.Command, r *tessera.Run) ([]float32, error) {
	switch {
	case len(f.images) > 1:
		return nil, usagef("--image: got %d images, want one", len(f.images))
	case f.in != "" && len(f.images) == 0:
		f.images = []int{0}
	case f.most < 1:
		return nil, usagef("--most: got %d, want at least 1", f.most)
	}
	if i := slices.IndexFunc(f.units, func(unit int) bool { return unit < 0 || unit >= r.Units() }); i >= 0 {
		return nil, usagef("--units: got %d, want 0 to %d", f.units[i], r.Units()-1)
	}
	t := tessera.Traversal{Units: f.units, Most: f.most, Steps: f.steps}
	if len(f.images) > 0 {
		image, err := f.chosen(cmd, r, "image")
		if err != nil {
			return nil, err
		}
		if t.Base, err = r.Codes(cmd.Context(), image); err != nil {
			return nil, err
		}
	}
	of, err := r.Traverse(cmd.Context(), t)
	if err != nil {
		return nil, err
	}
	if format, _ := data.FormatOf(f.out); format != "png" || len(r.Shape()) < 2 {
		return of.Images, nil
	}
	low, high := r.Range()
	if most := slices.Max(of.Effect); 255*most < float64(high)-float64(low) {
		warn(cmd, fmt.Sprintf("the images of a row look alike: no unit has an effect of a level of grey, the largest is %.2g; `tessera interpolate` and `tessera sample` change all units", most))
	}
	var rows []figures.ImageRow
	for i, unit := range of.Units {
		n := len(of.Images) / len(of.Units)
		rows = append(rows, figures.ImageRow{Caption: fmt.Sprintf("unit %d: %.3g to %.3g, effect %.2g", unit, of.Ranges[i][0], of.Ranges[i][1], of.Effect[i]),
			Shape: r.Shape(), Images: figures.Levels(of.Images[i*n:(i+1)*n], low, high), Columns: f.steps, Tone: figures.Unit})
	}
	figure, err := figures.ImageRows(rows...)
	if err != nil {
		return nil, err
	}
	if err := figure.Save(f.out); err != nil {
		return nil, &folder.WriteError{Path: f.out, Err: err}
	}
	fmt.Fprintln(cmd.OutOrStdout(), f.out)
	return nil, nil
}

func (f *traverseFlags) interpolate(cmd *cobra.Command, r *tessera.Run) ([]float32, error) {
	if len(f.images) == 0 {
		f.images = []int{0, 1}
	}
	if len(f.images) < 2 {
		return nil, usagef("--images: got one image, want at least two")
	}
	images, err := f.chosen(cmd, r, "images")
	if err != nil {
		return nil, err
	}
	return r.Interpolate(cmd.Context(), images, f.steps)
}
