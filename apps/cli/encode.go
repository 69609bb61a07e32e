package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/data"
	"tessera/train/folder"
)

func encodeCommand() *cobra.Command {
	cmd := codingCommand("encode RUN", "Turn images into codes", true, func(ctx context.Context, r *tessera.Run) coding {
		low, high := r.Range()
		warn := func(out io.Writer, file string, values []float32) { warnRange(out, file, values, low, high) }
		return coding{read: r.Shape(), write: []int{r.Units()}, code: r.Encode, name: "codes", like: like(ctx, r), warn: warn}
	})
	cmd.Long = "Encode images or vectors as codes: float32, one row per sample. Samples are scaled as in the training. The input is a .npy, .npz, .safetensors, .csv or\n" +
		"IDX file, an image, or a folder of images; a file of the same kind as the run's data set is read by the keys of that data set. The\n" +
		"output is .npy, .npz (arrays codes, and names, labels and classes if the input has them) or .csv (columns name and label if the input\n" +
		"has them, and one for each unit)."
	cmd.Example = "  tessera encode runs/shallow --in images.npy --out codes.npy\n  tessera encode runs/photos --in photos --out codes.npz"
	return cmd
}

func decodeCommand() *cobra.Command {
	cmd := codingCommand("decode RUN", "Turn codes into images", false, func(_ context.Context, r *tessera.Run) coding {
		name := "images"
		if len(r.Shape()) == 1 {
			name = "vectors"
		}
		low, high := r.Range()
		clipped := func(out io.Writer, file string) { warnClipped(out, file, low, high) }
		return coding{read: []int{r.Units()}, write: r.Shape(), code: r.Decode, name: name, clipped: clipped, columns: r.ValueNames}
	})
	cmd.Long = "Decode codes (.npy, .npz, .csv) to images: .npy (float32), .npz, .idx, .png for one image, or a new folder of PNG files; or to\n" +
		"vectors: .npy, .npz or .csv, with the names of the columns of a CSV data set. The scaling of the training is undone."
	cmd.Example = "  tessera decode runs/shallow --in codes.npy --out images"
	return cmd
}

// coding is one direction: it converts rows of shape read to rows of shape write.
type coding struct {
	read, write []int
	code        func([]float32) ([]float32, error)
	name        string      // of the array that is written
	like        data.Source // whose keys say how the input is read; nil for codes
	warn        func(out io.Writer, file string, values []float32)
	clipped     func(out io.Writer, file string)        // warns before values are written as bytes; nil for codes
	columns     func(context.Context) ([]string, error) // names the values that are written; nil for codes
}

// like is the data set whose keys say how files of samples are read, with columns in the order of the training where its file still
// has their names.
func like(ctx context.Context, r *tessera.Run) data.Source {
	names, err := r.ValueNames(ctx)
	if err != nil {
		names = nil
	}
	return data.InOrder(r.Model.Dataset.Source, names)
}

// codeFlags are the flags of encode and decode.
type codeFlags struct {
	runFlags
	in, out string
	vectors bool // codes are written, which are no pictures
}

func codingCommand(use, short string, vectors bool, direction func(context.Context, *tessera.Run) coding) *cobra.Command {
	f := codeFlags{vectors: vectors}
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE:  work(func(cmd *cobra.Command, args []string) error { return f.code(cmd, args[0], direction) }),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&f.in, "in", "", "input file or folder")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "output file or folder; its name selects the format")
	_ = cmd.MarkFlagRequired("in")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// check refuses names before anything is computed.
func (f *codeFlags) check() error {
	format, err := data.FormatOf(f.out)
	if f.vectors && (err != nil || !slices.Contains([]string{"npy", "npz", "csv"}, format)) {
		return usagef("--out: %q: codes are vectors: write them to a name that ends in .npy, .npz or .csv", f.out)
	}
	if err != nil {
		return usageError{err}
	}
	if format != "folder" {
		err = refuseFolder(f.out)
	} else if inside, _ := os.ReadDir(f.out); len(inside) > 0 {
		err = usagef("--out: %s is a folder with files; name a new or an empty one", f.out)
	}
	if err != nil {
		return err
	}
	if sameFile(f.in, f.out) {
		return usagef("--out: %s is also the input (--in) and would be overwritten; give another name", f.out)
	}
	return nil
}

func (f *codeFlags) code(cmd *cobra.Command, run string, direction func(context.Context, *tessera.Run) coding) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	r, err := tessera.Open(run, options)
	if err != nil {
		return err
	}
	defer r.Close()
	c := direction(cmd.Context(), r)
	rows, err := data.ReadRows(cmd.Context(), f.in, c.read, c.like)
	if err != nil {
		return err
	}
	warn(cmd, rows.Notes...)
	read := rows.Float32()
	if c.warn != nil {
		c.warn(cmd.ErrOrStderr(), f.in, read)
	}
	values, err := c.code(read)
	if err != nil {
		return err
	}
	if format, err := data.FormatOf(f.out); err == nil && c.clipped != nil && slices.Contains([]string{"idx", "png", "folder"}, format) {
		c.clipped(cmd.ErrOrStderr(), f.out)
	}
	if rows.Columns, err = c.names(cmd, f.out); err != nil {
		return err
	}
	if err := data.WriteRows(f.out, c.name, c.write, values, *rows); err != nil {
		return writing(f.out, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), f.out)
	return nil
}

// names are those of the values in a .csv file; nil numbers them. Without the file of the training the names are not known.
func (c *coding) names(cmd *cobra.Command, out string) ([]string, error) {
	if format, err := data.FormatOf(out); err != nil || format != "csv" || c.columns == nil {
		return nil, nil
	}
	names, err := c.columns(cmd.Context())
	if cmd.Context().Err() != nil {
		return nil, cmd.Context().Err()
	}
	if err != nil {
		warn(cmd, fmt.Sprintf("%s has numbers as names of columns: %v", out, err))
	}
	return names, nil
}

// writing distinguishes a file that cannot be written from one that must not be overwritten.
func writing(path string, err error) error {
	var file *fs.PathError
	var link *os.LinkError
	var call *os.SyscallError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &file), errors.As(err, &link), errors.As(err, &call):
		return &folder.WriteError{Path: path, Err: err}
	}
	return usageError{err}
}

// sameFile reports whether two paths, with links resolved, name the same file.
func sameFile(one, other string) bool {
	a, err := os.Stat(one)
	if err != nil {
		return false
	}
	b, err := os.Stat(other)
	return err == nil && os.SameFile(a, b)
}

// warnClipped warns if images of a training with values outside of [0,1] are written as bytes, which hold no others.
func warnClipped(out io.Writer, file string, least, most float32) {
	if least >= 0 && most <= 1 {
		return
	}
	fmt.Fprintf(out, "tessera: warning: %s holds bytes, but the values of the training are from %g to %g: what is outside of [0,1] is clipped; "+
		"a name that ends in .npy keeps the values\n", file, least, most)
}

// rangeSlack is how far values may leave the range of the fitted samples without a warning, as a share of it. Bytes, whose range is
// known, may not leave it.
const rangeSlack = 0.5

// warnRange warns about values outside of those that the run was fitted to: they are probably scaled in another way.
func warnRange(out io.Writer, file string, values []float32, least, most float32) {
	if len(values) == 0 {
		return
	}
	slack := rangeSlack * (most - least)
	if least == 0 && most == 1 {
		slack = 0
	}
	low, high := slices.Min(values), slices.Max(values)
	if low >= least-slack && high <= most+slack {
		return
	}
	hint := "scale them as the training images were scaled"
	if least >= 0 && most <= 1 && low >= 0 && high > 1 && high <= 255 {
		hint = "save them as uint8, or divide them by 255"
	}
	fmt.Fprintf(out, "tessera: warning: %s has values from %g to %g, outside of [%g,%g], the range of the training: %s\n", file, low, high, least, most, hint)
}
