// Command bench measures training steps against PyTorch's, in turn, and prints the ratios of the medians.
//
//	go run ./bench --data FOLDER [--only MODEL] [--rounds 5] [--steps 469] [--threads 2]
//
// FOLDER holds fashion-mnist/. Every round runs, for each model and optimizer, the twin in PyTorch (bench/peer.py, at
// its best: see there), our step with the BLAS found on this machine, and our step with the project's own assembly
// (TESSERA_BLAS=none). Rounds alternate so that a machine whose speed drifts is fair to both.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/cpu"
)

// workload is a model and an optimizer, or encode in the place of one.
type workload struct{ model, optimizer string }

// encode is to encode 10,000 images in the place of a training step.
const encode = "encode"

// steps is how many of a workload make a run of that many training steps' length.
func (w workload) steps(n int) int {
	if w.optimizer == encode {
		return max(3, n/30)
	}
	return n
}

// workloads are those of BenchmarkStep in package train.
var workloads = []workload{
	{"shallow-nonneg-kl", "adadelta"}, {"shallow-nonneg-kl", "adam"}, {"deep-dense", "adam"},
	{"asym-nonneg-kl", "adam"}, {"asym-nonneg-kl", encode},
}

func main() {
	log.SetFlags(0)
	folder := flag.String("data", os.Getenv("TESSERA_DATA"), "folder that holds fashion-mnist/")
	only := flag.String("only", "", "measure this model alone")
	rounds := flag.Int("rounds", 5, "alternating rounds")
	steps := flag.Int("steps", 469, "steps per run")
	threads := flag.Int("threads", 2, "threads of both")
	flag.Parse()
	workloads = slices.DeleteFunc(workloads, func(w workload) bool { return *only != "" && w.model != *only })
	if len(workloads) == 0 {
		log.Fatalf("bench: --only %s: no such model is measured", *only)
	}
	if err := run(*folder, *rounds, *steps, *threads); err != nil {
		log.Fatal("bench: ", err)
	}
}

// measurements are milliseconds per step, one per round.
type measurements struct{ peer, blas, assembly []float64 }

func run(folder string, rounds, steps, threads int) error {
	if folder == "" {
		return errors.New("say where fashion-mnist/ is: --data FOLDER or TESSERA_DATA")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := peerReady(); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	binary := filepath.Join(temporary, "train.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "./train").CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmark: %w\n%s", err, out)
	}
	all := make([]measurements, len(workloads))
	for round := range rounds {
		for i, w := range workloads {
			m, steps := &all[i], w.steps(steps)
			for _, one := range []struct {
				into    *[]float64
				measure func() (float64, error)
			}{
				{&m.peer, func() (float64, error) { return peer(w.model, w.optimizer, folder, steps, threads) }},
				{&m.blas, func() (float64, error) { return ours(binary, w.model, w.optimizer, folder, steps, threads, "") }},
				{&m.assembly, func() (float64, error) {
					return ours(binary, w.model, w.optimizer, folder, steps, threads, "TESSERA_BLAS=none")
				}},
			} {
				ms, err := one.measure()
				if err != nil {
					return err
				}
				*one.into = append(*one.into, ms)
			}
			log.Printf("round %d of %d: %s, %s: PyTorch %.3f ms, ours %.3f ms, without BLAS %.3f ms", round+1, rounds, w.model, w.optimizer,
				m.peer[round], m.blas[round], m.assembly[round])
		}
	}
	print(all)
	return nil
}

func print(all []measurements) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "model\toptimizer\tPyTorch ms\tours ms\tratio\twithout BLAS ms\tratio")
	for i, w := range workloads {
		p, b, a := median(all[i].peer), median(all[i].blas), median(all[i].assembly)
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%.3f\t%.2f\t%.3f\t%.2f\n", w.model, w.optimizer, p, b, b/p, a, a/p)
	}
	t.Flush()
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return x[len(x)/2]
}

// peerReady explains what to install where PyTorch is missing.
func peerReady() error {
	if err := exec.Command("/usr/bin/python3", "-c", "import torch").Run(); err != nil {
		return fmt.Errorf("PyTorch is missing (%w). On Debian: apt-get install python3-torch libopenblas0-openmp", err)
	}
	if preload() == "" {
		log.Print("bench: OpenBLAS built with OpenMP is missing, PyTorch will not be at its best: apt-get install libopenblas0-openmp")
	}
	return nil
}

// preload is the library that makes PyTorch fastest, "" where it is not installed.
func preload() string {
	found, _ := filepath.Glob("/usr/lib/*/openblas-openmp/libopenblas.so.0")
	return strings.Join(found, "")
}

func peer(model, optimizer, folder string, steps, threads int) (float64, error) {
	c := exec.Command("/usr/bin/python3", "bench/peer.py", model, optimizer, "--data", filepath.Join(folder, "fashion-mnist"),
		"--steps", strconv.Itoa(steps), "--threads", strconv.Itoa(threads))
	c.Env = append(os.Environ(), "OMP_NUM_THREADS="+strconv.Itoa(threads), "LD_PRELOAD="+preload(),
		// else glibc gives every large tensor fresh pages, which costs PyTorch up to a quarter of its time
		"MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TRIM_THRESHOLD_=4294967296")
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		c.Env = append(c.Env, "OPENBLAS_CORETYPE=SkylakeX")
	}
	return milliseconds(c)
}

func ours(binary, model, optimizer, folder string, steps, threads int, environment ...string) (float64, error) {
	pattern := fmt.Sprintf("^BenchmarkStep$/^%s$/^%s$/^threads=%d$", model, optimizer, threads)
	c := exec.Command(binary, "-test.run=^$", "-test.bench="+pattern, "-test.benchtime="+strconv.Itoa(steps)+"x")
	c.Dir = "train" // the benchmark reads ../models.toml
	c.Env = append(append(os.Environ(), "TESSERA_DATA="+folder), environment...)
	return milliseconds(c)
}

var perStep = regexp.MustCompile(`([0-9.]+) ms/step`)

// milliseconds runs c and finds its milliseconds per step.
func milliseconds(c *exec.Cmd) (float64, error) {
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", c, err, stderr.Bytes())
	}
	found := perStep.FindSubmatch(out)
	if found == nil {
		return 0, fmt.Errorf("%s: no milliseconds per step in\n%s", c, out)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}
