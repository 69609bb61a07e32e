package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/sweep"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/sae"
	"tessera/internal/volume"
	"tessera/metrics"
)

// startedFrom declares a sweep on images from a file that starts from the parameters of another run and selects a
// setting.
const startedFrom = `
[model.small]
dataset = { name = "npy", images = %q, validation = 0.2 }
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
loss = [{ kind = "mse" }]
train = { epochs = 2, batch = 32 }
%s
[sweep.s]
model = "small"
seeds = [1, 2]
select = "mse"
set.train.batch = [16, 32]
`

func TestFilesAndParametersTravelToAWorkerWithoutThem(t *testing.T) {
	dir := t.TempDir()
	images, first := filepath.Join(dir, "images.npy"), filepath.Join(dir, "first")
	var text bytes.Buffer
	fatal.If(t, data.WriteNPY(&text, []int{40, 3, 3}, values(40*9)))
	fatal.If(t, os.WriteFile(images, text.Bytes(), 0o666))
	other := sweepOf(t, fmt.Sprintf(startedFrom, images, ""), filepath.Join(dir, "other"), nil)
	one := other.Standalone(other.Trials[0])
	one.Out = first
	threads := team.New(1)
	defer threads.Close()
	fatal.If(t, expect.Err(one.Do(context.Background(), threads)))
	tensor := func(name string, shape ...int) checkpoint.Tensor {
		return checkpoint.Tensor{Name: name, Shape: shape, Data: values(volume.Of(shape))}
	}
	of := func(tensors ...checkpoint.Tensor) []byte {
		b, err := checkpoint.Encode(&checkpoint.File{Tensors: tensors}, nil)
		fatal.If(t, err)
		return b
	}
	file, dictionary := filepath.Join(dir, "file.safetensors"), filepath.Join(dir, "dictionary")
	fatal.If(t, os.WriteFile(file, of(tensor("fc.weight", 4, 9), tensor("fc.bias", 4)), 0o666))
	fatal.If(t, os.Mkdir(dictionary, 0o777))
	fatal.If(t, os.WriteFile(filepath.Join(dictionary, sae.ConfigFile), []byte("{}"), 0o666))
	fatal.If(t, os.WriteFile(filepath.Join(dictionary, sae.LensFile), of(tensor("W_enc", 9, 4), tensor("b_enc", 4), tensor("W_dec", 4, 9), tensor("b_dec", 9)), 0o666))
	for name, start := range map[string]string{
		"run":        fmt.Sprintf("start = { run = %q }\n", first),
		"file":       fmt.Sprintf("start = { file = %q, on = \"encoder.*\", names = { \"encoder.0\" = \"fc\" } }\n", file),
		"dictionary": fmt.Sprintf("start = { run = %q }\n", dictionary),
	} {
		t.Run(name, func(t *testing.T) {
			fatal.If(t, os.WriteFile(images, text.Bytes(), 0o666))
			started := fmt.Sprintf(startedFrom, images, start)
			want := alone(t, started)
			ctx, stop := context.WithCancel(context.Background())
			b := newBench(t, started, filepath.Join(dir, "s-"+name), Options{})
			if err := os.Remove(images); err != nil { // the coordinator has already read the file
				t.Fatal(err)
			}
			ended := b.run(ctx)
			cache := filepath.Join(dir, "cache-"+name)
			b.worker(ctx, WorkerOptions{Cache: cache, Jobs: 2})
			fatal.If(t, <-ended)
			stop()
			b.workers.Wait()
			same(t, files(t, b.out), want)
			if fetched, err := filepath.Glob(filepath.Join(cache, "data", "*")); err != nil || len(fetched) == 0 {
				t.Errorf("no data set is in the cache of the worker: %v, %v", fetched, err)
			}
		})
	}
}

// A worker never measures less than the first machine does: what reads the classifier behind the samples, which does not travel, is refused.
func TestSamplesInsideOfAClassifierTravelForOtherMetrics(t *testing.T) {
	plain, err := data.NewFloats([]int{2}, values(4), nil)
	fatal.If(t, err)
	inside := *plain
	inside.Downstream = func([]int, []float32, func(int, []float32) error) error { return nil }
	other, err := metrics.Select("mse")
	fatal.If(t, err)
	const refused = "recovered_loss needs the run whose values are the samples"
	expect.Error(t, travels(&data.Set{Train: &inside}, metrics.Default()), refused)
	expect.Error(t, travels(&data.Set{Train: plain, Test: &inside}, metrics.Default()), refused)
	expect.NoError(t, travels(&data.Set{Train: &inside, Test: &inside}, other))
	expect.NoError(t, travels(&data.Set{Train: plain}, metrics.Default()))
}

// values returns n distinct values from 0 to 1.
func values(n int) []float32 {
	all := lists.Of(n, func(i int) float32 { return float32(i*7919%n) / float32(n) })
	return all
}

func sweepOf(t *testing.T, text, out string, e sweep.Executor) *sweep.Sweep {
	t.Helper()
	s, err := sweep.New(context.Background(), spec(t, text), sweep.Options{Out: out, Executor: e})
	fatal.If(t, err)
	return s
}

func TestASweepOnAServerThatIsThereLeavesNothingInIt(t *testing.T) {
	t.Parallel()
	want := alone(t, declared)
	access := Access{Token: "a token"}
	s, err := listen("127.0.0.1:0", t.TempDir(), access, "inside", func(string) {})
	fatal.If(t, err)
	defer s.Shutdown()
	url := "nats://" + s.Addr().String()
	out := filepath.Join(t.TempDir(), "s")
	c := NewCoordinator(Options{URL: url, Access: access, Lease: 2 * time.Second})
	ctx, stop := context.WithCancel(context.Background())
	b := &bench{TB: t}
	b.worker(ctx, WorkerOptions{URL: url, Access: access})
	_, _ = sweepOf(t, declared, out, c).Run(ctx) // the error is ignored, because some trials diverge
	stop()
	b.workers.Wait()
	same(t, files(t, out), want)
	conn, err := nats.Connect(url, nats.Token(access.Token))
	fatal.If(t, err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	fatal.If(t, err)
	for name := range js.StreamNames(context.Background()).Name() {
		t.Errorf("stream %s was left", name)
	}
}
