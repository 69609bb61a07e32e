package cli

import (
	"context"
	"fmt"
	"time"

	"tessera"
	"tessera/apps/internal/limits"
	"tessera/apps/show/doc"
	"tessera/graph"
	"tessera/internal/machine"
	"tessera/internal/numeral"
	"tessera/internal/parallel/team"
)

// limited are the models of which doctor --bench times a step: small and large dense ones, convolutions, attention.
var limited = []string{"shallow-nonneg-kl", "deep-dense", "asym-nonneg-kl", "vit-classifier"}

// limitBudget is how long each limit is measured. A test takes less.
var limitBudget = time.Second

// measureLimits returns a table of what the processor can do, and of what products and steps reach of it.
func measureLimits(ctx context.Context) (*doc.Table, error) {
	budget := limitBudget
	single, all := team.New(1), team.New(machine.Threads())
	defer single.Close()
	defer all.Close()
	threads := fmt.Sprintf("%d threads", all.Threads())
	t := &doc.Table{Key: "bench", Title: "limits, measured", Columns: []doc.Column{{Key: "what"}, {Key: "one", Title: "1 thread", Right: true},
		{Key: "all", Title: threads, Right: true}, {Key: "share", Title: "of the peak", Right: true}, {Key: "time", Title: "a step", Right: true}},
		Notes: []string{"The peak is a loop of nothing but fused multiply-adds of float32. A step is the forward and the backward pass on random samples, without the optimizer. Other programs make all of this slower."}}
	teams := []*team.Team{single, all}
	var peak float64 // of all threads
	row := func(name string, measure func(*team.Team) (float64, error)) error {
		cells := []any{name}
		var last float64
		for _, members := range teams {
			rate, err := measure(members)
			if err != nil {
				return err
			}
			cells, last = append(cells, perSecond(rate, "FLOP/s")), rate
		}
		if peak == 0 {
			peak = last
		}
		t.Row(append(cells, shareOf(last, peak))...)
		return nil
	}
	if err := row("multiply-adds", func(members *team.Team) (float64, error) { return limits.Peak(ctx, members, budget) }); err != nil {
		return nil, err
	}
	for _, s := range [][3]int{{1024, 1024, 1024}, {128, 1024, 784}} {
		name := fmt.Sprintf("product %d × %d × %d", s[0], s[1], s[2])
		if err := row(name, func(members *team.Team) (float64, error) {
			return limits.Product(ctx, members, s[0], s[1], s[2], budget)
		}); err != nil {
			return nil, err
		}
	}
	for _, name := range limited {
		spec, err := tessera.Shipped().Model(name)
		if err != nil {
			return nil, err
		}
		shape, _ := spec.Dataset.Source.Shape(nil)
		model, err := graph.New(spec, shape)
		if err != nil {
			return nil, err
		}
		seconds, flops, err := limits.Step(ctx, all, model, budget)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.Row("step of "+name, "", perSecond(flops/seconds, "FLOP/s"), shareOf(flops/seconds, peak), doc.Shown{Value: seconds, Text: numeral.Seconds(seconds)})
	}
	cells := []any{"memory (as STREAM's triad)"}
	for _, members := range teams {
		rate, err := limits.Triad(ctx, members, 1<<25, budget)
		if err != nil {
			return nil, err
		}
		cells = append(cells, perSecond(rate, "B/s"))
	}
	t.Row(cells...)
	return t, nil
}

// perSecond shows a rate in units of 10^9.
func perSecond(rate float64, unit string) any {
	if rate == 0 {
		return ""
	}
	return doc.Shown{Value: rate, Text: numeral.Fixed(rate/1e9, 1) + " G" + unit}
}

func shareOf(rate, peak float64) any {
	if peak == 0 {
		return ""
	}
	return doc.Shown{Value: rate / peak, Text: numeral.Fixed(100*rate/peak, 0) + " %"}
}
