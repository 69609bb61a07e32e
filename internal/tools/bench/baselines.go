package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"tessera/data"
	"tessera/internal/fit"
	"tessera/internal/tools/internal/module"
)

// baselineContests returns the contests of matrix factorisation and of the linear SVM between scikit-learn and Tessera on the
// 10,000 test images. For a factorisation Tessera is timed as a complete command, from its start to the written files;
// scikit-learn is timed only for the fit.
func (s settings) baselineContests() []contest {
	ready := sync.OnceValues(s.buildTessera)
	contests := []contest{{
		name: "nmf",
		peer: func() (result, error) { return s.sklearn("nmf") },
		ours: func() (result, error) { return s.factorise(ready, "nmf") },
	}, {
		name: "nmf-mu per iteration",
		peer: func() (result, error) {
			return perIteration(func(n string) (result, error) { return s.sklearn("nmf-mu", "--iterations", n) })
		},
		ours: func() (result, error) {
			return perIteration(func(n string) (result, error) {
				return s.factorise(ready, "nmf-mu", "--set", "iterations="+n)
			})
		},
	}}
	codes := sync.OnceValues(func() (*data.Images, error) { return s.codes(ready) })
	for _, c := range []float64{0.01, 0.1, 1, 10, 100, 1000} {
		contests = append(contests, contest{
			name: fmt.Sprintf("svm C=%g", c),
			peer: func() (result, error) {
				if _, err := codes(); err != nil {
					return result{}, err
				}
				return s.sklearn("svm", "--codes", filepath.Join(s.temporary, "codes.npy"), "--C", fmt.Sprint(c))
			},
			ours: func() (result, error) {
				h, err := codes()
				if err != nil {
					return result{}, err
				}
				return s.classify(h, c)
			},
		})
	}
	return contests
}

func (s settings) sklearn(arguments ...string) (result, error) {
	printed, err := python(nil, append([]string{"bench/sklearn_baselines.py", "--data", s.folder}, arguments...)...)
	if err != nil {
		return result{}, fmt.Errorf("%w\nscikit-learn is in Debian's python3-sklearn", err)
	}
	var seconds, score float64
	if _, err := fmt.Sscanf(printed, "%f s score %f", &seconds, &score); err != nil {
		return result{}, fmt.Errorf("%q: %w", printed, err)
	}
	return result{ms: 1e3 * seconds, score: score}, nil
}

// perIteration returns the time of one iteration: the difference between a long and a short run, which excludes the start,
// divided by the difference of their iterations.
func perIteration(run func(iterations string) (result, error)) (result, error) {
	const short, long = 10, 60
	few, err := run(strconv.Itoa(short))
	if err != nil {
		return result{}, err
	}
	many, err := run(strconv.Itoa(long))
	return result{ms: (many.ms - few.ms) / (long - short), score: many.score}, err
}

func (s settings) buildTessera() (string, error) {
	binary := filepath.Join(s.temporary, "tessera")
	c, err := module.Go("build", "-o", binary, "./apps/tessera")
	if err != nil {
		return "", err
	}
	_, err = module.Output(c)
	return binary, err
}

// tessera runs the command tessera.
func (s settings) tessera(ready func() (string, error), arguments ...string) (string, error) {
	binary, err := ready()
	if err != nil {
		return "", err
	}
	c := exec.Command(binary, arguments...)
	c.Env = append(os.Environ(), "TESSERA_DATA="+filepath.Dir(s.folder))
	return module.Output(c)
}

// factorise trains a model on the test images, and returns the total time and the error.
func (s settings) factorise(ready func() (string, error), model string, more ...string) (result, error) {
	if _, err := ready(); err != nil {
		return result{}, err
	}
	out := filepath.Join(s.temporary, model)
	if err := os.RemoveAll(out); err != nil {
		return result{}, err
	}
	began := time.Now()
	if _, err := s.tessera(ready, append([]string{"train", model, "--set", "dataset.fit=test", "--out", out}, more...)...); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	printed, err := s.tessera(ready, "eval", out, "--json")
	if err != nil {
		return result{}, err
	}
	var report struct {
		MSE float64 `json:"mse"`
	}
	err = json.Unmarshal([]byte(printed), &report)
	return result{ms: 1e3 * took.Seconds(), score: report.MSE}, err
}

// codes fits an NMF to the test images and returns its codes, which both programs classify.
func (s settings) codes(ready func() (string, error)) (*data.Images, error) {
	if _, err := s.factorise(ready, "nmf"); err != nil {
		return nil, err
	}
	file := filepath.Join(s.temporary, "codes.npy")
	if _, err := s.tessera(ready, "encode", filepath.Join(s.temporary, "nmf"),
		"--in", filepath.Join(s.folder, "t10k-images-idx3-ubyte.gz"), "--out", file); err != nil {
		return nil, err
	}
	return data.ReadImages(context.Background(), file, nil)
}

// classify fits a classifier to the first four fifths of the codes and returns the accuracy on the last fifth.
func (s settings) classify(codes *data.Images, c float64) (result, error) {
	ctx := context.Background()
	set, err := data.FashionMNIST().Load(ctx, data.Dirs{filepath.Dir(s.folder)}, data.Need{Test: true})
	if err != nil {
		return result{}, err
	}
	features, width, labels := codes.Float32(), codes.Pixels(), set.Test.Labels()
	n := codes.Len() * 4 / 5
	train, err := fit.Of("svm", features[:n*width], width, labels[:n])
	if err != nil {
		return result{}, err
	}
	began := time.Now()
	weights, err := train.SVM(ctx, c, fit.Tolerance)
	if err != nil {
		return result{}, err
	}
	took := time.Since(began)
	right := 0
	for i, label := range labels[n:] {
		best, class := 0.0, 0
		for k, of := range train.Classes {
			w := weights[k*train.Width : (k+1)*train.Width]
			score := w[width]
			for j, v := range features[(n+i)*width : (n+i+1)*width] {
				score += w[j] * float64(v)
			}
			if k == 0 || score > best {
				best, class = score, of
			}
		}
		if class == label {
			right++
		}
	}
	return result{ms: 1e3 * took.Seconds(), score: float64(right) / float64(len(labels)-n)}, nil
}
