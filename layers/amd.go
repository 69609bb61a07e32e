package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/data/morph"
)

// AMD turns images into the channels of their additive morphological decomposition. OpenRec_l and CloseRec_l are the
// reconstructions, under and above x, of its opening and its closing by the disk of radius `radius` + (l-1) `step`; level 0
// is x:
//
//	R_l = ((OpenRec_(l-1) - OpenRec_l) - (CloseRec_l - CloseRec_(l-1))) / 2    for l = 1..L
//	S   = (CloseRec_L + OpenRec_L) / 2
//
// Images of c channels become images of c (L+1), or c (L+2) with the original, channels, each rescaled: y = (x - low) gain.
// Parameters: low and gain, of shape (channels), set by the hook decomposition.
type AMD struct{ Decomposition }

func init() {
	Registry.Register("amd", "images as the channels of an additive morphological decomposition", func() Layer { return &AMD{studied} })
}

func (a *AMD) Decompose() morph.Decomposition                          { return a.of(morph.AMD) }
func (a *AMD) Preparation() any                                        { return a.Decompose() }
func (a *AMD) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return decomposed(a, s, x) }
