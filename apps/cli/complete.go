package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
	"tessera/losses"
)

func init() {
	Commands.Register("complete", "Fill the missing entries of a file", func() Command { return &completeCommand{runFlags: forRuns()} })
}

type completeCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	In    string `flag:"in" required:"true" is:"file" doc:"file with missing entries"`
	Out   string `flag:"out,o" required:"true" is:"output" doc:"file to write, of the same kind"`
	Empty bool   `flag:"empty-rows" doc:"also fill samples of which nothing is known"`
}

func (f *completeCommand) Help() Help {
	return Help{
		Long: "Fill the missing entries of a .csv, .npy, .npz or .safetensors file, empty cells and NaN, with the model's reconstruction. All other cells and " +
			"entries, and other columns and arrays, stay as they are, to the byte. Columns of whole numbers in a .csv file get whole numbers; columns of the training that it lacks count as missing. A pca, an nmf or a sparse_nmf encodes each sample by the entries that are there (not with scale = whiten). Any other " +
			"model that was trained with missing or hidden entries (missing and hide of its data set) gets 0 in their place, as in its training. Others begin with the " +
			"mean of the other samples and are asked again until their answer does not change.",
		Examples: []string{"tessera complete runs/ratings --in ratings.csv --out filled.csv"},
	}
}

func (f *completeCommand) Do(cmd *Call) error {
	whole := []string{".csv", ".npy", ".npz", ".safetensors"}
	if given, want := filepath.Ext(f.Out), strings.ToLower(filepath.Ext(f.In)); slices.Contains(whole, want) && !strings.EqualFold(given, want) {
		return usagef("--out: got %q, want a name that ends in %s, like --in", f.Out, want)
	}
	if err := outputFile(f, f.Out, f.In); err != nil {
		return err
	}
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	columns := r.Columns(losses.Output)
	like := data.Reading(like(cmd.Context(), r), r.Model.BehindDrawn(columns)...)
	completed, err := data.Complete(cmd.Context(), f.In, f.Out, r.Shape(), like, func(rows *data.Rows) ([]float64, error) {
		warn(cmd, rows.Notes...)
		warnUnlike(cmd, r, f.In, rows)
		if err := f.someKnown(rows); err != nil {
			return nil, err
		}
		all, err := given(cmd, r, rows, columns)
		if err != nil {
			return nil, err
		}
		filled, err := r.Centred().Complete(all)
		if err == nil && r.Scaling().IsExact() {
			return r.Scaling().Restore(filled), nil
		}
		return vectors.Wide(filled), err
	})
	if errors.Is(err, tessera.ErrNoOutput) {
		return usageError{err}
	}
	var bad *data.Error
	if errors.As(err, &bad) {
		return err
	}
	if err != nil {
		return writing(f.Out, err)
	}
	return cmd.tell(fmt.Sprintf("%s: %s completed", f.Out, numeral.Of(completed, "entry")))
}

// someKnown returns an error for samples without any observed entry.
func (f *completeCommand) someKnown(rows *data.Rows) error {
	raw, pixels := rows.Raw(), rows.Pixels()
	for i := 0; i < rows.Len() && !f.Empty; i++ {
		known := false
		for _, v := range raw[i*pixels : (i+1)*pixels] {
			known = known || v == v
		}
		if !known {
			return &data.Error{Path: f.In, Problem: fmt.Sprintf("nothing is known of sample %d: all of its values are missing", i),
				Hint: "remove it, or give --empty-rows, which fills it with what the model makes of a sample without values"}
		}
	}
	return nil
}
