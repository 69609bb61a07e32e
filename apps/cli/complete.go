package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/losses"
)

func completeCommand() *cobra.Command {
	var f completeFlags
	cmd := &cobra.Command{
		Use:   "complete RUN --in FILE --out FILE",
		Short: "Fill the missing entries of a file",
		Long: "Fill the missing entries of a .csv, .npy, .npz or .safetensors file, empty cells and NaN, with the model's reconstruction. All other cells and " +
			"entries, and other columns and arrays, stay as they are, to the byte. A pca, an nmf or a sparse_nmf encodes each sample by the entries that are there (not with scale = whiten). Any other " +
			"model that was trained with missing or hidden entries (missing and hide of its data set) gets 0 in their place, as in its training. Others begin with the " +
			"mean of the other samples and are asked again until their answer does not change.",
		Example: "  tessera complete runs/ratings --in ratings.csv --out filled.csv",
		RunE:    work(func(cmd *cobra.Command, args []string) error { return f.complete(cmd, args[0]) }),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&f.in, "in", "", "file with missing entries")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "file to write, of the same kind")
	cmd.Flags().BoolVar(&f.empty, "empty-rows", false, "also fill samples of which nothing is known")
	_ = cmd.MarkFlagRequired("in")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// completeFlags contains the flags of the command complete.
type completeFlags struct {
	runFlags
	in, out string
	empty   bool
}

func (f *completeFlags) complete(cmd *cobra.Command, run string) error {
	whole := []string{".csv", ".npy", ".npz", ".safetensors"}
	if given, want := filepath.Ext(f.out), strings.ToLower(filepath.Ext(f.in)); slices.Contains(whole, want) && !strings.EqualFold(given, want) {
		return usagef("--out: got %q, want a name that ends in %s, like --in", f.out, want)
	}
	if err := outputFile(f.in, f.out); err != nil {
		return err
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	columns := r.Columns(losses.Output)
	like := data.Reading(like(cmd.Context(), r), r.Model.BehindDrawn(columns)...)
	completed, err := data.Complete(cmd.Context(), f.in, f.out, r.Shape(), like, func(rows *data.Rows) ([]float32, error) {
		warn(cmd, rows.Notes...)
		if err := f.someKnown(rows); err != nil {
			return nil, err
		}
		all, err := given(cmd, r, rows, columns)
		if err != nil {
			return nil, err
		}
		return r.Complete(all)
	})
	if errors.Is(err, tessera.ErrNoOutput) {
		return usageError{err}
	}
	var bad *data.Error
	if errors.As(err, &bad) {
		return err
	}
	if err != nil {
		return writing(f.out, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %d entries completed\n", f.out, completed)
	return nil
}

// someKnown returns an error for samples without any observed entry.
func (f *completeFlags) someKnown(rows *data.Rows) error {
	raw, pixels := rows.Raw(), rows.Pixels()
	for i := 0; i < rows.Len() && !f.empty; i++ {
		known := false
		for _, v := range raw[i*pixels : (i+1)*pixels] {
			known = known || v == v
		}
		if !known {
			return &data.Error{Path: f.in, Problem: fmt.Sprintf("nothing is known of sample %d: all of its values are missing", i),
				Hint: "remove it, or give --empty-rows, which fills it with what the model makes of a sample without values"}
		}
	}
	return nil
}
