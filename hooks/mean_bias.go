package hooks

import (
	"fmt"

	"tessera/config/part"
	"tessera/data"
)

// MeanBias sets the bias of a linear decoder to the mean of the training samples before the first step of a new run, so that codes
// explain differences from the mean only. If the encoder begins with a dense layer with a bias, that bias b becomes b - mean W: the
// units read the samples without their mean. Biases from another run keep their values. Source: Bricken et al., Towards
// monosemanticity, 2023, which begin with the geometric median.
type MeanBias struct{}

func init() {
	Registry.Register("mean_bias", "begins with the mean of the training samples as the decoder's bias", func() Hook { return &MeanBias{} })
}

func (*MeanBias) Stage() Stage             { return Prepare + 1 }
func (*MeanBias) Replicated() (state bool) { return false }

func (h *MeanBias) Suits(m Declared) error {
	if lastBias(m.Parameters("decoder.*.bias"), m.Pixels) == nil {
		return part.KeyError{Key: "decoder", Problem: "it has no bias for every value of a sample"}
	}
	if m.Target != data.ImagesColumn {
		return part.KeyError{Key: "decoder", Problem: fmt.Sprintf("its output is compared with %q, which does not have the mean of the samples", m.Target)}
	}
	return nil
}

// lastBias returns the last parameter with one value for each pixel.
func lastBias(list []*Parameter, pixels int) (last *Parameter) {
	for _, p := range list {
		if len(p.Shape) == 1 && p.Shape[0] == pixels && !p.Started {
			last = p
		}
	}
	return last
}

func (h *MeanBias) Attach(t Training) (*Active, error) {
	return &Active{Initialise: func() error {
		images := t.Images()
		sums := make([]float64, images.Pixels())
		images.EachRow(func(columns []int32, values []float32) {
			for j, v := range values {
				if columns != nil {
					j = int(columns[j])
				}
				if v == v {
					sums[j] += float64(v)
				}
			}
		})
		bias := lastBias(t.Parameters("decoder.*.bias"), len(sums))
		if bias == nil || bias.Frozen {
			return nil
		}
		for j, sum := range sums {
			bias.Data[j] = float32(sum / float64(images.Len()))
		}
		weights, biases := t.Parameters("encoder.0.weight"), t.Parameters("encoder.0.bias")
		if len(weights) == 0 || len(biases) == 0 || biases[0].Frozen || biases[0].Started || len(weights[0].Data) != len(sums)*len(biases[0].Data) {
			return nil
		}
		units := len(biases[0].Data)
		for u := range units {
			projected := 0.0
			for j := range sums {
				projected += float64(bias.Data[j]) * float64(weights[0].Data[j*units+u])
			}
			biases[0].Data[u] -= float32(projected)
		}
		return nil
	}}, nil
}
