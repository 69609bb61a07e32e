package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/train/folder"
	"tessera/internal/vectors"
	"tessera/internal/volume"
	"tessera/losses"
)

func init() {
	Commands.Register("encode", "Turn images into codes", func() Command { return &encodeCommand{codeFlags: forCodes(), Value: losses.Code} })
	Commands.Register("decode", "Turn codes into images", func() Command { return &decodeCommand{codeFlags: forCodes()} })
}

// codeFlags are what encode, decode, sample, traverse and interpolate have in common.
type codeFlags struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	Out string `flag:"out,o" required:"true" is:"output" doc:"output file or folder; its name selects the format"`
}

func forCodes() codeFlags { return codeFlags{runFlags: forRuns()} }

type encodeCommand struct {
	codeFlags
	In    string `flag:"in" required:"true" is:"file" doc:"input file or folder"`
	Value string `flag:"value" doc:"the value to compute: code, output, a head, encoder.0, error or log_likelihood"`
}

func (f *encodeCommand) Help() Help {
	return Help{
		Long: "Encode images or vectors as codes: float32, one row per sample. Samples are scaled as in the training. The input is a .npy, .npz, .safetensors, .csv or " +
			"IDX file, an image, or a folder of images; a file of the same kind as the run's data set is read by the keys of that data set. The " +
			"output is .npy, .npz (arrays codes, and names, labels and classes if the input has them) or .csv (columns name and label if the input " +
			"has them, and one for each unit). --value gives another value than the code: output, a head, the output of a layer by its path, or " +
			"a value that a layer publishes; arrays of it have its shape. error is the mean squared error of each sample (of scaled values, as in eval), log_likelihood " +
			"its log density: samples unlike those of the training have a large error, or a small likelihood. The columns that it is computed from are read from the same file: those of a .csv file by their names, the " +
			"others by the names of arrays, as the key columns of the data set says.",
		Examples: []string{"tessera encode runs/shallow --in images.npy --out codes.npy", "tessera encode runs/photos --in photos --out codes.npz",
			"tessera encode runs/shallow --in images.npy --value encoder.0 --out first.npy",
			"tessera encode runs/patients --in new.csv --value error --out unusual.csv"},
	}
}

func (f *encodeCommand) Do(cmd *Call) error {
	format, err := data.FormatOf(f.Out)
	if err != nil || !slices.Contains([]string{"npy", "npz", "csv"}, format) {
		return usagef("--out: %q: codes are vectors: write them to a name that ends in .npy, .npz or .csv", f.Out)
	}
	r, err := f.open(f.In)
	if err != nil {
		return err
	}
	defer r.Close()
	known, from := append(r.Values(), r.Named()...), f.Value
	compute := func(all map[string][]float32) ([]float32, error) { return r.Centred().ValueOf(f.Value, all) }
	scored := !slices.Contains(known, f.Value) && slices.Contains(r.Scores(), f.Value)
	if scored {
		from = losses.Output
		compute = func(all map[string][]float32) ([]float32, error) { return r.Centred().Score(f.Value, all) }
	} else if !slices.Contains(known, f.Value) {
		return usagef("--value: unknown value %q: %s", f.Value, table.Suggest(f.Value, append(known, r.Scores()...)))
	}
	columns := r.Columns(from)
	rows, err := readSamples(cmd, r, f.In, columns...)
	if err != nil {
		return err
	}
	name, shape := f.Value, r.ShapeOf(f.Value)
	switch {
	case name == losses.Code:
		name, shape = "codes", []int{r.Units()}
	case scored:
		rows.Columns, shape = []string{f.Value}, []int{1}
	case format == "csv" || len(shape) == 0: // one column for each number
		shape = []int{volume.Of(shape)}
	}
	if f.Value == losses.Output && format == "csv" && len(r.Shape()) == 1 {
		if rows.Columns, err = outputNames(cmd, r, f.Out); err != nil {
			return err
		}
	}
	if f.Value == losses.Output && r.Outputs().IsExact() { // which is written with all digits
		var values []float32
		err := encoded(cmd, r, compute, volume.Of(r.ShapeOf(from)), rows, columns, func(some []float32) error {
			values = append(values, some...)
			return nil
		})
		if err != nil {
			return err
		}
		values = restored(r, values, rows)
		f.warnCoarse(cmd, r, format, rows)
		return f.write(cmd, name, shape, values, rows)
	}
	var failed error // of the model, not of the file
	err = data.WritePieces(f.Out, name, shape, rows.Len(), func(do func([]float32) error) error {
		var broken error
		err := encoded(cmd, r, compute, volume.Of(r.ShapeOf(from)), rows, columns, func(some []float32) error {
			broken = do(some)
			return broken
		})
		if broken == nil {
			failed = err
		}
		return err
	}, *rows)
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return writing(f.Out, err)
	}
	return cmd.wrote(f.Out)
}

// encoded passes what compute returns of the samples of a file to do, in blocks, so that neither all entries of a sparse matrix nor all
// results are ever in memory. Of a sample, size values are computed.
func encoded(cmd *Call, r *tessera.Run, compute func(map[string][]float32) ([]float32, error), size int, rows *data.Rows, columns []data.Column, do func(values []float32) error) error {
	const together, most = 256, 1 << 21 // samples that a baseline encodes together; values of a block
	block := rows.Len()
	if !slices.ContainsFunc(columns, func(c data.Column) bool { return c.Drawn }) {
		block = max(1, most/max(rows.Pixels(), size)/together) * together
	}
	for from := 0; from < rows.Len() || from == 0; from += max(block, 1) {
		part := *rows
		if block < rows.Len() {
			indices := lists.Range(from, min(from+block, rows.Len()))
			part.Images = rows.Subset(indices)
		}
		all, err := given(cmd, r, &part, columns)
		if err != nil {
			return err
		}
		some, err := compute(all)
		if err == nil {
			err = do(some)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// given returns the values of the columns for the samples of a file, for the coder [tessera.Coder.Centred]. It prints a note that names the columns drawn at random.
func given(cmd *Call, r *tessera.Run, rows *data.Rows, columns []data.Column) (map[string][]float32, error) {
	var drawn []string
	for _, c := range columns {
		if c.Drawn {
			drawn = append(drawn, strconv.Quote(c.Name))
		}
	}
	if len(drawn) > 0 {
		cmd.say("note: drawn by the seed of the run (%d) and the place of each sample: %s", r.Model.Train.Seed, strings.Join(drawn, ", "))
	}
	return r.Centred().Given(rows.Images, columns)
}

type decodeCommand struct {
	codeFlags
	In string `flag:"in" required:"true" is:"file" doc:"input file"`
}

func (f *decodeCommand) Help() Help {
	return Help{
		Long: "Decode codes (.npy, .npz, .csv) to images: .npy (float32), .npz, .idx, .png for one image, or a new folder of PNG files, with 16 bits where the training's files have 16 bits; or to " +
			"vectors: .npy, .npz or .csv, with the names of the columns of a CSV data set. The scaling of the training is undone.",
		Examples: []string{"tessera decode runs/shallow --in codes.npy --out images"},
	}
}

func (f *decodeCommand) Do(cmd *Call) error {
	format, err := data.FormatOf(f.Out)
	if err != nil {
		return usageError{err}
	}
	r, err := f.open(f.In)
	if err != nil {
		return err
	}
	defer r.Close()
	rows, err := data.ReadRows(cmd.Context(), f.In, []int{r.Units()}, nil)
	if err != nil {
		return err
	}
	warn(cmd, rows.Notes...)
	values, err := r.Centred().Decode(rows.Float32())
	if err != nil {
		return err
	}
	return f.writeOutputs(cmd, r, format, restored(r, values, rows), rows)
}

// restored returns values of the coder [tessera.Coder.Centred] as numbers of the data set. For an exact scaling, the rows keep the digits that float32 rounds off.
func restored(r *tessera.Run, values []float32, rows *data.Rows) []float32 {
	if !r.Outputs().IsExact() {
		return values
	}
	rows.Wide = r.Outputs().Restore(values)
	return vectors.Narrow(rows.Wide)
}

// warnCoarse warns if values that the run restored lose their digits in the output.
func (f *codeFlags) warnCoarse(cmd *Call, r *tessera.Run, format string, rows *data.Rows) {
	coarse := r.Scaling().Coarse()
	if len(coarse) == 0 || format == "csv" && rows.Wide != nil {
		return
	}
	name, hint := fmt.Sprintf("value %d", coarse[0]), ""
	if names := show.ValueNames(cmd.Context(), r); names != nil {
		name = fmt.Sprintf("column %q", names[coarse[0]])
	}
	if rows.Wide != nil {
		hint = "; a name that ends in .csv keeps their digits"
	}
	warn(cmd, fmt.Sprintf("%s: float32 rounds the numbers of %s, which lie close together near %.9g%s", f.Out, name, r.Scaling().ShiftOf(coarse[0]), hint))
}

// writeImages writes images, or vectors, in the units of the training.
func (f *codeFlags) writeImages(cmd *Call, r *tessera.Run, format string, values []float32, rows *data.Rows) (err error) {
	low, high := r.Range()
	f.warnCoarse(cmd, r, format, rows)
	switch format {
	case "csv":
		if rows.Columns, err = columnNames(cmd, r, f.Out); err != nil {
			return err
		}
	case "idx", "png", "folder": // of bytes
		warnClipped(cmd.ErrOrStderr(), f.Out, low, high)
		rows.Deep = data.Deep(r.Origin.Placed(r.Model.Dataset.Source))
	}
	name := "images"
	if len(r.Shape()) == 1 {
		name = "vectors"
	}
	return f.write(cmd, name, r.Shape(), values, rows)
}

// writeOutputs writes outputs of the model: samples in the units of the training, or, of a transcoder, its targets.
func (f *codeFlags) writeOutputs(cmd *Call, r *tessera.Run, format string, values []float32, rows *data.Rows) (err error) {
	if r.OutputIsSample() {
		return f.writeImages(cmd, r, format, values, rows)
	}
	if format == "csv" {
		rows.Columns = show.OutputNames(cmd.Context(), r)
	}
	return f.write(cmd, losses.Output, r.Shape(), values, rows)
}

// open checks the output before anything is computed, and opens the run. in is the input, "" for none.
func (f *codeFlags) open(in string) (*tessera.Run, error) {
	err := outputFile(f, f.Out, in)
	if format, _ := data.FormatOf(f.Out); format == "folder" {
		err = outputFolder(f.Out)
	}
	if err != nil {
		return nil, err
	}
	return f.runFlags.open(f.Folder)
}

// write writes the values computed for the rows to the file --out, as an array with the given name.
func (f *codeFlags) write(cmd *Call, name string, shape []int, values []float32, rows *data.Rows) error {
	if err := data.WriteRows(f.Out, name, shape, values, *rows); err != nil {
		return writing(f.Out, err)
	}
	return cmd.wrote(f.Out)
}

// columnNames returns the names of the values of samples for a .csv file. They come from the data file of the training. nil
// numbers the values.
func columnNames(cmd *Call, r *tessera.Run, out string) ([]string, error) {
	names, err := r.ValueNames(cmd.Context())
	if cmd.Context().Err() != nil {
		return nil, cmd.Context().Err()
	}
	if err != nil {
		warn(cmd, fmt.Sprintf("%s has numbers as names of columns: %v", out, err))
	}
	return names, nil
}

// outputNames is columnNames of outputs.
func outputNames(cmd *Call, r *tessera.Run, out string) ([]string, error) {
	if r.OutputIsSample() {
		return columnNames(cmd, r, out)
	}
	return show.OutputNames(cmd.Context(), r), nil
}

// readSamples reads the samples of a file, and the given further columns, with the keys of the data set of a run. It prints
// warnings about suspicious values.
func readSamples(cmd *Call, r *tessera.Run, path string, columns ...data.Column) (*data.Rows, error) {
	return readFrom(cmd, r, path, data.Reading(like(cmd.Context(), r), r.InFile(columns)...))
}

// readFrom reads the samples of a file by the keys of a source, and prints warnings about them.
func readFrom(cmd *Call, r *tessera.Run, path string, source data.Source) (*data.Rows, error) {
	rows, err := data.ReadRows(cmd.Context(), path, r.Shape(), source)
	if err != nil {
		return nil, err
	}
	warn(cmd, rows.Notes...)
	warnUnlike(cmd, r, path, rows)
	return rows, nil
}

// warnUnlike warns about values of samples that are unlike those of the training.
func warnUnlike(cmd *Call, r *tessera.Run, path string, rows *data.Rows) {
	for _, text := range rows.Unlike(r.Seen()) {
		warn(cmd, path+": "+text)
	}
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
	return r.Reading(data.InOrder(r.Origin.Placed(r.Model.Dataset.Source), names))
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
