package hooks

import (
	"math"

	"tessera/config/part"
)

// Transpose sets the weight of the encoder's first layer to the transpose of the decoder's, whose atoms get length 1, before the first
// step of a new run, so that every unit first answers to its own atom. A wide dictionary that begins with independent directions
// leaves more units dead. Weights from another run keep their values. Source: Gao et al., Scaling and evaluating sparse autoencoders,
// 2024.
type Transpose struct{}

func init() {
	Registry.Register("transpose", "begins with the transpose of the decoder's weight in the encoder", func() Hook { return &Transpose{} })
}

func (*Transpose) Stage() Stage             { return Prepare } // before mean_bias, which reads the encoder's weight
func (*Transpose) Replicated() (state bool) { return false }

func (h *Transpose) Suits(m Declared) error {
	if encoder, decoder := layerPair(m.Parameters); encoder == nil || decoder == nil || encoder.Shape[0] != decoder.Shape[1] || encoder.Shape[1] != decoder.Shape[0] {
		return part.KeyError{Key: "decoder", Problem: "encoder.0.weight and decoder.0.weight are not of transposed shapes, as those of two dense layers are"}
	}
	return nil
}

// layerPair returns the weight matrices of the first layers of encoder and decoder, nil for those that are not there.
func layerPair(parameters func(glob string) []*Parameter) (encoder, decoder *Parameter) {
	matrix := func(name string) *Parameter {
		if list := parameters(name); len(list) == 1 && len(list[0].Shape) == 2 {
			return list[0]
		}
		return nil
	}
	return matrix("encoder.0.weight"), matrix("decoder.0.weight")
}

func (h *Transpose) Attach(t Training) (*Active, error) {
	return &Active{Initialise: func() error {
		encoder, decoder := layerPair(t.Parameters)
		if encoder.Frozen || encoder.Started {
			return nil
		}
		units, values := decoder.Shape[0], decoder.Shape[1]
		for u := range units {
			atom, square := decoder.Data[u*values:(u+1)*values], 0.0
			for _, v := range atom {
				square += float64(v) * float64(v)
			}
			scale := float32(1)
			if square > 0 {
				scale = float32(1 / math.Sqrt(square))
			}
			for j, v := range atom {
				encoder.Data[j*units+u] = v * scale
				if !decoder.Frozen && !decoder.Started {
					atom[j] = v * scale
				}
			}
		}
		return nil
	}}, nil
}
