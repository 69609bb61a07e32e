package cli

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
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
	Out   string `flag:"out,o" required:"true" is:"output" doc:"file to write, of the same kind; .csv for a .parquet"`
	Empty bool   `flag:"empty-rows" doc:"also fill samples of which nothing is known"`
}

func (f *completeCommand) Help() Help {
	return Help{
		Long: "Fill the missing entries of a .csv, .tsv, .parquet, .npy, .npz or .safetensors file, empty cells and NaN, with the model's reconstruction. All other cells and " +
			"entries, and other columns and arrays, stay as they are, to the byte. Columns of whole numbers in a table get whole numbers; columns of the training that it lacks count as missing. A pca, an nmf or a sparse_nmf encodes each sample by the entries that are there (not with scale = whiten). Any other " +
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
	done, err := data.Complete(cmd.Context(), f.In, f.Out, r.Shape(), like, func(rows *data.Rows) ([]float64, error) {
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
		if err == nil {
			err = f.doubt(cmd, r, rows, all)
		}
		if err == nil && r.Scaling().IsExact() {
			return r.Scaling().Restore(filled), nil
		}
		return vectors.Wide(filled), err
	})
	if errors.Is(err, tessera.ErrNoOutput) {
		return usageError{err}
	}
	if _, ok := errors.AsType[*data.Error](err); ok {
		return err
	}
	if err != nil {
		return writing(f.Out, err)
	}
	said := fmt.Sprintf("%s: %s completed", f.Out, numeral.Of(done.Entries, "entry"))
	if done.Left != nil {
		said += "; cells that stay empty, in columns that the model does not complete: " + someOf(done.Left)
	}
	return cmd.tell(said)
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

// doubt warns of columns that are filled worse than by their means: of those with missing values it hides every fifth known value, and completes again.
func (f *completeCommand) doubt(cmd *Call, r *tessera.Run, rows *data.Rows, all map[string][]float32) error {
	const every, least = 5, 20 // known values; hidden ones from which to judge
	if len(r.Shape()) != 1 {
		return nil
	}
	values, width := all[losses.Images], rows.Pixels()
	hidden, tested := slices.Clone(values), maps.Clone(all)
	mask := slices.Clone(all[data.ObservedColumn])
	var judged [][]int // places of hidden values, by column
	for k := range width {
		var known, places []int
		for i := k; i < len(values); i += width {
			if values[i] == values[i] {
				known = append(known, i)
			}
		}
		for n := k % every; n < len(known) && len(known)*width < len(values); n += every {
			places = append(places, known[n])
		}
		if len(places) < least {
			continue
		}
		for _, i := range places {
			if hidden[i] = float32(math.NaN()); mask != nil {
				mask[i] = 0
			}
		}
		judged = append(judged, places)
	}
	if judged == nil {
		return nil
	}
	if tested[losses.Images] = hidden; mask != nil {
		tested[data.ObservedColumn] = mask
	}
	filled, err := r.Centred().Complete(tested)
	if err != nil {
		return err
	}
	var worse []string
	for _, places := range judged {
		mean, wrong, spread := 0.0, 0.0, 0.0
		for _, i := range places {
			mean += float64(values[i]) / float64(len(places))
		}
		for _, i := range places {
			wrong += math.Pow(float64(filled[i]-values[i]), 2)
			spread += math.Pow(float64(values[i])-mean, 2)
		}
		if wrong > spread {
			worse = append(worse, strconv.Quote(columnOf(rows, places[0]%width)))
		}
	}
	if worse != nil {
		warn(cmd, fmt.Sprintf("%s: by a test with known values that were hidden, the mean of a column fills it better than the model: %s", f.Out, someOf(worse)))
	}
	return nil
}

// columnOf returns the name of a value of the rows, its number if it has none.
func columnOf(rows *data.Rows, k int) string {
	if names := rows.ValueNames(); k < len(names) {
		return names[k]
	}
	return strconv.Itoa(k)
}
