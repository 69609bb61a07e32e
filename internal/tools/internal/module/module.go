// Package module finds the module that the tools build and measure, and runs commands on it.
package module

import (
	"bytes"
	"fmt"
	"os/exec"
)

// Go returns the command go with the given arguments, run in the folder of the module tessera. The versions of dependencies
// are thus those of its go.mod, not of the go.mod of the tools.
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

// Output runs a command and returns what it writes. The error of one that fails includes its diagnostics.
func Output(c *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", c, err, stderr.Bytes())
	}
	return string(out), nil
}
