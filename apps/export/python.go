package export

import (
	_ "embed"
	"fmt"
	"io"

	"tessera/internal/machine"
)

// pythonModule loads, encodes and decodes runs.
//
//go:embed tessera.py
var pythonModule string

func init() {
	Registry.Register("python", "Python: a module that loads, encodes and decodes runs by NumPy alone", func() Format {
		return Format{Extension: ".py", Parts: parts("program"), Write: writePython}
	})
}

// writePython writes a Python module that needs only NumPy. The module reads the run's own files, so one module reads every run.
func writePython(w io.Writer, r *Run, _ string) error {
	_, err := fmt.Fprintf(w, "\"\"\"Reads runs of Tessera. Written by tessera %s for the run %q.\n\n"+
		"encode(RUN, images) returns codes, decode(RUN, codes) images; RUN is the folder of a run.\n\"\"\"\n%s", machine.Release, r.Name, pythonModule)
	return err
}
