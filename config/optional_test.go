package config

import (
	"testing"

	"tessera/internal/expect"
)

// An optional term is left out for samples for whose shape it is not defined, and only for these.
func TestOptionalTermsAreLeftOutWhereTheyAreNotDefined(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 3 }]
decoder = [{ kind = "dense" }]
loss    = [
  { kind = "max_approximation", optional = true },
  { kind = "mse" },
  { kind = "max_approximation", optional = true, operator = "opening" },
  { kind = "ssim", optional = true },
]
[model.child]
extends = "m"
[model.large]
extends = "m"
loss    = [{ kind = "max_approximation", optional = true, radius = 9 }]
[model.plain]
extends = "m"
loss    = [{ kind = "mse", optional = true }]
`
	f := load(t, text)
	m := model(t, f, "child")
	for _, c := range []struct {
		shape []int
		want  []string
	}{
		{[]int{16, 16}, []string{"max_approximation", "mse", "max_approximation.2", "ssim"}},
		{[]int{12}, []string{"mse"}},
	} {
		for _, got := range []*Model{m.Resolved(c.shape), m.For(c.shape, nil), m.For(c.shape, nil).For(c.shape, nil)} {
			expect.Slice(t, got.Terms(), c.want, "shape", c.shape)
			expect.NoError(t, got.Verify())
			expect.NoError(t, expect.Err(got.Layout(c.shape)))
		}
	}
	expect.Slice(t, model(t, f, "large").Resolved([]int{8, 8}).Terms(), []string{"max_approximation"}, "a radius that is too large leaves the term out")
	expect.Error(t, expect.Err(f.Model("plain")), "optional", "a term that is always defined is optional")
}
