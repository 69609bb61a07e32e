// Command gomlx times training steps of the shallow auto-encoder (784-100-784, sigmoid, mse + KL, Adam, batches of 128) on GoMLX's pure Go back
// end. It is a separate module, so that nothing else depends on GoMLX. The images are random: its time does not depend on their values.
package main

import (
	"flag"
	"fmt"
	"log"
	"math/rand"
	"slices"
	"syscall"
	"time"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/gomlx/gomlx/pkg/ml/context"
	"github.com/gomlx/gomlx/pkg/ml/layers"
	"github.com/gomlx/gomlx/pkg/ml/train/optimizers"
)

const batch, pixels, units, target, weight = 128, 784, 100, 0.05, 0.001

func objective(ctx *context.Context, x *graph.Node) *graph.Node {
	code := graph.Sigmoid(layers.Dense(ctx.In("encoder"), x, true, units))
	output := graph.Sigmoid(layers.Dense(ctx.In("decoder"), code, true, pixels))
	d, mean := graph.Sub(output, x), graph.ReduceMean(code, 0)
	kl := graph.Add(graph.MulScalar(graph.Log(graph.DivScalar(mean, target)), -target),
		graph.MulScalar(graph.Log(graph.DivScalar(graph.OneMinus(mean), 1-target)), -(1-target)))
	return graph.Add(graph.ReduceAllMean(graph.Mul(d, d)), graph.MulScalar(graph.ReduceAllSum(kl), weight))
}

func main() {
	log.SetFlags(0)
	steps := flag.Int("steps", 100, "timed steps")
	flag.Parse()
	backend, err := backends.NewWithConfig("go")
	if err != nil {
		log.Fatal(err)
	}
	ctx, rule := context.New(), optimizers.Adam().LearningRate(0.001).Done()
	step, err := context.NewExec(backend, ctx, func(ctx *context.Context, x *graph.Node) *graph.Node {
		ctx.SetTraining(x.Graph(), true)
		loss := objective(ctx, x)
		rule.UpdateGraph(ctx, x.Graph(), loss)
		return loss
	})
	if err != nil {
		log.Fatal(err)
	}
	images := make([]float32, batch*pixels)
	for i := range images {
		images[i] = rand.Float32()
	}
	x := tensors.FromFlatDataAndDimensions(images, batch, pixels)
	var clock, processor []float64
	for i := range 10 + *steps { // the first ones compile
		began, used := time.Now(), processorTime()
		if _, ok := step.MustExec(x)[0].Value().(float32); !ok {
			log.Fatal("the loss is no float32")
		}
		if i >= 10 {
			clock, processor = append(clock, 1e3*time.Since(began).Seconds()), append(processor, 1e3*(processorTime()-used).Seconds())
		}
	}
	slices.Sort(clock)
	slices.Sort(processor)
	fmt.Println(clock[len(clock)/2], "ms/step", processor[len(processor)/2], "cpu-ms/step")
}

// processorTime returns the CPU time of this process.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		log.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
