package cli

import (
	"fmt"
	"slices"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/classical/generate"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/train/folder"
	"tessera/losses"
)

func init() {
	Commands.Register("traverse", "Decode codes in which one unit at a time goes through its range", func() Command {
		return &traverseCommand{codeFlags: forCodes(), rowFlags: rowFlags{Steps: 9}, Most: 10}
	})
	Commands.Register("interpolate", "Decode codes between the codes of images", func() Command {
		return &interpolateCommand{codeFlags: forCodes(), rowFlags: rowFlags{Steps: 9}}
	})
}

type rowFlags struct {
	In    string `flag:"in" is:"file" doc:"file or folder of the images, in place of the data set of the run"`
	Steps int    `flag:"steps" want:"in [2,1000]" doc:"number of images in a row"`
}

type traverseCommand struct {
	codeFlags
	rowFlags
	Image []int `flag:"image" want:">= 0" doc:"index of the image whose code is changed, of the test images, or of all images if there is no test split" default:"the mean code"`
	Units []int `flag:"units" want:">= 0" doc:"units to change, separated by commas" default:"those with the largest effect"`
	Most  int   `flag:"most" want:"> 0" doc:"number of units without --units"`
}

func (f *traverseCommand) Help() Help {
	return Help{
		Long: "Decode codes that differ in one unit: each row of the output is one unit, whose value goes from its 1 % to its 99 % quantile over the codes of at most " +
			"10,000 training images. All other units have the values of a base code: the mean code, or the code of the image of --image. " +
			"Without --units the units with the largest effect are shown, the root mean square difference of the images at the two ends. " +
			"The output is a .png with a row for each unit, .npy (float32), .npz, .idx or a new folder of PNG files; vectors are written as .npy, .npz or .csv.",
		Examples: []string{"tessera traverse runs/vae -o units.png", "tessera traverse runs/parts-vae --image 3 --units 0,7,12 --steps 5 -o units.npy"},
	}
}

func (f *traverseCommand) Do(cmd *Call) error { return f.row(cmd, &f.rowFlags, f.traverse) }

type interpolateCommand struct {
	codeFlags
	rowFlags
	Images []int `flag:"images" want:">= 0" doc:"indices of at least two images, of the test images, or of all images if there is no test split" default:"the first two"`
}

func (f *interpolateCommand) Help() Help {
	return Help{
		Long: "Decode codes in equal steps from the code of each image to that of the next one: --images 0,1,2 gives two rows. A row begins and ends with the " +
			"reconstructions of its images. The output is a .png with a row for each pair, .npy (float32), .npz, .idx or a new folder of PNG files; vectors are written as .npy, .npz or .csv.",
		Examples: []string{"tessera interpolate runs/vae --images 0,1 -o between.png", "tessera interpolate runs/vae --in two.npy --steps 5 -o between.npy"},
	}
}

func (f *interpolateCommand) Do(cmd *Call) error { return f.row(cmd, &f.rowFlags, f.interpolate) }

// row opens the run, and writes the images that a command decodes.
func (f *codeFlags) row(cmd *Call, rows *rowFlags, do func(*Call, *tessera.Run) ([]float32, error)) error {
	format, err := data.FormatOf(f.Out)
	if err != nil {
		return usageError{err}
	}
	r, err := f.open(rows.In)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := r.Decodes(); err != nil {
		return fmt.Errorf("%s: %w", f.Folder, err)
	}
	images, err := do(cmd, r)
	if err != nil || images == nil {
		return err
	}
	if format == "png" && len(r.Shape()) > 1 {
		return f.writeGrid(cmd, r, rows.Steps, images)
	}
	return f.writeOutputs(cmd, r, format, images, &data.Rows{})
}

// chosen returns the images with the indices that a flag has, from --in or from the data set of the run.
func (f *rowFlags) chosen(cmd *Call, r *tessera.Run, flag string, images []int) (*data.Images, error) {
	var all *data.Images
	if f.In != "" {
		rows, err := readSamples(cmd, r, f.In, r.Columns(losses.Code)...)
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
	if i := slices.IndexFunc(images, func(i int) bool { return i >= all.Len() }); i >= 0 {
		return nil, usagef("--%s: got %d, want 0 to %d", flag, images[i], all.Len()-1)
	}
	return all.Subset(images), nil
}

func (f *traverseCommand) traverse(cmd *Call, r *tessera.Run) ([]float32, error) {
	switch {
	case len(f.Image) > 1:
		return nil, usagef("--image: got %d images, want one", len(f.Image))
	case f.In != "" && len(f.Image) == 0:
		f.Image = []int{0}
	}
	if i := slices.IndexFunc(f.Units, func(unit int) bool { return unit >= r.Units() }); i >= 0 {
		return nil, usagef("--units: got %d, want 0 to %d", f.Units[i], r.Units()-1)
	}
	t := generate.Traversal{Units: f.Units, Most: f.Most, Steps: f.Steps}
	if len(f.Image) > 0 {
		image, err := f.chosen(cmd, r, "image", f.Image)
		if err != nil {
			return nil, err
		}
		if t.Base, err = r.Codes(cmd.Context(), image); err != nil {
			return nil, err
		}
	}
	of, err := generate.New(r).Traverse(cmd.Context(), t)
	if err != nil {
		return nil, err
	}
	if format, _ := data.FormatOf(f.Out); format != "png" || len(r.Shape()) < 2 {
		return of.Images, nil
	}
	low, high := r.Range()
	if most := slices.Max(of.Effect); 255*most < float64(high)-float64(low) {
		warn(cmd, fmt.Sprintf("the images of a row look alike: no unit has an effect of a level of grey, the largest is %.2g; `tessera interpolate` and `tessera sample` change all units", most))
	}
	var rows []figures.ImageRow
	for i, unit := range of.Units {
		n := len(of.Images) / len(of.Units)
		rows = append(rows, figures.ImageRow{Caption: fmt.Sprintf("unit %d: %s to %s, effect %s", unit, numeral.Digits(float64(of.Ranges[i][0]), 3), numeral.Digits(float64(of.Ranges[i][1]), 3), numeral.Digits(of.Effect[i], 2)),
			Shape: r.Shape(), Images: figures.Levels(of.Images[i*n:(i+1)*n], low, high), Columns: f.Steps, Tone: figures.Unit})
	}
	figure, err := figures.ImageRows(rows...)
	if err != nil {
		return nil, err
	}
	if err := figure.Save(f.Out); err != nil {
		return nil, &folder.WriteError{Path: f.Out, Err: err}
	}
	return nil, cmd.wrote(f.Out)
}

func (f *interpolateCommand) interpolate(cmd *Call, r *tessera.Run) ([]float32, error) {
	if len(f.Images) == 0 {
		f.Images = []int{0, 1}
	}
	if len(f.Images) < 2 {
		return nil, usagef("--images: got one image, want at least two")
	}
	images, err := f.chosen(cmd, r, "images", f.Images)
	if err != nil {
		return nil, err
	}
	return generate.New(r).Interpolate(cmd.Context(), images, f.Steps)
}
