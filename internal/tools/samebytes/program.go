package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// exitNoData is the exit code of tessera if data are missing.
const exitNoData = 4

// A program is one build of the command tessera.
type program struct {
	binary  string
	data    string // folder with data sets, "" for the user's cache
	threads int
}

// A failure is a command that exited with an error.
type failure struct {
	args []string
	code int
	said string // end of standard error
}

// Error implements error: the command, its exit code and its message.
func (f *failure) Error() string {
	return fmt.Sprintf("%s: exit code %d: %s", strings.Join(f.args, " "), f.code, f.said)
}

// command runs one sub-command in a folder and returns its standard output.
func (p program) command(ctx context.Context, folder string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, p.binary, args...)
	c.Dir = folder // holds no models.toml, so that the shipped one is read
	c.Env = p.environment(os.Environ())
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return stdout.Bytes(), &failure{args, exit.ExitCode(), lastLines(stderr.String())}
	}
	return stdout.Bytes(), err
}

// lastLines returns the last lines of a text as one line, without lines that contain only carets.
func lastLines(text string) string {
	const most = 3 // a message has two lines before its carets
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.Trim(line, "^") != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-most):], "; ")
}

// environment returns the environment of both programs. It turns OpenBLAS off, so that the report does not depend on its version.
func (p program) environment(inherited []string) []string {
	var kept []string
	for _, entry := range inherited {
		if !strings.HasPrefix(entry, "TESSERA_") || strings.HasPrefix(entry, envSIMD+"=") {
			kept = append(kept, entry)
		}
	}
	kept = append(kept, "TESSERA_BLAS=none")
	if p.data != "" {
		kept = append(kept, "TESSERA_DATA="+p.data)
	}
	return kept
}

// envSIMD is the environment variable that selects the assembly. Both programs inherit it.
const envSIMD = "TESSERA_SIMD"

// parallel adds the number of threads to the arguments of a command.
func (p program) parallel(args ...string) []string {
	return append(args, "--threads", strconv.Itoa(p.threads))
}
