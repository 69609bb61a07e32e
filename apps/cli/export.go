package cli

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"tessera/apps/export"
	"tessera/apps/show/figures"
	"tessera/internal/atomicfile"
	"tessera/internal/train/checkpoint"
	"tessera/metrics"
)

func exportCommand() *cobra.Command {
	var to, part, out string
	var raw bool
	formats := strings.Join(export.Registry.Names(), ", ")
	cmd := &cobra.Command{
		Use:   "export RUN --to FORMAT",
		Short: "Write a run for other programs: " + formats,
		Long:  exportHelp(),
		Example: `  tessera export runs/shallow --to onnx
  tessera export runs/shallow --to onnx --part encoder -o encoder.onnx
  tessera export runs/shallow --to tensorboard -o logs/shallow.tfevents`,
		RunE: work(func(cmd *cobra.Command, args []string) error {
			path, err := exported(args[0], to, part, out, raw)
			if err == nil {
				fmt.Fprintln(cmd.OutOrStdout(), path)
			}
			return err
		}),
	}
	aRun(cmd)
	cmd.Flags().StringVar(&to, "to", "", "format: "+formats)
	cmd.Flags().StringVar(&part, "part", "", "part of the run; onnx: model, encoder, decoder, heads or the name of a head; csv: training, atoms")
	cmd.Flags().StringVarP(&out, "out", "o", "", "file to write, replaced if there is one (default: a new file in the current folder, named after the run)")
	addRawFlag(cmd, &raw)
	_ = cmd.MarkFlagRequired("to")
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(export.Registry.Names(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// otherNames maps the names of programs to the formats that they read.
var otherNames = map[string]string{"pytorch": "safetensors", "torch": "safetensors", "numpy": "npz"}

// exported writes the file of a run and returns its path.
func exported(run, to, part, out string, raw bool) (string, error) {
	if name, ok := otherNames[to]; ok {
		to = name
	}
	if _, ok := export.Registry.Lookup(to); !ok {
		return "", usagef("--to: got %q, want one of %s", to, strings.Join(export.Registry.Names(), ", "))
	}
	open := export.Open
	if raw {
		open = export.OpenRaw
	}
	r, err := open(run)
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
	format, part, err := export.Choose(r, to, part)
	if err != nil {
		return "", usagef("--part: %w", err)
	}
	if out == "" {
		if out = export.FileName(r, format, part); !missingFile(out) { // perhaps the data of the run
			return "", usagef("export: %s exists already and is not replaced; name the file with -o", out)
		}
	}
	if err := refuseFolder(out); err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := export.Write(&b, r, to, part); err != nil {
		return "", notExported(err)
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return "", writing(out, err)
	}
	return out, writing(out, atomicfile.Write(out, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }))
}

// notExported distinguishes a damaged run from a run that the format cannot represent.
func notExported(err error) error {
	var damaged *checkpoint.Error
	if errors.As(err, &damaged) {
		return err
	}
	return usageError{err}
}

// exportHelp lists the formats.
func exportHelp() string {
	var b strings.Builder
	b.WriteString("Write a trained run in the format of other programs:\n\n")
	for _, e := range export.Registry.All() {
		fmt.Fprintf(&b, "  %-12s %s\n", e.Name, e.About)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
