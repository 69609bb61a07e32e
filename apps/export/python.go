package export

import (
	"fmt"
	"io"
	"strings"

	"tessera/docs"
	"tessera/internal/machine"
)

func init() {
	Registry.Register("python", "Python: a module that loads, encodes and decodes runs by NumPy alone", func() Format {
		return Format{Extension: ".py", Parts: parts("program"), Write: writePython}
	})
}

// writePython writes a Python module that needs only NumPy. It contains load, encode and decode of docs/python.md. The
// module reads the run's own files, so one module reads every run.
func writePython(w io.Writer, r *Run, _ string) error {
	page, err := docs.Pages.ReadFile("python.md")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\"\"\"Reads runs of Tessera. Written by tessera %s for the run %q.\n\n"+
		"encode(RUN, images) returns codes, decode(RUN, codes) images; RUN is the folder of a run.\n\"\"\"\n", machine.Release, r.Name)
	for _, piece := range strings.Split(string(page), "```python\n")[1:] {
		code, _, _ := strings.Cut(piece, "```")
		if _, err := io.WriteString(w, code+"\n"); err != nil {
			return err
		}
	}
	return nil
}
