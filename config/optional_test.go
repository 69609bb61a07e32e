package config

import (
	"slices"
	"strings"
	"testing"
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
			if !slices.Equal(got.Terms(), c.want) {
				t.Errorf("shape %v: got the terms %v, want %v", c.shape, got.Terms(), c.want)
			}
			if err := got.Verify(); err != nil {
				t.Error(err)
			}
			if _, err := got.Layout(c.shape); err != nil {
				t.Error(err)
			}
		}
	}
	if got := model(t, f, "large").Resolved([]int{8, 8}).Terms(); !slices.Equal(got, []string{"max_approximation"}) {
		t.Errorf("a radius that is too large leaves the term out: %v", got)
	}
	if _, err := f.Model("plain"); err == nil || !strings.Contains(err.Error(), "optional") {
		t.Errorf("a term that is always defined is optional: %v", err)
	}
}
