package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/train/folder"
	"tessera/losses"
)

// codeFlags contains the flags that encode, decode, sample, traverse and interpolate have in common.
type codeFlags struct {
	runFlags
	in, out string
	value   string // flag of encode
}

// addTo adds the argument RUN and these flags to a command that calls do. in is the help of --in; "" leaves it out.
func (f *codeFlags) addTo(cmd *cobra.Command, in string, do func(cmd *cobra.Command, run string) error) *cobra.Command {
	cmd.RunE = work(func(cmd *cobra.Command, args []string) error { return do(cmd, args[0]) })
	aRun(cmd)
	f.add(cmd)
	if in != "" {
		cmd.Flags().StringVar(&f.in, "in", "", in)
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "output file or folder; its name selects the format")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

// inputHelp is the help of --in of encode and decode.
const inputHelp = "input file or folder"

func encodeCommand() *cobra.Command {
	var f codeFlags
	cmd := f.addTo(&cobra.Command{
		Use:   "encode RUN",
		Short: "Turn images into codes",
		Long: "Encode images or vectors as codes: float32, one row per sample. Samples are scaled as in the training. The input is a .npy, .npz, .safetensors, .csv or " +
			"IDX file, an image, or a folder of images; a file of the same kind as the run's data set is read by the keys of that data set. The " +
			"output is .npy, .npz (arrays codes, and names, labels and classes if the input has them) or .csv (columns name and label if the input " +
			"has them, and one for each unit). --value gives another value than the code: output, a head, the output of a layer by its path, or " +
			"a value that a layer publishes; arrays of it have its shape. The columns that it is computed from are read from the same file: those of a .csv file by their names, the " +
			"others by the names of arrays, as the key columns of the data set says.",
		Example: "  tessera encode runs/shallow --in images.npy --out codes.npy\n  tessera encode runs/photos --in photos --out codes.npz\n" +
			"  tessera encode runs/shallow --in images.npy --value encoder.0 --out first.npy",
	}, inputHelp, f.encode)
	_ = cmd.MarkFlagRequired("in")
	cmd.Flags().StringVar(&f.value, "value", losses.Code, "the value to compute: code, output, a head, or encoder.0")
	return cmd
}

func (f *codeFlags) encode(cmd *cobra.Command, run string) error {
	format, err := data.FormatOf(f.out)
	if err != nil || !slices.Contains([]string{"npy", "npz", "csv"}, format) {
		return usagef("--out: %q: codes are vectors: write them to a name that ends in .npy, .npz or .csv", f.out)
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	columns := r.Columns(f.value)
	rows, err := readSamples(cmd, r, f.in, columns...)
	if err != nil {
		return err
	}
	if known := append(r.Values(), r.Named()...); !slices.Contains(known, f.value) {
		return usagef("--value: unknown value %q: %s", f.value, table.Suggest(f.value, known))
	}
	all, err := given(cmd, r, rows, columns)
	if err != nil {
		return err
	}
	values, err := r.ValueOf(f.value, all)
	if err != nil {
		return err
	}
	name, shape := f.value, r.ShapeOf(f.value)
	if name == losses.Code {
		name, shape = "codes", []int{r.Units()}
	} else if format == "csv" || len(shape) == 0 { // one column for each number
		shape = []int{len(values) / max(1, rows.Len())}
	}
	return f.write(cmd, name, shape, values, rows)
}

// given returns the values of the columns for the samples of a file. It prints a note that names the columns drawn at random.
func given(cmd *cobra.Command, r *tessera.Run, rows *data.Rows, columns []data.Column) (map[string][]float32, error) {
	var drawn []string
	for _, c := range columns {
		if c.Drawn {
			drawn = append(drawn, strconv.Quote(c.Name))
		}
	}
	if len(drawn) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "tessera: note: drawn by the seed of the run (%d) and the place of each sample: %s\n", r.Model.Train.Seed, strings.Join(drawn, ", "))
	}
	return r.Given(rows.Images, columns)
}

func decodeCommand() *cobra.Command {
	var f codeFlags
	cmd := f.addTo(&cobra.Command{
		Use:   "decode RUN",
		Short: "Turn codes into images",
		Long: "Decode codes (.npy, .npz, .csv) to images: .npy (float32), .npz, .idx, .png for one image, or a new folder of PNG files; or to " +
			"vectors: .npy, .npz or .csv, with the names of the columns of a CSV data set. The scaling of the training is undone.",
		Example: "  tessera decode runs/shallow --in codes.npy --out images",
	}, inputHelp, f.decode)
	_ = cmd.MarkFlagRequired("in")
	return cmd
}

func (f *codeFlags) decode(cmd *cobra.Command, run string) error {
	format, err := data.FormatOf(f.out)
	if err != nil {
		return usageError{err}
	}
	r, err := f.open(run)
	if err != nil {
		return err
	}
	defer r.Close()
	rows, err := data.ReadRows(cmd.Context(), f.in, []int{r.Units()}, nil)
	if err != nil {
		return err
	}
	warn(cmd, rows.Notes...)
	values, err := r.Decode(rows.Float32())
	if err != nil {
		return err
	}
	return f.writeImages(cmd, r, format, values, rows)
}

// writeImages writes images, or vectors, in the units of the training.
func (f *codeFlags) writeImages(cmd *cobra.Command, r *tessera.Run, format string, values []float32, rows *data.Rows) (err error) {
	low, high := r.Range()
	switch format {
	case "csv":
		if rows.Columns, err = columnNames(cmd, r, f.out); err != nil {
			return err
		}
	case "idx", "png", "folder": // of bytes
		warnClipped(cmd.ErrOrStderr(), f.out, low, high)
	}
	name := "images"
	if len(r.Shape()) == 1 {
		name = "vectors"
	}
	return f.write(cmd, name, r.Shape(), values, rows)
}

// open checks the flags before anything is computed, and opens the run.
func (f *codeFlags) open(run string) (*tessera.Run, error) {
	var err error
	if format, _ := data.FormatOf(f.out); format != "folder" {
		err = outputFile(f.in, f.out)
	} else if inside, _ := os.ReadDir(f.out); len(inside) > 0 {
		err = usagef("--out: %s is a folder with files; name a new or an empty one", f.out)
	}
	if err != nil {
		return nil, err
	}
	return f.runFlags.open(run)
}

// write writes the values computed for the rows to the file --out, as an array with the given name.
func (f *codeFlags) write(cmd *cobra.Command, name string, shape []int, values []float32, rows *data.Rows) error {
	if err := data.WriteRows(f.out, name, shape, values, *rows); err != nil {
		return writing(f.out, err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), f.out)
	return nil
}

// columnNames returns the names of the values of samples for a .csv file. They come from the data file of the training. nil
// numbers the values.
func columnNames(cmd *cobra.Command, r *tessera.Run, out string) ([]string, error) {
	names, err := r.ValueNames(cmd.Context())
	if cmd.Context().Err() != nil {
		return nil, cmd.Context().Err()
	}
	if err != nil {
		warn(cmd, fmt.Sprintf("%s has numbers as names of columns: %v", out, err))
	}
	return names, nil
}

// outputFile returns an error for an output path that is a folder or the input file.
func outputFile(in, out string) error {
	a, err := os.Stat(out)
	if err != nil { // a new file
		return nil
	}
	if b, err := os.Stat(in); err == nil && os.SameFile(a, b) {
		return usagef("--out: %s is also the input (--in) and would be overwritten; give another name", out)
	}
	return refuseFolder(out)
}

// readSamples reads the samples of a file, and the given further columns, with the keys of the data set of a run. It prints
// warnings about suspicious values.
func readSamples(cmd *cobra.Command, r *tessera.Run, path string, columns ...data.Column) (*data.Rows, error) {
	rows, err := data.ReadRows(cmd.Context(), path, r.Shape(), data.Reading(like(cmd.Context(), r), r.InFile(columns)...))
	if err != nil {
		return nil, err
	}
	warn(cmd, rows.Notes...)
	low, high := r.Range()
	warnRange(cmd.ErrOrStderr(), path, rows.Raw(), low, high)
	return rows, nil
}

// like returns a data set whose keys determine how files of samples are read. Its columns have the order of the training,
// provided that the file of the training still contains their names.
func like(ctx context.Context, r *tessera.Run) data.Source {
	names, err := r.ValueNames(ctx)
	if err != nil {
		names = nil
	}
	if names == nil {
		names = r.ColumnNames() // of a sparse matrix
	}
	return data.InOrder(r.Model.Dataset.Source, names)
}

// writing distinguishes two errors of writing a file: the file cannot be written, or it exists and must not be overwritten.
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

// warnClipped warns if images of a training with values outside [0,1] are written as bytes, which cannot represent such values.
func warnClipped(out io.Writer, file string, least, most float32) {
	if least >= 0 && most <= 1 {
		return
	}
	fmt.Fprintf(out, "tessera: warning: %s holds bytes, but the values of the training are from %g to %g: what is outside of [0,1] is clipped; "+
		"a name that ends in .npy keeps the values\n", file, least, most)
}

// rangeSlack is the accepted distance of values from the range of the fitted samples, as a fraction of its width. For the
// range [0,1] no distance is accepted.
const rangeSlack = 0.5

// warnRange warns about values outside the range of the fitted samples: they probably have another scale. It ignores NaN,
// which means a missing entry.
func warnRange(out io.Writer, file string, values []float32, least, most float32) {
	if len(values) == 0 {
		return
	}
	slack := rangeSlack * (most - least)
	if least == 0 && most == 1 {
		slack = 0
	}
	low, high := float32(math.Inf(1)), float32(math.Inf(-1))
	for _, v := range values {
		if v == v { // NaN is a missing entry
			low, high = min(low, v), max(high, v)
		}
	}
	if low >= least-slack && high <= most+slack {
		return
	}
	hint := "scale them as the training images were scaled"
	if least >= 0 && most <= 1 && low >= 0 && high > 1 && high <= 255 {
		hint = "save them as uint8, or divide them by 255"
	}
	fmt.Fprintf(out, "tessera: warning: %s has values from %g to %g, outside of [%g,%g], the range of the training: %s\n", file, low, high, least, most, hint)
}
