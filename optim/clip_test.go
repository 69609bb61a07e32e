package optim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/lists"
	"tessera/optim"
)

func gradients() [][]float32 {
	r := rand.New(rand.NewPCG(3, 4))
	var all [][]float32
	for _, n := range []int{1, 0, 3, 4095, 4096, 4097, 20001} {
		g := lists.Of(n, func(int) float32 { return float32(r.NormFloat64()) })
		all = append(all, g)
	}
	return all
}

func TestNormIsTheLengthOfAllGradientsTogether(t *testing.T) {
	all := gradients()
	sum := 0.0
	for _, g := range all {
		for _, v := range g {
			sum += float64(v) * float64(v)
		}
	}
	near(t, "norm", optim.Norm(all...), math.Sqrt(sum))
	near(t, "3 and 4", optim.Norm([]float32{3}, []float32{0, 4}), 5)
	near(t, "nothing", optim.Norm(), 0)
	near(t, "squares beyond float32", optim.Norm([]float32{0x3p100, 0x4p100}), 0x5p100)
}

func TestNormOfBlocksAddedInOrderHasTheSameBits(t *testing.T) {
	all := gradients()
	sum := 0.0
	for _, g := range all {
		for from := 0; from < len(g); from += optim.NormBlock {
			sum += optim.SquareSum(g[from:min(from+optim.NormBlock, len(g))])
		}
	}
	expect.Equal(t, optim.Norm(all...), math.Sqrt(sum), "norm")
}

func TestClippingBoundsTheNorm(t *testing.T) {
	all := gradients()
	norm := optim.Norm(all...)
	factor := optim.ClipFactor(norm, 0.5)
	for _, g := range all {
		for i := range g {
			g[i] *= float32(factor)
		}
	}
	if got := optim.Norm(all...); !(got <= 0.5 && got > 0.4999) {
		t.Errorf("norm %v after clipping to 0.5", got)
	}
}

// The expected factor is that of torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)).
func TestClipFactorIsPyTorchs(t *testing.T) {
	near(t, "above the limit", optim.ClipFactor(5, 1), 1/5.000001)
	near(t, "below the limit", optim.ClipFactor(0.9, 1), 1)
	near(t, "no gradient", optim.ClipFactor(0, 1), 1)
	near(t, "no limit", optim.ClipFactor(5, 0), 1)
	if got := optim.ClipFactor(math.NaN(), 1); !math.IsNaN(got) {
		t.Errorf("a NaN norm is clipped to %v", got)
	}
}
