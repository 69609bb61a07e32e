package cli

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tessera/internal/fatal"
)

// asCommander is an environment variable. If it is set, the test binary runs commands that it reads from its standard input, one after another.
// A process takes longer to start than most commands take; commands of parallel tests need processes of their own, because they have working
// folders of their own.
const asCommander = "CLI_TEST_AS_COMMANDER"

// placed are the variables that may differ between the commands of a commander. Others may be read once in a process: a command with another
// value of these has a process of its own.
var placed = []string{"HOME", "PWD", "TESSERA_DATA", "XDG_CACHE_HOME"}

// order is a command for a commander.
type order struct {
	Dir       string
	Env, Args []string
}

// printed is what a command printed, and its exit code.
type printed struct {
	Code           int
	Stdout, Stderr string
}

// obey runs the commands that are read from the standard input until it ends.
func obey() error {
	orders, outcomes := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	os.Stdin, os.Stdout = nil, os.Stderr // commands find neither the orders nor the outcomes
	home, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for _, name := range placed {
			value, given := valueOf(o.Env, name)
			if name == "PWD" {
				value, given = o.Dir, true
			}
			if err = os.Setenv(name, value); !given {
				err = os.Unsetenv(name)
			}
			if err != nil {
				return err
			}
		}
		if err := os.Chdir(o.Dir); err != nil {
			return err
		}
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), o.Args, &stdout, &stderr)
		if err := os.Chdir(home); err != nil {
			return err
		}
		if err := outcomes.Encode(printed{code, stdout.String(), stderr.String()}); err != nil {
			return err
		}
	}
}

// valueOf returns the value of a variable of an environment, the last one if there are several.
func valueOf(env []string, name string) (value string, ok bool) {
	for _, v := range slices.Backward(env) {
		if value, ok = strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// fixed returns the variables that a process may read once.
func fixed(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == asCommand || slices.Contains(placed, name)
	})
}

// commander is a process that runs commands.
type commander struct {
	*exec.Cmd
	in       io.Closer
	orders   *gob.Encoder
	outcomes *gob.Decoder
	stderr   bytes.Buffer // of the process, not of its commands
}

// commanders are those that are waiting for an order.
var commanders struct {
	sync.Mutex
	idle []*commander
	env  []string
}

// hired returns a commander that runs nothing, a new one if there is none.
func hired(binary string) (*commander, error) {
	commanders.Lock()
	defer commanders.Unlock()
	if n := len(commanders.idle); n > 0 {
		c := commanders.idle[n-1]
		commanders.idle = commanders.idle[:n-1]
		return c, nil
	}
	c := &commander{Cmd: exec.Command(binary)}
	c.Env, c.Cmd.Stderr = append(slices.Clone(commanders.env), asCommander+"=1"), &c.stderr
	in, err := c.StdinPipe()
	out, outErr := c.StdoutPipe()
	if err := errors.Join(err, outErr); err != nil {
		return nil, err
	}
	c.in, c.orders, c.outcomes = in, gob.NewEncoder(in), gob.NewDecoder(out)
	return c, c.Start()
}

// dismiss ends the commanders.
func dismiss() error {
	commanders.Lock()
	defer commanders.Unlock()
	var failed []error
	for _, c := range commanders.idle {
		if err := errors.Join(c.in.Close(), c.Wait()); err != nil {
			failed = append(failed, fmt.Errorf("a process that ran commands: %w: %s", err, c.stderr.String()))
		}
	}
	commanders.idle = nil
	return errors.Join(failed...)
}

// commandable reports whether a commander can run the command in place of a process of its own.
func commandable(t *testing.T, cmd *exec.Cmd) bool {
	binary, err := os.Executable()
	fatal.If(t, err)
	role, _ := valueOf(cmd.Env, asCommand)
	return cmd.Path == binary && role == "1" && cmd.Stdin == nil && cmd.Stdout == nil && cmd.Stderr == nil && slices.Equal(fixed(cmd.Env), fixed(commanders.env))
}

// commanded lets a commander run a command.
func commanded(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	c, err := hired(cmd.Path)
	fatal.If(t, err)
	hung := time.AfterFunc(patience, func() { _ = c.Process.Kill() })
	var got printed
	err = c.orders.Encode(order{cmd.Dir, cmd.Env, cmd.Args[1:]})
	if err == nil {
		err = c.outcomes.Decode(&got)
	}
	if hung.Stop(); err != nil {
		_ = c.Wait()
		t.Fatalf("tessera %s: ended the process (%s): %s", strings.Join(cmd.Args[1:], " "), c.ProcessState, c.stderr.String())
	}
	commanders.Lock()
	defer commanders.Unlock()
	commanders.idle = append(commanders.idle, c)
	return result{got.Code, got.Stdout, got.Stderr}
}
