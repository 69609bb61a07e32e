package parts

import (
	"testing"

	"tessera/augment"
	"tessera/laws"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

func TestThePartsObeyTheLaws(t *testing.T) {
	t.Run("centre", func(t *testing.T) { laws.Check(t, laws.Layer, func() layers.Layer { return &Centre{} }) })
	t.Run("twice", func(t *testing.T) {
		laws.Check(t, laws.Layer, func() layers.Layer { return &Twice{Layers: []layers.Layer{&layers.PRelu{Slope: 0.25}}} })
	})
	t.Run("pair_spread", func(t *testing.T) {
		laws.Check(t, laws.Loss, func() losses.Loss { return &PairSpread{Epsilon: 1e-12} })
	})
	t.Run("darken", func(t *testing.T) {
		laws.Check(t, laws.Augmentation, func() augment.Augmentation { return &Darken{By: 0.5} })
	})
	t.Run("signs", func(t *testing.T) { laws.Check(t, laws.Init, func() layers.Init { return &Signs{Scale: 1} }) })
	t.Run("mean_code", func(t *testing.T) { laws.Check(t, laws.Metric, func() metrics.Metric { return meanCode{} }) })
}
