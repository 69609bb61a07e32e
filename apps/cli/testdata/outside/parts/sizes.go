package parts

import (
	"fmt"
	"io"

	"tessera/apps/export"
)

func init() {
	export.Registry.Register("sizes", "a line for each parameter: its path and its shape", func() export.Format {
		return export.Format{Extension: ".txt", Parts: func(*export.Run) []string { return []string{"parameters"} }, Write: writeSizes}
	})
}

// writeSizes writes the shapes of all parameters.
func writeSizes(w io.Writer, r *export.Run, _ string) error {
	for _, t := range r.Tensors() {
		if _, err := fmt.Fprintln(w, t.Name, t.Shape); err != nil {
			return err
		}
	}
	return nil
}
