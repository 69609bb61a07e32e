package train

import (
	"strings"
	"sync/atomic"
	"testing"

	"tessera/data"
	"tessera/graph/ops"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"

	"gorgonia.org/gorgonia"
)

// halves is a user-defined first layer whose hook computes x/2 once for every image.
type halves struct{}

func (halves) OutputShape(in []int) ([]int, error) { return in, nil }
func (halves) Parameters([]int) []layers.Parameter { return nil }
func (halves) Preparation() any                    { return halves{} }
func (halves) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Scale(x, 0.5), c.Err()
}
func (halves) Rest(_ layers.Scope, prepared *gorgonia.Node) (*gorgonia.Node, error) {
	return prepared, nil
}

// halved is the hook of [halves].
type halved struct {
	Off bool `toml:"off" doc:"prepares nothing"`
}

var preparedImages atomic.Int64

func (*halved) Prepares(preparation any) bool { _, ok := preparation.(halves); return ok }

func (h *halved) Attach(hooks.Training) (*hooks.Active, error) {
	if h.Off {
		return nil, nil
	}
	return &hooks.Active{Prepare: func(images *data.Images) (hooks.Prepared, error) {
		preparedImages.Add(int64(images.Len()))
		all := images.Float32()
		for i := range all {
			all[i] /= 2
		}
		return data.NewFloats(images.Shape, all, nil)
	}}, nil
}

func init() {
	layers.Registry.Register("halves", "x/2", func() layers.Layer { return &halves{} })
	hooks.Registry.Register("halved", "halves every image once", func() hooks.Hook { return &halved{} })
}

func TestAUserDefinedHookPreparesImages(t *testing.T) {
	text := strings.Replace(everything, "[[model.everything.encoder]]", "[[model.everything.encoder]]\nkind = \"halves\"\n[[model.everything.encoder]]", 1)
	m := model(t, text, "train.epochs=2")
	with := trained(t, m, Options{})
	s, splits, err := newSession(t.Context(), m, Options{}, nil)
	fatal.If(t, err)
	defer s.close()
	expect.Equal(t, preparedImages.Load(), int64(splits.Fit.Len()+splits.Validation.Len()), "images were prepared")
	sameNumbers(t, with.Run, trained(t, model(t, text, "train.epochs=2", "hook.halved.off=true"), Options{}).Run)
}

// sameNumbers compares the numbers of two runs with different declarations.
func sameNumbers(t *testing.T, a, b string) {
	t.Helper()
	x, y := lines(t, a), lines(t, b)
	for i := range x {
		for _, key := range []string{"loss", "val_mse", "code_hoyer"} {
			expect.Equal(t, x[i][key], y[i][key], "epoch", i+1, key)
		}
	}
}
