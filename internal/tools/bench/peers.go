package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"tessera/internal/tools/internal/module"
)

// peerContests returns the contests with other programs in Go and with ONNX Runtime: a training step beside GoMLX and beside Gorgonia's own machine,
// and encoding 10,000 images beside onnxruntime-node, which is in the folder node_modules of NODE_PATH.
func (s settings) peerContests() []contest {
	ready := sync.OnceValues(s.buildSteps)
	ours := func(pattern string, steps int) func() (result, error) {
		return func() (result, error) {
			binary, err := ready()
			if err != nil {
				return result{}, err
			}
			return s.benchmark(steps, pattern, binary)
		}
	}
	step := fmt.Sprintf("^BenchmarkStep$/^shallow-nonneg-kl$/^adam$/^threads=%d$", s.threads)
	gomlx := sync.OnceValues(func() (string, error) {
		binary := filepath.Join(s.temporary, "gomlx")
		_, err := module.Output(exec.Command("go", "-C", "bench/gomlx", "build", "-o", binary, "."))
		return binary, err
	})
	contests := []contest{{
		name: "peer GoMLX shallow-nonneg-kl step",
		peer: func() (result, error) {
			binary, err := gomlx()
			if err != nil {
				return result{}, err
			}
			c := exec.Command(binary, "--steps", strconv.Itoa(max(3, s.steps/10)))
			c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(s.threads))
			return perStep(module.Output(c))
		},
		ours: ours(step, s.steps),
	}, {
		name: "peer Gorgonia shallow-nonneg-kl step",
		peer: ours("^BenchmarkStep$/^shallow-nonneg-kl$/^tape$/^threads=1$", max(3, s.steps/10)),
		ours: ours(step, s.steps),
	}}
	for _, model := range []string{"shallow-nonneg-kl", "asym-nonneg-kl"} {
		onnx := sync.OnceValues(func() (string, error) { return s.exported(model) })
		runs := max(3, s.steps/30)
		contests = append(contests, contest{
			name: "peer onnxruntime " + model + " encode",
			peer: func() (result, error) {
				file, err := onnx()
				if err != nil {
					return result{}, err
				}
				return perStep(module.Output(exec.Command("node", "bench/onnx_encode.cjs", file, filepath.Join(s.folder, "t10k-images-idx3-ubyte.gz"), strconv.Itoa(s.threads), strconv.Itoa(runs))))
			},
			ours: ours(fmt.Sprintf("^BenchmarkStep$/^%s$/^encode$/^threads=%d$", model, s.threads), runs),
		})
	}
	return contests
}

// exported trains a model for a moment and returns its encoder as a file of ONNX.
func (s settings) exported(model string) (string, error) {
	if os.Getenv("NODE_PATH") == "" {
		return "", errors.New("onnxruntime-node is missing: npm install --ignore-scripts onnxruntime-node, and set NODE_PATH to its folder node_modules")
	}
	binary, run := filepath.Join(s.temporary, "tessera"), filepath.Join(s.temporary, model)
	build, err := module.Go("build", "-o", binary, "./apps/tessera")
	if err != nil {
		return "", err
	}
	commands := []*exec.Cmd{build,
		exec.Command(binary, "train", model, "--epochs", "1", "--set", "dataset.limit=512", "--data", filepath.Dir(s.folder), "--out", run),
		exec.Command(binary, "export", run, "--to", "onnx", "-o", run+".onnx")}
	for _, c := range commands {
		if _, err := module.Output(c); err != nil {
			return "", err
		}
	}
	return run + ".onnx", nil
}
