package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/data/morph"
)

// PADO turns images into the channels of their positive additive decomposition by openings. OpenRec_l is the reconstruction,
// under x, of its opening by the disk of radius `radius` + (l-1) `step`; level 0 is x:
//
//	R_l = OpenRec_(l-1) - OpenRec_l >= 0    for l = 1..L
//	S   = OpenRec_L
//
// Images of c channels become images of c (L+1), or c (L+2) with the original, channels, each rescaled: y = (x - low) gain.
// Parameters: low and gain, of shape (channels), set by the hook decomposition.
type PADO struct{ Decomposition }

func init() {
	Registry.Register("pado", "images as the channels of a positive decomposition by openings", func() Layer { return &PADO{studied} })
}

func (p *PADO) Decompose() morph.Decomposition                          { return p.of(morph.PADO) }
func (p *PADO) Preparation() any                                        { return p.Decompose() }
func (p *PADO) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return decomposed(p, s, x) }
