//go:build unix

package cli

import (
	"bufio"
	"os"
	"strings"
	"syscall"
	"testing"

	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// stuck is a hook that does not end the batch stuckAt while the file "stick" exists, so that even a fast machine cannot
// complete the batch.
type stuck struct{}

const stuckAt = 30

// Attach implements [hooks.Hook].
func (stuck) Attach(hooks.Training) (*hooks.Active, error) {
	step := 0
	return &hooks.Active{BeforeStep: func(*hooks.Step) error {
		if step++; step != stuckAt {
			return nil
		}
		if _, err := os.Stat("stick"); err != nil {
			return nil
		}
		if _, err := os.Stderr.WriteString("\nthe batch is stuck\n"); err != nil {
			return err
		}
		select {}
	}}, nil
}

func init() {
	if os.Getenv(asCommand) == withStuck {
		hooks.Registry.Register("stuck", "a batch that never ends", func() hooks.Hook { return &stuck{} })
	}
}

// A single interrupt has the same exit code, but waits for the batch and writes a checkpoint. In this test the batch never
// ends, and the state remains that from before the first step.
func TestASecondInterruptStopsWithoutTheBatchAndWithoutACheckpoint(t *testing.T) {
	b := benchOf(t)
	t.Setenv(asCommand, withStuck)
	b.write("stick", "")
	train := append([]string{"train", "small", "--set", "hook.stuck={}", "--set", "train.checkpoint_seconds=3600"}, long...)

	cmd := b.command(append(train, "--out", "cut")...)
	stderr, err := cmd.StderrPipe()
	fatal.If(t, err)
	fatal.If(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	waitFor := func(text string) {
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("standard error ended without %q", text)
	}
	interrupt := func() {
		fatal.If(t, cmd.Process.Signal(syscall.SIGINT))
	}
	waitFor("the batch is stuck")
	before := b.read("cut/state.safetensors")
	interrupt()
	waitFor("press Ctrl-C again to stop immediately")
	interrupt()
	for lines.Scan() {
		if strings.Contains(lines.Text(), "interrupted at step") {
			t.Errorf("a checkpoint was written: %s", lines.Text())
		}
	}
	_ = cmd.Wait()
	expect.Equal(t, cmd.ProcessState.ExitCode(), exitInterrupted, "exit code")
	expect.Equal(t, b.read("cut/state.safetensors"), before, "the state is not the one from before the interrupts")

	fatal.If(t, os.Remove(b.path("stick")))
	b.must(0, append(train, "--out", "whole")...)
	b.must(0, "resume", "cut")
	b.sameRun("whole", "cut")
}
