//go:build unix

package cli

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// Trainings on shards that do not fit into memory, killed at random moments, resume to the bytes of an uninterrupted one.
func TestKilledTrainingsOnShardsResumeToTheSameBytes(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]string{
		"network": `
encoder = [{ kind = "dense", units = 24, activation = "relu" }]
decoder = [{ kind = "dense" }]
train.epochs = 120
train.batch = 64
train.checkpoint_seconds = 0.0
[[model.m.loss]]
kind = "mse"`,
		"kmeans": `
kind = "kmeans"
components = 8
batch = 64
iterations = 300
train.checkpoint_seconds = 0.0`,
	} {
		t.Run(name, func(t *testing.T) {
			b, r := newBench(t), rand.New(rand.NewPCG(3, 4))
			for shard, n := range []int{1300, 1, 700} {
				values := make([]byte, 0, 4*n*16)
				for range n * 16 {
					bits := math.Float32bits(float32(r.NormFloat64()))
					values = append(values, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
				}
				b.write(fmt.Sprintf("acts-%d.npy", shard), npyText("<f4", fmt.Sprintf("(%d, 16)", n), values))
			}
			b.write("models.toml", "[model.m]\ndataset = { file = \"acts-*.npy\", memory = \"116KB\" }"+model)
			if out := b.must(0, "summary", "m"); name == "network" && !strings.Contains(out.stdout, "do not fit into memory") {
				t.Fatalf("the samples are in memory: %s", out.stdout)
			}
			b.killed(max(10, *kills), "train", "m")
		})
	}
}
