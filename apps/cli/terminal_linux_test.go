package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// onTerminal runs a command and returns what it writes to one of its outputs, a new pseudo-terminal with the given number of columns.
func onTerminal(t *testing.T, columns uint16, cmd *exec.Cmd, output *io.Writer) (screen string, failed error) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	fatal.If(t, err)
	defer master.Close()
	fatal.If(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	fatal.If(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	fatal.If(t, err)
	fatal.If(t, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // ends with EIO when the other end is closed
		shown <- string(text)
	}()
	*output = slave
	failed = cmd.Run()
	slave.Close()
	return <-shown, failed
}

func TestOnATerminalProgressIsOneLiveLineNoWiderThanIt(t *testing.T) {
	b := newBench(t)
	cmd := b.command("train", "small", "--epochs", "12")
	screen, err := onTerminal(t, 60, cmd, &cmd.Stderr)
	fatal.If(t, err, screen)
	lines := strings.Split(strings.TrimSuffix(screen, "\r\n"), "\r\n")
	if len(lines) != 2 || lines[0] != "run runs/small" {
		t.Fatalf("%d lines: %q", len(lines), screen)
	}
	states := strings.Split(lines[1], "\r")
	if len(states) < 2 || !strings.Contains(states[len(states)-1], "epoch 12/12 100%  loss ") {
		t.Errorf("the live line ends as %q", states[len(states)-1])
	}
	for _, s := range states[1:] {
		if text, cleared := strings.CutSuffix(s, "\x1b[K"); !cleared || len(text) > 59 {
			t.Errorf("%d columns, cleared %v: %q", len(text), cleared, s)
		}
	}
}

func TestOnATerminalASweepIsALiveTableNoWiderThanIt(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	cmd := b.command("sweep", "targets", "--epochs", "3", "--jobs", "2")
	screen, err := onTerminal(t, 60, cmd, &cmd.Stderr)
	fatal.If(t, err, screen)
	cleared := regexp.MustCompile(`\x1b\[(\d+)A\r\x1b\[J`)
	tables := 0
	for _, part := range cleared.Split(screen, -1) {
		for line := range strings.SplitSeq(part, "\r\n") {
			if strings.HasPrefix(line, "  small loss.1.target=") {
				tables++
				if len([]rune(line)) > 59 {
					t.Errorf("%d columns: %q", len(line), line)
				}
			}
		}
	}
	if tables == 0 || !strings.Contains(screen, "of 12 done, 0 failed, left ") {
		t.Errorf("no table: %q", screen)
	}
	// What stays is the text in front of every table.
	expect.Equal(t, strings.TrimSpace(screen[strings.LastIndex(screen, "\x1b[J")+3:]), "", "the screen ends with")
}

func TestATerminalShowsAtoms(t *testing.T) {
	b := newBench(t)
	if piped := b.must(0, "train", "small", "--epochs", "1", "--preview", "kitty").stdout; strings.Contains(piped, "\x1b") {
		t.Errorf("a preview is piped: %q", piped)
	}
	for how, want := range map[string]string{"auto": "\x1b[38;2;", "sixel": "\x1bPq", "none": ""} {
		cmd := b.command("eval", "runs/small", "--metrics", "mse", "--preview", how)
		cmd.Env = append(cmd.Env, "TERM=xterm-256color", "COLORTERM=truecolor", "TERM_PROGRAM=", "KITTY_WINDOW_ID=", "TMUX=", "NO_COLOR=", "LC_TERMINAL=")
		screen, err := onTerminal(t, 80, cmd, &cmd.Stdout)
		fatal.If(t, err, screen)
		expect.Contains(t, screen, want, "--preview", how)
		expect.Equal(t, strings.Contains(screen, "the 6 atoms"), want != "", "--preview", how)
	}
	b.contains("stderr", b.must(2, "eval", "runs/small", "--preview", "braille").stderr, `--preview: got "braille"`)
}

// TestMessagesHaveColourOnATerminalOnly checks the beginning of an error, its caret, and NO_COLOR.
func TestMessagesHaveColourOnATerminalOnly(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.a]\ndataset = { name = \"mnist\", scael = 1 }\n")
	for _, one := range []struct {
		env  string
		want bool
	}{{"TERM=xterm", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		cmd := b.command("check")
		cmd.Env = append(cmd.Environ(), "TERM=xterm", "NO_COLOR=", one.env)
		screen, _ := onTerminal(t, 80, cmd, &cmd.Stderr) // it fails: the file has an error
		if got := strings.Contains(screen, "\x1b[31mmodels.toml:2:") && regexp.MustCompile(`\x1b\[31m *\^+\x1b\[0m`).MatchString(screen); got != one.want || !strings.Contains(screen, "scael") {
			t.Errorf("%s: coloured %v, want %v: %q", one.env, got, one.want, screen)
		}
	}
}
