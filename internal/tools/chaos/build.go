package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tessera/internal/tools/internal/module"
)

// build builds the program. If an overlay is given, it replaces sources of the standard library.
func build(to, overlay string) error {
	args := []string{"build", "-o", to}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	c, err := module.Go(append(args, "./apps/tessera")...)
	if err != nil {
		return err
	}
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// nowSource is the part of the standard library that reads the wall clock.
const nowSource = "\tsec, nsec, mono := runtimeNow()\n"

// wrongClock writes an overlay with which every time.Now in the program and its libraries is shifted by the number of seconds
// in CHAOS_CLOCK. The monotonic clock, which measures durations, is not shifted, as on a machine whose clock is wrong.
func wrongClock(dir string) (overlay string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), nowSource) < 1 {
		return "", errors.New("time.Now of this Go version is not known")
	}
	changed := strings.ReplaceAll(string(text), nowSource, nowSource+"\tsec += chaosClock\n")
	changed += `
var chaosClock = func() (seconds int64) {
	text, _ := syscall.Getenv("CHAOS_CLOCK")
	sign := int64(1)
	if len(text) > 0 && text[0] == '-' {
		sign, text = -1, text[1:]
	}
	for _, c := range text {
		seconds = 10*seconds + int64(c-'0')
	}
	return sign * seconds
}()
`
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1)
	source := filepath.Join(dir, "time.go")
	if err := os.WriteFile(source, []byte(changed), 0o666); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: source}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o666)
}
