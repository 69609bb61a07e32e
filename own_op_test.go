package tessera_test

import (
	"fmt"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera"
	"tessera/layers"
	"tessera/ops"
)

// pooling is a user's layer with an op of Gorgonia that keeps a state: [gorgonia.MaxPool2D] keeps where the largest values are.
type pooling struct{}

func init() {
	layers.Registry.Register("zz_pooling", "largest values of 2 x 2 pixels", func() layers.Layer { return pooling{} })
}

func (pooling) OutputShape(in []int) ([]int, error) {
	if len(in) != 2 || in[0]%2+in[1]%2 > 0 {
		return nil, fmt.Errorf("got images of shape %v, want two even sizes", in)
	}
	return []int{in[0] / 2, in[1] / 2}, nil
}

func (pooling) Parameters([]int) []layers.Parameter { return nil }

func (pooling) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	n, h, w := x.Shape()[0], x.Shape()[1], x.Shape()[2]
	var c ops.Chain
	y := c.Do("images", func() (*gorgonia.Node, error) { return ops.Reshape(x, n, 1, h, w) })
	y = c.Do("pooling", func() (*gorgonia.Node, error) {
		return gorgonia.MaxPool2D(y, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2})
	})
	y = c.Do("pooled", func() (*gorgonia.Node, error) { return ops.Reshape(y, n, h/2, w/2) })
	return y, c.Err()
}

const poolingText = `dataset = { name = "bars", count = 20 }
encoder = [{ kind = "zz_pooling" }, { kind = "dense", units = 10, activation = "sigmoid" }]`

// Every program of an encoder has its own graph, and with it its own ops: their state is that of one goroutine.
func TestGoroutinesDoNotShareTheOpsOfAUsersLayer(t *testing.T) {
	for _, backend := range tessera.Backends() {
		run := untrained(t, poolingText, tessera.Options{Backend: backend})
		e := encoder(t, run, tessera.EncoderOptions{Sizes: []int{1, 8}, Workers: 8})
		in, out, n := pixels(run), run.Units(), 40
		images := randomImages(run, n, 3)
		want, err := e.Encode(t.Context(), nil, images)
		if err != nil {
			t.Fatal(err)
		}
		if serial, err := run.Encode(images); err != nil || !sameBits(serial, want) {
			t.Errorf("%s: other codes than of the run, error %v", backend, err)
		}
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				for k := range 20 {
					from := (5*g + k) % n
					to := min(from+1+(g+k)%8, n)
					got, err := e.Encode(t.Context(), nil, images[from*in:to*in])
					if err != nil || !sameBits(got, want[from*out:to*out]) {
						t.Errorf("%s: images %d to %d: other codes than serially, error %v", backend, from, to, err)
					}
				}
			})
		}
		wait.Wait()
	}
}
