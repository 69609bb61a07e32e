package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	_ "tessera/internal/testheap"
)

var (
	kills    = flag.Int("kills", 5, "how many times the kill test kills a training")
	killSeed = flag.Uint64("kill-seed", 0, "the seed of the moments of kills, which a test logs; 0 takes one from the clock")
	seeds    = flag.Int("seeds", 0, "for how many seeds, from 1, the parts of the swimmer must be found")
)

// asCommand is an environment variable. If it is set, the test binary runs the command, so that no second binary is linked. With the value
// withStuck the command also has a part for tests.
const (
	asCommand = "CLI_TEST_AS_COMMAND"
	withStuck = "with the hook stuck"
)

// TestMain runs the command if asCommand is set. Commands then have the larger heap of package testheap, too: a test that measures
// memory gives its command the collector of the product, GOGC=100.
func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main()
	}
	if os.Getenv(asCommander) != "" {
		if err := obey(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitInternal)
		}
		return
	}
	commanders.env = os.Environ()
	flag.Parse()
	code := m.Run()
	if err := dismiss(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	_ = errors.Join(os.RemoveAll(outsideFolder), os.RemoveAll(runsOfSmall.folder), os.RemoveAll(swimmerRun.folder))
	os.Exit(code)
}

// smallModels declares a model that trains quickly, with all state that must survive a kill: Adam's state, dropout, noise,
// shuffling, a smaller last batch, early stopping and a checkpoint after every epoch.
const smallModels = `
[model.small]
encoder = [
  { kind = "gaussian_noise", stddev = 0.1 },
  { kind = "dropout", rate = 0.1 },
  { kind = "dense", units = 6, activation = "sigmoid" },
]
loss       = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
optimizer  = { kind = "adam", learning_rate = 0.01 }
train      = { epochs = 12, batch = 24, checkpoint_seconds = 0 }

[model.clothes]
extends = "small"
dataset = "fashion-mnist"
`

// bench is a folder with a models.toml, in which tests run the command.
type bench struct {
	*testing.T
	binary, dir string
}

// newBench returns a bench of a test that runs beside others.
func newBench(t *testing.T) *bench {
	t.Helper()
	t.Parallel()
	return benchOf(t)
}

// benchOf returns a bench of a test that runs alone, or has several.
func benchOf(t *testing.T) *bench {
	t.Helper()
	path, err := os.Executable()
	fatal.If(t, err)
	b := &bench{t, path, t.TempDir()}
	b.write("models.toml", smallModels)
	return b
}

// shipped removes the models.toml of the folder, so that the shipped models are used.
func (b *bench) shipped() {
	b.Helper()
	fatal.If(b, os.Remove(b.path("models.toml")))
}

// result contains the outputs and the exit code of a command.
type result struct {
	code           int
	stdout, stderr string
}

// patience is how long a command may take. It is not a bound of a test: a command that hangs is ended.
const patience = 5 * time.Minute

// trainers lists the sub-commands that train. With -short a test ends before the first of them.
var trainers = []string{"train", "resume", "sweep", "reproduce", "rank", "worker", "trial", "tune"}

// command prepares a run of the command. The command finds only the data that the test provides.
func (b *bench) command(args ...string) *exec.Cmd {
	if testing.Short() && len(args) > 0 && slices.Contains(trainers, args[0]) {
		b.Skip("trains a model")
	}
	return b.wrapped(append([]string{b.binary}, args...)...)
}

func (b *bench) wrapped(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	b.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TESSERA_DATA=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"), "HOME="+b.dir)
	if os.Getenv(asCommand) == "" {
		cmd.Env = append(cmd.Env, asCommand+"=1")
	}
	return cmd
}

// run runs the command to its end.
func (b *bench) run(args ...string) result {
	b.Helper()
	return b.finish(b.command(args...))
}

// finish runs a command to its end, in a process of its own if it has variables of its own.
func (b *bench) finish(cmd *exec.Cmd) result {
	b.Helper()
	if commandable(b.T, cmd) {
		return commanded(b.T, cmd)
	}
	return b.alone(cmd)
}

// alone runs a command to its end in a process of its own.
func (b *bench) alone(cmd *exec.Cmd) result {
	b.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		b.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must runs the command and fails the test unless the exit code is as given.
func (b *bench) must(code int, args ...string) result {
	b.Helper()
	r := b.run(args...)
	if r.code != code {
		b.Fatalf("tessera %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

// runsOfSmall are runs of the model small that several tests use, by their epochs; each test has copies. TestMain removes the folder.
var runsOfSmall struct {
	sync.Mutex
	folder string
	trains map[int]func()
}

// trained makes the run of the model small, trained for a number of epochs.
func (b *bench) trained(run string, epochs int) {
	b.Helper()
	if testing.Short() {
		b.Skip("trains a model")
	}
	shared := &runsOfSmall
	shared.Lock()
	if shared.trains == nil {
		folder, err := os.MkdirTemp("", "small")
		fatal.If(b, err)
		shared.folder, shared.trains = folder, map[int]func(){}
	}
	name := strconv.Itoa(epochs)
	if shared.trains[epochs] == nil {
		shared.trains[epochs] = sync.OnceFunc(func() {
			in := &bench{b.T, b.binary, shared.folder}
			in.write("models.toml", smallModels)
			in.must(0, "train", "small", "--epochs", name, "--out", name)
		})
	}
	train := shared.trains[epochs]
	shared.Unlock()
	train()
	fatal.If(b, errors.Join(os.MkdirAll(filepath.Dir(b.path(run)), 0o700), os.CopyFS(b.path(run), os.DirFS(filepath.Join(shared.folder, name)))))
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, text string) {
	b.Helper()
	fatal.If(b, errors.Join(os.MkdirAll(filepath.Dir(b.path(name)), 0o700), os.WriteFile(b.path(name), []byte(text), 0o600)))
}

func (b *bench) read(name string) string {
	b.Helper()
	text, err := os.ReadFile(b.path(name))
	fatal.If(b, err)
	return string(text)
}

// exists reports whether a file or folder of that name exists.
func (b *bench) exists(name string) bool {
	_, err := os.Stat(b.path(name))
	return err == nil
}

// contains fails the test unless the text contains all wanted texts.
func (b *bench) contains(what, text string, wanted ...string) {
	b.Helper()
	for _, w := range wanted {
		expect.Contains(b, text, w, what)
	}
}

// sameRun fails the test unless two runs have the same bytes, apart from the times in their metrics.
func (b *bench) sameRun(one, other string) {
	b.Helper()
	for _, name := range []string{"config.toml", "state.safetensors", "model.safetensors"} {
		expect.Equal(b, b.read(filepath.Join(one, name)), b.read(filepath.Join(other, name)), name, "of", one, "and", other)
	}
	expect.Equal(b, b.timeless(one), b.timeless(other), "metrics differ")
}

// timeless returns a run's metrics without values that depend on time.
func (b *bench) timeless(run string) string {
	b.Helper()
	var lines []string
	for line := range strings.Lines(b.read(filepath.Join(run, "metrics.jsonl"))) {
		before, _, ok := strings.Cut(line, `,"images_per_second"`)
		if !ok {
			b.Fatalf("metrics.jsonl: %s", line)
		}
		lines = append(lines, before)
	}
	return strings.Join(lines, "\n")
}

// complete returns the number of epochs in the checkpoint of a run.
func (b *bench) complete(out string) int {
	b.Helper()
	_, text, _ := strings.Cut(b.read(filepath.Join(out, "state.safetensors")), `"epoch":"`)
	number, _, _ := strings.Cut(text, `"`)
	n, err := strconv.Atoi(number)
	fatal.If(b, err, out, "the checkpoint records no epoch")
	return n
}

// killWhen starts the command, waits for a condition, waits for moment, and kills the command. It reports whether the command
// was still running.
func (b *bench) killWhen(reached func() bool, moment time.Duration, args ...string) bool {
	b.Helper()
	cmd := b.command(args...)
	ended := b.start(cmd)
	b.until(reached, ended)
	time.Sleep(moment)     // any moment is as good
	_ = cmd.Process.Kill() // too late is as good
	<-ended
	return cmd.ProcessState.ExitCode() == -1
}

// start starts a command and returns a channel that is closed when the command ends.
func (b *bench) start(cmd *exec.Cmd) (ended chan struct{}) {
	b.Helper()
	fatal.If(b, cmd.Start())
	ended = make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	return ended
}

// until waits until the condition holds or the command ends.
func (b *bench) until(reached func() bool, ended chan struct{}) {
	for !reached() {
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}
