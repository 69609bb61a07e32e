// Package engine compiles a program of package ir once into a static, fused plan and runs the plan.
//
// The passes, in order, one file each:
//
//	check     that the program is whole (ir.Module.Check), and a copy of it (module.go)
//	fold      constants, sizes, no-op reshapes and repeats
//	merge     common subexpressions
//	rewrite   algebraic rules
//	settle    memory for views that their consumer cannot read
//	divide    products with trained matrices into parts, so that threads keep theirs
//	fuse      element-wise values and the reductions of them into groups, each one pass over its elements
//	compile   groups into chains of instructions (chain_build), everything else into separate steps
//	schedule  steps into phases: inside a phase every thread works on its own rows or columns, between phases there is a barrier
//	bands     steps of a phase that a thread goes through a few rows at a time
//	place     liveness, and one arena of static buffers
//
// and plan and run are the result.
//
// Values on which no wanted value depends are never visited: dead code needs no pass.
package engine
