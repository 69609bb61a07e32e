package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// smallBaselines declares baselines that are fitted quickly.
const smallBaselines = `
[model.factors]
kind       = "nmf"
dataset    = "bars"
components = 16
train      = { checkpoint_seconds = 0 }

[model.centres]
kind       = "kmeans"
dataset    = "bars"
components = 16

[model.components]
kind       = "pca"
dataset    = "bars"
components = 16

[model.sparse]
kind       = "sparse_nmf"
dataset    = "bars"
components = 16
iterations = 20
`

func TestBaselinesAreTrainedMeasuredAndUsedLikeAutoEncoders(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallBaselines)
	for _, name := range []string{"factors", "centres", "components", "sparse"} {
		run := "runs/" + name
		b.contains("stdout", b.must(0, "train", name).stdout, "run ", " iteration", "mse ", "dead_units ", "row ", run+"/atoms.png")
		for _, file := range []string{"config.toml", "metrics.jsonl", "state.safetensors", "model.safetensors", "env.json", "atoms.png"} {
			if !b.exists(filepath.Join(run, file)) {
				t.Errorf("%s: no %s", name, file)
			}
		}
		var last struct{ Loss float64 }
		lines := strings.Split(strings.TrimSpace(b.read(run+"/metrics.jsonl")), "\n")
		fatal.If(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
		e := b.eval(run)
		// Of images that were fitted the error of the codes that are kept is the one that was minimised.
		if math.Abs(e.MSE-last.Loss) > 1e-4*last.Loss+1e-9 || e.Images != 500 || e.Model != name {
			t.Errorf("%s: eval says %+v, the fit ended at %g", name, e, last.Loss)
		}
		b.must(0, "figure", "atoms", run)
		b.contains("stderr", b.must(0, "resume", run).stderr, "is finished")
		b.must(0, "train", name, "-f", run+"/config.toml", "--out", "again-"+name)
		b.sameRun(run, "again-"+name)
	}
	b.must(0, "figure", "training", "runs/factors", "runs/sparse")
}

func TestEncodeAndDecodeWithABaseline(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", strings.ReplaceAll(smallBaselines, `"bars"`, `"swimmer"`))
	images := swimmer(t)
	fatal.If(t, data.WriteImages(b.path("images.npy"), []int{32, 32}, images))
	for _, name := range []string{"components", "factors"} {
		run := "runs/" + name
		b.must(0, "train", name)
		b.must(0, "encode", run, "--in", "images.npy", "--out", "codes.npy")
		b.must(0, "decode", run, "--in", "codes.npy", "--out", "outputs.npy")
		expect.Equal(t, len(b.values("codes.npy", 16)), 256*16, name)
		mse := 0.0
		for i, v := range b.values("outputs.npy", 32, 32) {
			d := float64(v - images[i])
			mse += d * d / float64(len(images))
		}
		if e := b.eval(run); math.Abs(mse-e.MSE) > 1e-5*e.MSE {
			t.Errorf("%s: the decoded images have mse %g, eval says %g", name, mse, e.MSE)
		}
	}
	images[5] = -1
	fatal.If(t, data.WriteImages(b.path("negative.npy"), []int{32, 32}, images))
	b.contains("stderr", b.must(exitData, "encode", "runs/factors", "--in", "negative.npy", "--out", "x.npy").stderr, "sample 0, value 5: got -1")
}

func TestSummaryAndListKnowBaselines(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallBaselines)
	var s summary
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "summary", "components", "--json").stdout), &s))
	if s.Parameters != 16*64+64 || s.Trainable != s.Parameters || len(s.Layers) != 2 || s.Layers[0].Path != "atoms" || s.Layers[1].Parameters != 64 {
		t.Errorf("got %+v", s)
	}
	b.contains("summary", b.must(0, "summary", "factors").stdout, "atoms", "nmf", "8x8", "parameters  1,024\n")
	b.must(exitUsage, "summary", "factors", "--plan")
	b.contains("list", b.must(0, "list", "baselines").stdout, "nmf", "sparse_nmf", "kmeans", "pca", "code_sparsity")
	b.contains("list", b.must(0, "list", "models").stdout, "factors")
	b.contains("check", b.must(0, "check").stdout, "4 models, no errors")
	filled := b.must(0, "check", "--fill", "factors").stdout
	b.contains("check --fill", filled, `kind = "nmf"`, `solver = "hals"`, "seed = 1")
	if strings.Contains(filled, "epochs") {
		t.Errorf("a baseline has epochs:\n%s", filled)
	}
}

func TestWhatABaselineRefusesHasItsExitCode(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallBaselines)
	b.contains("stderr", b.must(exitUsage, "train", "factors", "--epochs", "3").stderr, "--epochs: factors is a baseline", "iterations")
	b.contains("stderr", b.must(exitConfig, "train", "factors", "--set", "train.epochs=3").stderr, `unknown key "epochs"`)
	b.contains("stderr", b.must(exitConfig, "train", "components", "--set", "components=65").stderr, "components: got 65, want at most 64")
	b.contains("stderr", b.must(exitConfig, "train", "factors", "--set", "loss=kl").stderr, "solver")
	for args, says := range map[string]string{
		"check --fill components":                                                        "", // a sound file
		"summary factors --set components=10000000":                                      "components: got 10000000, whose atoms take 2.56 GB",
		"train factors --set components=10000000":                                        "components: got 10000000, whose atoms take 2.56 GB",
		"train sparse --set components=2000000000":                                       "components: got 2000000000, whose atoms take 512 GB",
		"train sparse --set components=4000000000":                                       "whole numbers are at most 2147483647",
		"summary components --set components=100":                                        "components: got 100, want at most 64",
		"train centres --set components=501":                                             "components: got 501, want at most 500, the number of samples",
		"train factors --set components=6000 --set init=random --set dataset.count=3000": "products of codes take",
	} {
		code := exitConfig
		if says == "" {
			code = 0
		}
		b.contains(args, b.must(code, strings.Fields(args)...).stderr, says)
	}
}

func TestABaselineMayBeFittedToTheTestSamples(t *testing.T) {
	b := newBench(t)
	b.write("train.csv", "x,y\n1,2\n3,4\n5,7\n")
	b.write("test.csv", "x,y\n10,20\n30,40\n")
	b.write("models.toml", `
[model.axis]
kind       = "pca"
components = 1
dataset    = { file = "train.csv", test = "test.csv", fit = "test", validation = 0 }
`)
	b.must(0, "train", "axis", "--quiet")
	if e := b.eval("runs/axis"); e.Images != 2 || e.MSE > 1e-6 { // one axis contains two points
		t.Errorf("got %+v, want no error of 2 samples", e)
	}
	b.contains("split", b.must(0, "eval", "runs/axis").stdout, "test (fitted to these samples")
}
