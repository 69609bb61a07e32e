package cli

import (
	"strings"
	"testing"
)

// A copy is trained on the predictions of another run, its teacher.
func TestACopySaysWhoseAnswersItHas(t *testing.T) {
	b := newBench(t)
	const copies = `
[model.copy]
extends = "noisy"
dataset = { run = "runs/noisy", labels = "class" }
train   = { epochs = 2 }
`
	b.write("models.toml", noisyModel+copies)
	for _, args := range [][]string{{"check"}, {"train", "copy"}} {
		text := b.must(exitConfig, args...).stderr
		b.contains("no teacher", text, `models.toml:13:19: model "copy": dataset: `, "run: runs/noisy: not found; train that run first", "or give head.class.layers[0].units")
		if strings.Contains(text, "missing key") {
			t.Errorf("%q: the missing units are a consequence of the missing run:\n%s", args, text)
		}
	}
	b.noisy()
	b.write("models.toml", noisyModel+copies)
	b.must(0, "train", "copy", "--quiet")
	const agreement = "labels are the predictions of runs/noisy: accuracy is agreement with them"
	b.contains("eval", b.must(0, "eval", "runs/copy").stdout, agreement)
	compare := []string{"compare", "runs/noisy", "runs/copy", "--metrics", "robust_accuracy", "--with", "steps=2", "--with", "epsilon=0.5"}
	b.contains("compare", b.must(0, compare...).stdout, agreement, "\nmeasured with steps=2, epsilon=0.5\n")
	b.must(0, append(compare, "-o", "compare.html")...)
	b.contains("compare -o", b.read("compare.html"), agreement, "measured with steps=2, epsilon=0.5")
	b.must(0, "figure", "gradients", "runs/noisy", "runs/copy", "--images", "0", "-o", "g.svg")
	b.contains("figure gradients", b.read("g.svg"), "; accuracy ", "; agreement with noisy ")
	b.must(0, "figure", "robustness", "runs/noisy", "runs/copy", "--norm", "linf", "--epsilon", "1", "--steps", "2", "--limit", "10", "-o", "r.svg")
	b.contains("figure robustness", b.read("r.svg"), "copy (agreement with noisy)")

	b.must(0, "calibrate", "runs/noisy")
	for code, args := range map[int][]string{exitData: {"eval", "runs/copy"}, exitCheckpoint: {"resume", "runs/copy", "--epochs", "3"}} {
		b.contains("a calibrated teacher", b.must(code, args...).stderr, "has changed since the run was trained", "(class: temperature ", "runs/noisy` with --remove removes that")
	}
	b.must(0, "calibrate", "runs/noisy", "--remove")
	b.must(0, "eval", "runs/copy")
}
