package engine

import (
	"fmt"
	"strings"

	"tessera/internal/volume"
)

// chainName lists the functions of a chain, in order.
func chainName(g *group) string {
	var names []string
	for _, v := range g.members {
		names = append(names, v.Op.String())
	}
	return strings.Join(names, " ")
}

// String prints the plan: its phases and, for every step, its functions, the shapes that it writes, its bytes and FLOPs.
func (p *Plan[T]) String() string {
	var b strings.Builder
	var steps int
	var flops float64
	for i, ph := range p.phases {
		fmt.Fprintf(&b, "phase %d\n", i+1)
		for _, st := range ph.serial {
			p.printStep(&b, st, "serial")
		}
		for _, st := range ph.shared {
			p.printStep(&b, st, st.shared())
		}
		for _, list := range [][]*step{ph.serial, ph.shared} {
			for _, st := range list {
				steps++
				flops += st.flops
			}
		}
	}
	fmt.Fprintf(&b, "%d steps in %d phases, %s, %s of buffers\n", steps, len(p.phases), flopsText(flops), bytesText(p.arena*p.width()))
	return b.String()
}

// shared describes the units that threads share: rows or columns of the result or, for a partial product, columns of A.
func (s *step) shared() string {
	if s.columns {
		return fmt.Sprintf("%d columns", s.units)
	}
	return fmt.Sprintf("%d rows", s.units)
}

func (p *Plan[T]) printStep(b *strings.Builder, st *step, how string) {
	var out []string
	elements := 0
	for _, w := range st.writes {
		out = append(out, fmt.Sprint(w.value.Shape))
		elements += volume.Of(w.value.Shape)
	}
	for _, r := range st.reads {
		elements += volume.Of(r.value.Shape)
	}
	fmt.Fprintf(b, "  %-12s %9s %9s  %s → %s\n", how, flopsText(st.flops), bytesText(elements*p.width()), st.name, strings.Join(out, " "))
}

// width is the bytes of one element.
func (p *Plan[T]) width() int {
	var zero T
	if _, ok := any(zero).(float32); ok {
		return 4
	}
	return 8
}

func flopsText(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f GFLOP", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2f MFLOP", n/1e6)
	}
	return fmt.Sprintf("%.0f FLOP", n)
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
