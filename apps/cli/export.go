package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/apps/export"
	"tessera/apps/show/figures"
	"tessera/internal/atomicfile"
	"tessera/internal/train/checkpoint"
	"tessera/metrics"
)

func init() {
	Commands.Register("export", "Write a run for other programs: ONNX, NumPy, Python, ...", func() Command { return &exportCommand{} })
}

type exportCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	To     format `flag:"to" required:"true" doc:"format"`
	Part   string `flag:"part" doc:"part of the run; onnx: model, encoder, decoder, heads or the name of a head; csv: training, atoms"`
	Out    string `flag:"out,o" is:"output" doc:"file to write, or folder of files (saelens, sparsify), replaced if there is one" default:"a new one in the current folder, named after the run"`
	rawFlag
}

// format is the name of a format of other programs.
type format string

func (format) Choices() []string {
	return slices.Concat(export.Registry.Names(), slices.Sorted(maps.Keys(otherNames)))
}

func (f *exportCommand) Help() Help {
	return Help{Long: exportHelp(), Examples: []string{"tessera export runs/shallow --to onnx", "tessera export runs/shallow --to onnx --part encoder -o encoder.onnx",
		"tessera export runs/shallow --to tensorboard -o logs/shallow.tfevents"}}
}

func (f *exportCommand) Do(cmd *Call) error {
	path, err := f.export(cmd, f.Out)
	if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}

// otherNames maps the names of programs to the formats that they read.
var otherNames = map[string]string{"pytorch": "safetensors", "torch": "safetensors", "numpy": "npz"}

// export writes the file of the run and returns its path.
func (f *exportCommand) export(cmd *Call, out string) (string, error) {
	to := string(f.To)
	if name, ok := otherNames[to]; ok {
		to = name
	}
	open := export.Open
	if f.Raw {
		open = export.OpenRaw
	}
	r, err := open(f.Folder)
	if err != nil {
		return "", err
	}
	r.DrawAtoms = func(a *metrics.Atoms) (image.Image, error) {
		f, err := figures.Atoms(a)
		if err != nil {
			return nil, err
		}
		return f.Image(), nil
	}
	format, part, err := export.Choose(r, to, f.Part)
	if err != nil {
		return "", usagef("--part: %w", err)
	}
	if out == "" {
		if out = export.FileName(r, format, part); !missingFile(out) { // perhaps the data of the run
			return "", usagef("export: %s exists already and is not replaced; name the file with -o", out)
		}
	}
	files := map[string]string{part: out} // the path of each part
	if f.Part == "" && format.Folder != nil {
		for i, part := range format.Parts(r) {
			files[part] = filepath.Join(out, format.Folder[i])
		}
	}
	contents := map[string][]byte{}
	for part, path := range files {
		if err := cmp.Or(outputFile(f, path), ofFormat(out, format)); err != nil {
			return "", err
		}
		var b bytes.Buffer
		if err := export.Write(&b, r, to, part); err != nil {
			return "", notExported(err)
		}
		contents[path] = b.Bytes()
	}
	for path, b := range contents {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return "", writing(path, err)
		}
		if err := atomicfile.Write(path, func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
			return "", writing(path, err)
		}
	}
	if to == "onnx" && r.Baseline != nil && r.Spec.Holed() {
		warn(cmd, "the codes of a sample with a missing value (NaN) are NaN there; tessera encode solves them from the other values")
	}
	return out, nil
}

// ofFormat returns an error for a file with the extension of another format, as which it would be read.
func ofFormat(out string, format export.Format) error {
	for _, other := range export.Registry.All() {
		if e := other.New().Extension; e != format.Extension && e != "" && e == filepath.Ext(out) {
			return usagef("export: %s: the name is that of a file of --to %s; want a name that ends in %s", out, other.Name, format.Extension)
		}
	}
	return nil
}

// notExported distinguishes a damaged run from a run that the format cannot represent.
func notExported(err error) error {
	if _, ok := errors.AsType[*checkpoint.Error](err); ok {
		return err
	}
	return usageError{err}
}

func exportHelp() string {
	var b strings.Builder
	b.WriteString("Write a trained run in the format of other programs:\n\n")
	for _, e := range export.Registry.All() {
		fmt.Fprintf(&b, "  %-12s %s\n", e.Name, e.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
