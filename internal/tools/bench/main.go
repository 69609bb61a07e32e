// Command bench compares the speed of Tessera with that of other programs, in alternating rounds, and prints the ratios of the
// medians.
//
//	go -C internal/tools run ./bench --data FOLDER [--only NAME] [--rounds 5] [--steps 469] [--threads 2] [--mpirun LAUNCHER]
//
// FOLDER contains fashion-mnist/. Every round runs, for each contest, the other program with its fastest settings
// (bench/torch_steps.py for PyTorch, bench/sklearn_baselines.py for scikit-learn, bench/gomlx, bench/onnx_encode.cjs) and Tessera, which inherits TESSERA_BLAS and
// TESSERA_SIMD. Rounds alternate, so that a drift of the machine's speed affects all programs equally. With --mpirun the
// contests compare a training by one process with several threads (peer) with a training by the same number of processes with
// one thread each (ours). --mpirun may be repeated.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/cpu"

	"tessera/internal/tools/internal/module"
)

// A contest is a piece of work that another program and Tessera perform.
type contest struct {
	name string // name, which begins with the model
	peer func() (result, error)
	ours func() (result, error)
}

// A result contains a time, and CPU time and a score of the outcome where they are measured.
type result struct{ ms, cpu, score float64 }

// settings contains the flags of the command line.
type settings struct {
	folder         string // folder fashion-mnist/
	temporary      string // folder for built programs and trained models
	steps, threads int
	launchers      []string // launchers of MPI; if there are none, other programs are the peers
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var s settings
	folder := flag.String("data", os.Getenv("TESSERA_DATA"), "folder that holds fashion-mnist/")
	only := flag.String("only", "", "hold only contests whose name begins so")
	rounds := flag.Int("rounds", 5, "alternating rounds")
	flag.IntVar(&s.steps, "steps", 469, "training steps per run")
	flag.IntVar(&s.threads, "threads", 2, "threads of training steps, both sides")
	flag.Func("mpirun", "a launcher of MPI with its options, may be repeated: trainings by several processes beside those by one", func(text string) error {
		s.launchers = append(s.launchers, text)
		return nil
	})
	flag.Parse()
	if err := run(s, *folder, *only, *rounds); err != nil {
		log.Fatal(err)
	}
}

func run(s settings, folder, only string, rounds int) error {
	if folder == "" {
		return errors.New("say where fashion-mnist/ is: --data FOLDER or TESSERA_DATA")
	}
	if rounds < 1 {
		return fmt.Errorf("--rounds: got %d, want > 0", rounds)
	}
	folder, err := filepath.Abs(filepath.Join(folder, "fashion-mnist"))
	if err != nil {
		return err
	}
	if s.temporary, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer os.RemoveAll(s.temporary)
	s.folder = folder
	contests := slices.DeleteFunc(s.contests(), func(c contest) bool {
		return !strings.HasPrefix(c.name, only)
	})
	if len(contests) == 0 {
		return fmt.Errorf("--only %s: no contest's name begins so", only)
	}
	all := make([]entry, len(contests))
	for round := range rounds {
		for i, c := range contests {
			if err := all[i].hold(c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			e := all[i]
			log.Printf("round %d of %d: %s: peer %.3f ms, ours %.3f ms", round+1, rounds, c.name,
				e.peer[round].ms, e.ours[round].ms)
		}
	}
	return write(os.Stdout, contests, all)
}

func (s settings) contests() []contest {
	if len(s.launchers) > 0 {
		return s.processContests(s.launchers)
	}
	return slices.Concat(s.stepContests(), s.peerContests(), s.baselineContests(), s.mixtureContests())
}

// An entry contains the results of all rounds of one contest.
type entry struct{ peer, ours []result }

// hold runs one round and adds its results.
func (e *entry) hold(c contest) error {
	for _, side := range []struct {
		into    *[]result
		measure func() (result, error)
	}{
		{&e.peer, c.peer},
		{&e.ours, c.ours},
	} {
		r, err := side.measure()
		if err != nil {
			return err
		}
		*side.into = append(*side.into, r)
	}
	return nil
}

func write(w io.Writer, contests []contest, all []entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "contest\tpeer ms\tours ms\tratio\tpeer CPU ms\tours CPU ms\tratio\tpeer's score\tours")
	for i, c := range contests {
		p, o := median(all[i].peer), median(all[i].ours)
		fmt.Fprintf(t, "%s\t%.3f\t%.3f\t%.3g\t%s\t%s\t%s\t%s\t%s\n", c.name, p.ms, o.ms, o.ms/p.ms,
			known("%.3f", p.cpu), known("%.3f", o.cpu), known("%.2f", o.cpu/p.cpu), known("%.6g", p.score), known("%.6g", o.score))
	}
	return t.Flush()
}

// known formats a number that was measured.
func known(format string, x float64) string {
	if !(x > 0) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf(format, x)
}

// median returns the medians of the times and of the CPU times, and the score of the result with the median time.
func median(x []result) result {
	by := func(key func(result) float64) result {
		sorted := slices.SortedFunc(slices.Values(x), func(a, b result) int { return cmp.Compare(key(a), key(b)) })
		return sorted[len(sorted)/2]
	}
	m := by(func(r result) float64 { return r.ms })
	m.cpu = by(func(r result) float64 { return r.cpu }).cpu
	return m
}

// python runs a script in this folder with its fastest settings and returns its output.
func python(environment []string, arguments ...string) (string, error) {
	c := exec.Command("/usr/bin/python3", arguments...)
	c.Env = append(os.Environ(), environment...)
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		c.Env = append(c.Env, "OPENBLAS_CORETYPE=SkylakeX") // OpenBLAS 0.3.21 does not recognise newer models
	}
	return module.Output(c)
}
