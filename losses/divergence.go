package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Divergence is implemented by terms that are the divergence of the distribution of codes that a layer gives each image from a
// prior distribution, in nats per image.
type Divergence interface {
	Loss
	// Diverges marks such a term.
	Diverges()
}

// FreeBits is embedded by divergences that are sums over units.
type FreeBits struct {
	Free float64 `toml:"free_bits" want:">= 0" doc:"nats of each unit, as a mean over the batch, that cost nothing"`
}

func (FreeBits) On() string { return Code }
func (FreeBits) Diverges()  {}

// reads returns the inputs of a divergence that reads these published values.
func (f FreeBits) reads(published ...string) Reads {
	r := Reads{Published: published}
	if f.Free > 0 {
		r.Per = Means
	}
	return r
}

// divergence returns the term for the divergences of all units, (batch, units), times 1/factor.
func (f FreeBits) divergence(c *ops.Chain, units *gorgonia.Node, factor float64) *gorgonia.Node {
	if f.Free == 0 {
		if c.Err() != nil {
			return nil
		}
		return c.Scale(c.Sum(units), factor/float64(units.Shape()[0]))
	}
	above := c.Shift(c.Scale(c.Mean(units, 0), factor), -f.Free)
	return c.Sum(c.Shift(c.Ramp(above, 1, 0), f.Free))
}
