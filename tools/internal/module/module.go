// Package module finds the module that the tools build and measure.
package module

import (
	"bytes"
	"fmt"
	"os/exec"
)

// Go returns the command go with these arguments, run in the folder of the module tessera: its go.mod, not that of the
// tools, chooses the versions of what is built.
func Go(args ...string) (*exec.Cmd, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "tessera")
	dir, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	c := exec.Command("go", args...)
	c.Dir = string(bytes.TrimSpace(dir))
	return c, nil
}
