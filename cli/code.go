package cli

import (
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
	cmd := codingCommand("encode RUN", "Turn images into codes", func(r *tessera.Run) coding {
		return coding{read: r.Shape(), write: []int{r.Units()}, code: r.Encode, images: true}
	})
	cmd.Long = "Encode images (.npy, IDX or PNG files) as codes (.npy, float32, one row per image)."
	cmd.Example = "  tessera encode runs/shallow --in images.npy --out codes.npy"
	return cmd
}

func decodeCommand() *cobra.Command {
	cmd := codingCommand("decode RUN", "Turn codes into images", func(r *tessera.Run) coding {
		return coding{read: []int{r.Units()}, write: r.Shape(), code: r.Decode}
	})
	cmd.Long = "Decode codes (.npy) to images: .npy (float32), .idx, .png for one image, or a new folder of PNG files."
	cmd.Example = "  tessera decode runs/shallow --in codes.npy --out images"
	return cmd
}

// coding is one direction: it converts rows of shape read to rows of shape write.
type coding struct {
	read, write []int
	code        func([]float32) ([]float32, error)
	images      bool // the input are images
}

func codingCommand(use, short string, direction func(*tessera.Run) coding) *cobra.Command {
	var f runFlags
	var in, out string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			format, err := data.FormatOf(out)
			if err != nil {
				return usageError{err}
			}
			if format != "folder" {
				if err := refuseFolder(out); err != nil {
					return err
				}
			}
			if sameFile(in, out) {
				return usagef("--out: %s is also the input (--in) and would be overwritten; give another name", out)
			}
			r, err := tessera.Open(args[0], options)
			if err != nil {
				return err
			}
			defer r.Close()
			c := direction(r)
			rows, err := data.ReadImages(cmd.Context(), in, c.read)
			if err != nil {
				return err
			}
			read := rows.Float32()
			if c.images {
				warnRange(cmd.ErrOrStderr(), in, read)
			}
			values, err := c.code(read)
			if err != nil {
				return err
			}
			if err := data.WriteImages(out, c.write, values); err != nil {
				return writing(out, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), out)
			return nil
		}),
	}
	aRun(cmd)
	f.add(cmd)
	cmd.Flags().StringVar(&in, "in", "", "input file or folder")
	cmd.Flags().StringVar(&out, "out", "", "output file or folder; its name selects the format")
	_ = cmd.MarkFlagRequired("in")
	_ = cmd.MarkFlagRequired("out")
	return cmd
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

// warnRange warns about images outside [0,1], the range of the training images: floats are not scaled.
func warnRange(out io.Writer, file string, pixels []float32) {
	if len(pixels) == 0 {
		return
	}
	low, high := slices.Min(pixels), slices.Max(pixels)
	if low >= 0 && high <= 1 {
		return
	}
	hint := "scale them as the training images were scaled"
	if low >= 0 && high > 1 && high <= 255 {
		hint = "save them as uint8, or divide them by 255"
	}
	fmt.Fprintf(out, "tessera: warning: %s has values from %g to %g, outside of [0,1]: %s\n", file, low, high, hint)
}
