package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/classical/generate"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/train/folder"
	"tessera/losses"
)

// maxDrawn is the largest number of values that sample draws: 4 GB of float32.
const maxDrawn = 1 << 30

func init() {
	Commands.Register("sample", "Draw new images from a generative model or an auto-encoder", func() Command {
		return &sampleCommand{codeFlags: forCodes(), Seed: 1, Eta: -1, Value: losses.Code}
	})
}

type sampleCommand struct {
	codeFlags
	Count    int      `flag:"count" required:"true" want:"> 0" doc:"number of images"`
	Seed     uint64   `flag:"seed" doc:"seed of the images"`
	Mixture  bool     `flag:"mixture" without:"steps eta" doc:"draw codes from the mixture fitted to codes also for a model with a prior or a code book"`
	Prior    string   `flag:"prior" is:"folder" without:"mixture column steps eta" doc:"run that draws the indices of a code book, each from those before it: a model with the loss next_token, whose data set has the indices of the run"`
	Columns  []string `flag:"column" each:"true" without:"mixture" doc:"value of a column of every image, as in labels=3 or labels=Boot (NAME=VALUE, several numbers with commas), for a model that computes images from it; may be repeated"`
	Steps    int      `flag:"steps" want:"> 0" doc:"number of steps of a diffusion model" default:"that of its layer"`
	Eta      float64  `flag:"eta" want:"in [0,1]" doc:"share of fresh noise in a step of a diffusion model" default:"that of its layer"`
	Features string   `flag:"features" is:"folder" doc:"run whose values are the features for precision and recall"`
	Value    string   `flag:"value" needs:"features" doc:"value of that run"`
}

func (f *sampleCommand) Help() Help {
	return Help{
		Long: "Draw images, or vectors, from a model. A model that is a distribution (gmm, bmm, factor_analysis, the layers gaussian and diffuse, a head that reads drawn columns alone) " +
			"is sampled itself. If the encoder ends in a code book (the layer vq), its indices are drawn, each given its place, the one on its left and the one above, by frequencies " +
			"in at most 10,000 training images, or with --prior by a model of their sequences. The codes of any other model with a decoder are drawn from a mixture of normal distributions, which is fitted to the codes of at most 10,000 " +
			"training images, and decoded; --mixture does this for a model with a prior or a code book too. The scaling of the training is undone. " +
			"The output is .npy (float32), .npz, .idx, a .png (a grid of the images) or a new folder of PNG files; vectors are written as .npy, .npz or .csv. " +
			"Equal seeds give equal images; more images continue those of a smaller count. " +
			"A diffusion model computes its images in --steps steps; --eta 1, the default of the layer, is DDPM, --eta 0 is DDIM. " +
			"--column NAME=VALUE gives all images the same value of a column, such as the class, in place of one that is drawn. " +
			"--features RUN prints the precision and the recall of the images: how many look like test images, and how many test images look like them, " +
			"in the space of a value of another run (Kynkäänniemi et al. 2019). Only numbers with the same features and count can be compared.",
		Examples: []string{"tessera sample runs/mixture --count 100 -o drawn.npy", "tessera sample runs/vae --count 64 --seed 2 -o drawn.png",
			"tessera sample runs/diffusion --count 64 --steps 250 -o drawn.png", "tessera sample runs/vae --count 1000 --features runs/classifier -o drawn.npy"},
	}
}

func (f *sampleCommand) Do(cmd *Call) error {
	format, err := data.FormatOf(f.Out)
	if err != nil {
		return usageError{err}
	}
	r, err := f.open("")
	if err != nil {
		return err
	}
	defer r.Close()
	var features *tessera.Run
	if f.Features != "" {
		if features, err = f.runFlags.open(f.Features); err != nil {
			return err
		}
		defer features.Close()
		if all := slices.Concat(features.Values(), features.Named()); !slices.Contains(all, f.Value) {
			return usagef("--value: got %q, want a value of %s: one of %s", f.Value, f.Features, table.Quoted(all))
		}
	}
	if err := f.drawable(r, features); err != nil {
		return err
	}
	g := generate.New(r)
	if f.Columns != nil {
		columns, err := f.given(r)
		if err != nil {
			return err
		}
		g = g.Given(columns)
	}
	draw, stepped := g.Draw, cmd.Given("steps", "eta")
	switch {
	case f.Mixture:
		draw = g.DrawFromCodes
	case f.Prior != "":
		prior, err := f.runFlags.open(f.Prior)
		if err != nil {
			return err
		}
		defer prior.Close()
		draw = func(ctx context.Context, n int, seed uint64) ([]float32, error) {
			return g.DrawFromPrior(ctx, prior, n, seed)
		}
	case stepped:
		draw = func(ctx context.Context, n int, seed uint64) ([]float32, error) {
			return g.DrawInSteps(ctx, n, seed, f.Steps, f.Eta)
		}
	}
	values, err := draw(cmd.Context(), f.Count, f.Seed)
	if key, ok := errors.AsType[part.KeyError](err); ok && stepped { // the keys of the flags, which the declaration has not
		return usagef("sample %s: --%w", r.Path, key)
	}
	if err != nil {
		return err
	}
	var q *generate.Quality
	if features != nil { // an error leaves no file
		if q, err = generate.Measure(cmd.Context(), r, values, features, f.Value); err != nil {
			return err
		}
	}
	if format == "png" && f.Count > 1 && len(r.Shape()) > 1 {
		err = f.writeGrid(cmd, r, 0, values)
	} else {
		err = f.writeImages(cmd, r, format, values, &data.Rows{})
	}
	if err != nil || features == nil {
		return err
	}
	facts := &doc.Facts{Facts: []doc.Fact{{Title: "precision", Value: doc.Fixed3(q.Precision)}, {Title: "recall", Value: doc.Fixed3(q.Recall)},
		{Title: "of", Value: fmt.Sprintf("%s drawn and %s test images, %s of %s", numeral.Count(f.Count), numeral.Count(q.Real), f.Value, f.Features)}}}
	return cmd.Show(&doc.Document{Blocks: []doc.Block{facts}}, false)
}

// given returns the values of --column.
func (f *sampleCommand) given(r *tessera.Run) (map[string][]float32, error) {
	columns, all := map[string][]float32{}, r.Measured()
	for _, text := range f.Columns {
		name, value, ok := strings.Cut(text, "=")
		at := slices.IndexFunc(all, func(c data.Column) bool { return c.Name == name })
		switch {
		case !ok || columns[name] != nil:
			return nil, usagef("--column: got %q, want NAME=VALUE, each name once", text)
		case at < 0:
			names := lists.Map(all, func(c data.Column) string { return c.Name })
			return nil, usagef("--column: unknown column %q: %s", name, table.Suggest(name, names))
		}
		if classes := all[at].Names; len(classes) > 0 {
			i := slices.Index(classes, value)
			if n, err := strconv.Atoi(value); i < 0 && err == nil && n >= 0 && n < len(classes) && !data.AreNumbers(classes) {
				i = n // the number of a class with another name
			}
			if i < 0 {
				return nil, usagef("--column: unknown class %q of %s: %s", value, name, table.Suggest(value, classes))
			}
			columns[name] = []float32{float32(i)}
			continue
		}
		for _, number := range strings.Split(value, ",") {
			v, err := strconv.ParseFloat(strings.TrimSpace(number), 32)
			if err != nil && name == data.LabelsColumn && !r.Model.ReadsLabels() {
				return nil, usagef("--column: no part of the model reads %q: leave it out", name)
			} else if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, usagef("--column: got %q, want numbers with commas after %s=", text, name)
			}
			columns[name] = append(columns[name], float32(v))
		}
	}
	return columns, nil
}

// drawable checks before anything is drawn what would fail afterwards. The images of a command are all in memory.
func (f *sampleCommand) drawable(r, features *tessera.Run) error {
	size := 1
	for _, n := range r.Shape() {
		size *= n
	}
	if most := max(1, maxDrawn/size); f.Count > most {
		return usagef("--count: got %d, want at most %d images of %s: draw several files with other seeds", f.Count, most, r.Path)
	}
	if features != nil && f.Count <= generate.QualityNeighbours {
		return usagef("--count: got %d, want more than %d images for --features", f.Count, generate.QualityNeighbours)
	}
	if features != nil && !slices.Equal(features.Shape(), r.Shape()) {
		return usagef("--features: the images of %s have the shape %v, want %v as %s", features.Path, features.Shape(), r.Shape(), r.Path)
	}
	return nil
}

// writeGrid writes images as one PNG file, a grid.
func (f *codeFlags) writeGrid(cmd *Call, r *tessera.Run, columns int, values []float32) error {
	low, high := r.Range()
	grid, err := figures.Grid(r.Shape(), columns, low, high, values)
	if err != nil {
		return usageError{err}
	}
	if err := grid.Save(f.Out); err != nil {
		return &folder.WriteError{Path: f.Out, Err: err}
	}
	return cmd.wrote(f.Out)
}
