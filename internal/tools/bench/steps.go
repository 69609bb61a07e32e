package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tessera/internal/tools/internal/module"
)

// encode, in place of an optimizer, selects a contest in which 10,000 images are encoded instead of a training step.
const encode = "encode"

// stepContests returns the contests of training steps between PyTorch and BenchmarkStep in package train: those of
// bench/torch_steps.py, of bench/torch_twins.py and of bench/torch_sae.py.
func (s settings) stepContests() []contest {
	ready := sync.OnceValues(func() (string, error) {
		if err := hasTorch(); err != nil {
			return "", err
		}
		return s.buildSteps()
	})
	var contests []contest
	for _, w := range []struct{ model, optimizer string }{
		{"shallow-nonneg-kl", "adadelta"}, {"shallow-nonneg-kl", "adam"}, {"deep-dense", "adam"},
		{"asym-nonneg-kl", "adam"}, {"asym-nonneg-kl", encode},
	} {
		steps := s.steps
		if w.optimizer == encode { // one takes as long as some thirty steps
			steps = max(3, steps/30)
		}
		contests = append(contests, contest{
			name: w.model + " " + w.optimizer,
			peer: func() (result, error) {
				if _, err := ready(); err != nil {
					return result{}, err
				}
				return s.torch(w.model, w.optimizer, steps)
			},
			ours: func() (result, error) {
				binary, err := ready()
				if err != nil {
					return result{}, err
				}
				return s.benchmark(steps, fmt.Sprintf("^BenchmarkStep$/^%s$/^%s$/^threads=%d$", w.model, w.optimizer, s.threads), binary)
			},
		})
	}
	for _, w := range []struct{ model, benchmark string }{
		{"simclr", "simclr declared"}, {"byol", "byol declared"}, {"vicreg", "vicreg declared"}, {"vae", "vae declared"},
		{"vit-classifier", "vit-classifier declared"}, {"masked-autoencoder", "masked-autoencoder declared"},
		{"gru-mini", "gru-mini declared"}, {"lstm-mini", "gru-mini lstm"}, {"gpt-mini", "gpt-mini long"},
		{"dense-wide", "dense-wide declared"}, {"convolutional", "convolutional declared"},
	} {
		steps := max(10, s.steps/10) // one takes as long as ten to a hundred of a shallow model
		model, variant, _ := strings.Cut(w.benchmark, " ")
		contests = append(contests, contest{
			name: w.model + " step",
			peer: func() (result, error) {
				if _, err := ready(); err != nil {
					return result{}, err
				}
				return perStep(python(s.torchAtItsBest(), "bench/torch_twins.py", w.model, "--data", s.folder, "--steps", strconv.Itoa(steps),
					"--threads", strconv.Itoa(s.threads)))
			},
			ours: func() (result, error) {
				binary, err := ready()
				if err != nil {
					return result{}, err
				}
				return s.benchmark(steps, fmt.Sprintf("^BenchmarkStep$/^%s$/^%s$/^threads=%d$", model, variant, s.threads), binary)
			},
		})
	}
	for _, w := range []struct {
		name, decoder, benchmark string
		shape                    []string
	}{
		{"top-k dense", "dense", "top_k", nil}, {"top-k embedding_bag", "embedding_bag", "top_k", nil},
		{"wide-top-k dense", "dense", "wide", []string{"--inputs", "768", "--units", "24576", "--batch", "512"}},
		{"wide-top-k embedding_bag", "embedding_bag", "wide", []string{"--inputs", "768", "--units", "24576", "--batch", "512"}},
	} {
		steps := max(3, s.steps/30) // one takes as long as a hundred of a shallow model
		contests = append(contests, contest{
			name: w.name,
			peer: func() (result, error) {
				if _, err := ready(); err != nil {
					return result{}, err
				}
				return perStep(python(s.torchAtItsBest(), slices.Concat([]string{"bench/torch_sae.py", "--decoder", w.decoder, "--steps", strconv.Itoa(steps),
					"--threads", strconv.Itoa(s.threads)}, w.shape)...))
			},
			ours: func() (result, error) {
				binary, err := ready()
				if err != nil {
					return result{}, err
				}
				return s.benchmark(steps, fmt.Sprintf("^BenchmarkSparseCode$/^%s$/^threads=%d$", w.benchmark, s.threads), binary)
			},
		})
	}
	return contests
}

// hasTorch returns an error if PyTorch is not installed.
func hasTorch() error {
	if err := exec.Command("/usr/bin/python3", "-c", "import torch").Run(); err != nil {
		return fmt.Errorf("PyTorch is missing (%w). On Debian: apt-get install python3-torch libopenblas0-openmp", err)
	}
	if preload() == "" {
		log.Print("OpenBLAS built with OpenMP is missing, PyTorch will not be at its best: apt-get install libopenblas0-openmp")
	}
	return nil
}

// benchmark runs one benchmark of package train. The command line ends with the path of the binary.
func (s settings) benchmark(steps int, pattern string, command ...string) (result, error) {
	command = append(command, "-test.run=^$", "-test.bench="+pattern, "-test.benchtime="+strconv.Itoa(steps)+"x")
	c := exec.Command(command[0], command[1:]...)
	c.Dir = "../train" // the benchmark reads ../models.toml
	c.Env = append(os.Environ(), "TESSERA_DATA="+filepath.Dir(s.folder), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return perStep(module.Output(c))
}

// buildSteps builds the binary of the benchmarks and returns its path.
func (s settings) buildSteps() (string, error) {
	binary := filepath.Join(s.temporary, "train.test")
	c, err := module.Go("test", "-c", "-o", binary, "./internal/train")
	if err != nil {
		return "", err
	}
	_, err = module.Output(c)
	return binary, err
}

func (s settings) torch(model, optimizer string, steps int) (result, error) {
	return perStep(python(s.torchAtItsBest(), "bench/torch_steps.py", model, optimizer, "--data", s.folder, "--steps", strconv.Itoa(steps), "--threads", strconv.Itoa(s.threads)))
}

// torchAtItsBest returns the environment in which PyTorch is fastest.
func (s settings) torchAtItsBest() []string {
	return []string{
		"OMP_NUM_THREADS=" + strconv.Itoa(s.threads), "LD_PRELOAD=" + preload(),
		// else glibc gives every large tensor fresh pages, which costs PyTorch up to a quarter of its time
		"MALLOC_MMAP_THRESHOLD_=1073741824", "MALLOC_TRIM_THRESHOLD_=4294967296",
	}
}

// preload returns the path of the library with which PyTorch is fastest, "" if it is not installed.
func preload() string {
	found, _ := filepath.Glob("/usr/lib/*/openblas-openmp/libopenblas.so.0")
	return strings.Join(found, "")
}

// perStep parses the milliseconds per step in the output of a benchmark, and those of CPU time if they are there.
func perStep(printed string, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	var r result
	words := strings.Fields(printed)
	for i, w := range words {
		into := map[string]*float64{"ms/step": &r.ms, "cpu-ms/step": &r.cpu}[w]
		if into == nil || i == 0 {
			continue
		}
		if *into, err = strconv.ParseFloat(words[i-1], 64); err != nil {
			return result{}, err
		}
	}
	if r.ms == 0 {
		return result{}, fmt.Errorf("no milliseconds per step in\n%s", printed)
	}
	return r, nil
}
