package cli

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
	"tessera/internal/sweep/fleet"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

func TestMetricsThatAreNotFiniteHaveTheCodeOfADivergedTraining(t *testing.T) {
	err := workError{fmt.Errorf("run: %w", &metrics.NotFinite{Metric: "mse", Number: math.NaN()})}
	expect.Equal(t, exitCode(err), exitDiverged, "exit code")
}

func TestErrorsOfSweepsOnSeveralMachinesHaveTheirCodes(t *testing.T) {
	for err, want := range map[error]int{
		fmt.Errorf("h:1: %w: wrong token", fleet.ErrRefused):  exitUsage,
		fmt.Errorf("in use; %w", fleet.ErrAddress):            exitUsage,
		fmt.Errorf("h:1: %w", fleet.ErrLost):                  exitLost,
		fmt.Errorf("%w at h:1", fleet.ErrNoServer):            exitLost,
		&folder.WriteError{Path: "queue", Err: fleet.ErrLost}: exitWrite,
	} {
		expect.Equal(t, exitCode(workError{err}), want, err)
	}
}

func TestARefusedConnectionIsFollowedByItsRemedy(t *testing.T) {
	for err, want := range map[error]string{
		&fleet.Refusal{Address: "h:1", Reason: fleet.BadToken, Problem: "wrong token"}:  "tessera: h:1: refused: wrong token\ngive the coordinator's --token-file\n",
		&fleet.Refusal{Address: "h:1", Reason: fleet.NotAQueue, Problem: "not a queue"}: "tessera: h:1: refused: not a queue\n",
		fmt.Errorf("listen: h:1: %w", fleet.ErrNoToken):                                 "tessera: listen: h:1: other machines could connect without a token\ngive --token-file, or listen on 127.0.0.1\n",
		&sweep.Unlabelled{Dataset: "bars", Metric: "svm_accuracy"}:                      "tessera: bars: its samples have no labels, but svm_accuracy needs them\nleave the metric out: --svm=false, or other --metrics\n",
		&sweep.Interrupted{Path: "s"}:                                                   "tessera: s: interrupted\nrun the same command again to resume\n",
	} {
		var out strings.Builder
		explain(failure{err: workError{err}}, &out)
		expect.Equal(t, out.String(), want)
	}
}

func TestARunOfAnotherFormatNamesItsVersion(t *testing.T) {
	b := newBench(t)
	b.trained("run", 1)
	f, err := checkpoint.Read(b.path("run/state.safetensors"))
	fatal.If(t, err)
	delete(f.Metadata, "format")
	for _, name := range []string{"state", "model", "best"} {
		text, err := checkpoint.Encode(f, nil)
		fatal.If(t, err)
		b.write("run/"+name+".safetensors", string(text))
	}
	for _, command := range []string{"eval", "resume"} {
		b.contains(command, b.must(exitCheckpoint, command, "run").stderr, "written by tessera 0.1.0 or an earlier 0.2.0-dev: open it with that version")
	}
	b.contains("runs", b.must(0, "runs", ".").stdout, "damaged", "tessera 0.1.0")
}
