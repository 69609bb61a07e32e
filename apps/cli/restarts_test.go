//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
)

// The best of several seeds is kept, also if the command is killed in between: the bytes of the training with that seed.
func TestRestartsKeepTheBestSeed(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", stacked+"\n[model.axes]\nkind = \"pca\"\ncomponents = 2\ndataset = \"bars\"\n")
	losses := map[string]float64{}
	for _, seed := range []string{"3", "4", "5"} {
		b.must(0, "train", "first", "--seed", seed, "--out", "alone-"+seed)
		images := 0.0 // over the samples of both splits, which are the same for every seed
		for _, split := range []string{"train", "validation"} {
			measured := b.must(0, "eval", "alone-"+seed, "--split", split, "--metrics", "loss", "--json").stdout
			var of struct{ Loss, Images float64 }
			if err := json.Unmarshal([]byte(measured), &of); err != nil || of.Loss == 0 {
				t.Fatalf("%v in %s", err, measured)
			}
			losses[seed], images = losses[seed]+of.Loss*of.Images, images+of.Images
		}
		losses[seed] /= images
	}
	best := "3"
	for seed, loss := range losses {
		if loss < losses[best] {
			best = seed
		}
	}
	command := []string{"train", "first", "--restarts", "3", "--seed", "3"}
	b.killWhen(func() bool { return b.measured("runs/first.restarts/seed-4") >= 5 }, 0, command...)
	b.contains("the table", b.must(0, command...).stdout, "kept", "best of 3 seeds: "+best)
	for _, file := range []string{"model.safetensors", "state.safetensors", "config.toml"} {
		expect.Equal(t, b.read("runs/first/"+file), b.read("alone-"+best+"/"+file), file, "differs from that of the seed alone")
	}
	var kept train.Restarts
	fatal.If(t, json.Unmarshal([]byte(b.read("runs/first/restarts.json")), &kept))
	for _, s := range kept.Seeds {
		expect.Near(t, *s.Loss, losses[strconv.FormatUint(s.Seed, 10)], 1e-9, "the objective of seed", s.Seed)
	}
	expect.AnyError(t, expect.Err(os.Stat(b.path("runs/first.restarts"))), "the other runs were not removed")
	b.contains("a finished run", b.must(0, command...).stderr, "runs/first is finished")
	b.contains("another number of seeds", b.must(2, "train", "first", "--restarts", "2", "--seed", "3").stderr, "runs/first")
	b.contains("other settings", b.must(2, append(command, "--set", "train.batch=16")...).stderr, "runs/first", "train.batch")
	b.must(0, "report", "runs/first", "-o", "page.html")
	b.contains("the page", b.read("page.html"), "best of 3 seeds")
	b.write("runs/first/restarts.json", strings.Replace(b.read("runs/first/restarts.json"), `"seed":4`, `"seed":7`, 1))
	b.must(0, "eval", "runs/first")
	b.contains("a method", b.must(2, "train", "axes", "--restarts", "2").stderr, "--restarts: axes is a pca")
}
