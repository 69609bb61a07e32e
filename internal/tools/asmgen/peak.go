package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/operand"
)

// peakSums is the number of sums of the loop that measures the peak: enough that none waits for itself.
func peakSums(i isa) int {
	if i == avx2 {
		return 12 // of 16 registers
	}
	return 24
}

// emitPeak writes a loop of nothing but fused multiply-adds in registers.
func emitPeak(a *x86) {
	name, sums := "peak_"+a.isa.name, peakSums(a.isa)
	a.function(name, "func(rounds int)")
	rounds := a.parameter("rounds")
	var all []vec
	for range sums + 1 {
		x := a.vector()
		a.VXORPS(x, x, x)
		all = append(all, x)
	}
	again := a.label("loop")
	a.Label(again)
	for _, sum := range all[1:] {
		a.VFMADD231PS(all[0], all[0], sum)
	}
	a.DECQ(rounds)
	a.JNE(operand.LabelRef(again))
	a.done()
}

func neonPeak(n *neon) {
	name, sums := "peak_neon", peakSums(n.isa)
	n.function(name, "func(rounds int)")
	n.parameters("rounds")
	all := n.several(sums + 1)
	for _, x := range all {
		n.emit(opcode{text: "movi v%d.2d, #0", bits: 0x6f00e400, shifts: one}, out(x))
	}
	again := n.label("loop")
	n.Label(again)
	for _, sum := range all[1:] {
		n.emit(opFmla, changed(sum), in(all[0]), in(all[0]))
	}
	n.subtract(1, again, "NE")
	n.done()
}

// peakTable declares the loop for package kernel.
func peakTable(i isa) string {
	return fmt.Sprintf("\nvar peak%s = peak{peak_%s, 2 * %d * %d} // operations: sums, elements of a vector\n", strings.ToUpper(i.name), i.name, peakSums(i), i.bytes/4)
}
