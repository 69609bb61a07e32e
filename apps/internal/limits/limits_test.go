package limits

import (
	"context"
	"errors"
	"testing"

	"tessera"
	"tessera/graph"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// The numbers themselves depend on the machine and on what else it does.
func TestEverythingIsMeasured(t *testing.T) {
	ctx, pair := t.Context(), team.New(2)
	defer pair.Close()
	spec, err := tessera.Shipped().Model("shallow-nonneg-kl")
	fatal.If(t, err)
	model, err := graph.New(spec, []int{1, 28, 28})
	fatal.If(t, err)
	stopped, stop := context.WithCancel(ctx)
	stop()
	for name, measure := range map[string]func(context.Context) (float64, error){
		"peak":    func(ctx context.Context) (float64, error) { return Peak(ctx, pair, 0) },
		"product": func(ctx context.Context) (float64, error) { return Product(ctx, pair, 65, 33, 17, 0) },
		"triad":   func(ctx context.Context) (float64, error) { return Triad(ctx, pair, 10_000, 0) },
		"step": func(ctx context.Context) (float64, error) {
			seconds, flops, err := Step(ctx, pair, model, 0)
			if err == nil && !(seconds > 0) {
				err = errors.New("no time")
			}
			return flops, err
		},
	} {
		if got, err := measure(ctx); err != nil || !(got >= 0) || got == 0 && name != "peak" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		expect.Is(t, expect.Err(measure(stopped)), context.Canceled, name, "cancelled")
	}
}
