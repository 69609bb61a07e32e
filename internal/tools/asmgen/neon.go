package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/gotypes"
)

// neon writes one file for arm64, in which vectors have 128 bits. Go's assembler lacks most instructions on vectors of floating-point
// numbers: these are written as words, with the text of the GNU assembler as a comment. A test assembles the comments.
type neon struct {
	isa
	file       string
	text, goes bytes.Buffer
	pool       []constant
	labels     int

	// The current function.
	name      string
	signature *gotypes.Signature
	code      []inst
	registers int
}

// gp is a general register. R16 has the address of the constants; R18 belongs to the system, and Go uses R27 and above.
type gp int

const poolBase gp = 16

// virtual is a vector register before allocation, or a constant. Constants stay in registers if there are enough.
type virtual struct {
	id       int
	constant *constant
}

func (*virtual) Asm() string { return "" }

// constant is sixteen bytes of memory.
type constant struct {
	lo, hi uint64
	at     int
	v      *virtual // in the current function
}

// opcode is an instruction: its text with a verb for each register, and its bits, to which the number of each register is added at
// the place of shifts. With native, Go's assembler knows it by that text.
type opcode struct {
	text   string
	bits   uint32
	shifts []uint
	native string
}

// operand of an instruction: a vector register that is read, written or both, or a general register.
type field struct {
	v           *virtual
	read, write bool
	number      gp
}

func in(x vec) field      { return field{v: register(x), read: true} }
func out(x vec) field     { return field{v: register(x), write: true} }
func changed(x vec) field { return field{v: register(x), read: true, write: true} }
func (r gp) field() field { return field{number: r} }

func register(x vec) *virtual {
	if m, ok := x.(lanesWhere); ok {
		return m.v
	}
	return x.(*virtual)
}

// inst is an instruction, or a pseudo-instruction that becomes one or none when registers are allocated.
type inst struct {
	kind   kind
	op     opcode
	fields []field
	label  string // that is here
	target string // of a branch
}

type kind uint8

const (
	plain kind = iota
	move       // fields: to, from
	pick       // fields: to, mask, where it holds, else
)

func (n *neon) emit(op opcode, fields ...field) {
	n.code = append(n.code, inst{op: op, fields: fields})
}

// raw writes an instruction of Go's assembler, with their text for the GNU assembler.
func (n *neon) raw(native, text string) { n.emit(opcode{native: native, text: text}) }

func (n *neon) fresh() vec { return n.virtual() }

func (n *neon) virtual() *virtual {
	n.registers++
	return &virtual{id: n.registers}
}

func (n *neon) label(stem string) string {
	n.labels++
	return fmt.Sprintf("%s%d", stem, n.labels)
}

func (n *neon) Label(name string) { n.code = append(n.code, inst{label: name}) }

// branch jumps to a label. condition is a Go mnemonic with its operands, text that of the GNU assembler.
func (n *neon) goTo(label, native, text string) {
	n.code = append(n.code, inst{op: opcode{native: native + " " + label, text: text + " " + label}, target: label})
}

func (n *neon) jump(label string) { n.goTo(label, "B", "b") }

func (n *neon) function(name, signature string) {
	s, err := gotypes.ParseSignature(signature)
	if err != nil {
		panic(err) // a signature of this program
	}
	n.name, n.signature, n.code, n.registers = name, s, nil, 0
	for i := range n.pool {
		n.pool[i].v = nil
	}
	fmt.Fprintf(&n.goes, "\n//go:noescape\nfunc %s%s\n", name, strings.TrimPrefix(signature, "func"))
}

// parameter loads a parameter, or the base or the length of a slice.
func (n *neon) parameter(c gotypes.Component, to gp) {
	at, err := c.Resolve()
	if err != nil {
		panic(err) // a parameter that the signature has
	}
	n.raw(fmt.Sprintf("MOVD %s+%d(FP), R%d", at.Addr.Symbol.Name, at.Addr.Disp, to), "")
}

func (n *neon) parameters(names ...string) {
	for i, name := range names {
		n.parameter(n.signature.Params().Lookup(name), gp(i))
	}
}

func (n *neon) scalar(name string) vec {
	at, err := n.signature.Params().Lookup(name).Resolve()
	if err != nil {
		panic(err) // a parameter that the signature has
	}
	x, all := n.fresh(), n.fresh()
	n.emit(opcode{native: fmt.Sprintf("FMOVS %s+%d(FP), F%%d", name, at.Addr.Disp)}, out(x))
	n.emit(opcode{text: "dup v%d.4s, v%d.s[0]", bits: 0x4e040400, shifts: two}, out(all), in(x))
	return all
}

// literal returns a constant of sixteen bytes.
func (n *neon) literal(lo, hi uint64) vec {
	at := slices.IndexFunc(n.pool, func(c constant) bool { return c.lo == lo && c.hi == hi })
	if at < 0 {
		at = len(n.pool)
		n.pool = append(n.pool, constant{lo: lo, hi: hi, at: 16 * at})
	}
	c := &n.pool[at]
	if c.v == nil {
		c.v = n.virtual()
		c.v.constant = &constant{at: c.at}
	}
	return c.v
}

func (n *neon) loadConstant(to *virtual, c *constant) inst {
	return inst{op: opcode{text: fmt.Sprintf("ldr q%%d, [x%d, #%d]", poolBase, c.at), bits: 0x3dc00000 | uint32(c.at/16)<<10 | uint32(poolBase)<<5, shifts: one}, fields: []field{out(to)}}
}

func (n *neon) done() {
	n.raw("RET", "")
	n.coalesce()
	constants := n.constants()
	for keep := len(constants); keep >= 0; keep-- {
		lines, ok := assign(n.prepared(constants[:keep], len(constants) > 0 || n.usesPool()))
		if !ok {
			continue
		}
		fmt.Fprintf(&n.text, "\n// func %s%s\nTEXT ·%[1]s(SB), NOSPLIT, $0-%[3]d\n", n.name, strings.TrimPrefix(n.signature.String(), "func"), n.signature.Bytes())
		n.text.WriteString(strings.Join(lines, ""))
		return
	}
	panic(n.name + " needs too many registers")
}

// coalesce removes the copies to a register that is read no more between the first instruction of the copied value and the copy:
// that value is computed in the register itself.
func (n *neon) coalesce() {
	for i := 0; i < len(n.code); i++ {
		c := n.code[i]
		if c.kind != move || c.fields[1].v.constant != nil {
			continue
		}
		to, from := c.fields[0].v, c.fields[1].v
		first := slices.IndexFunc(n.code, func(c inst) bool { return c.touches(from) })
		if first == i || slices.ContainsFunc(n.code[i+1:], func(c inst) bool { return c.touches(from) }) ||
			!slices.ContainsFunc(n.code[:first+1], func(c inst) bool { return c.touches(to) }) ||
			slices.ContainsFunc(n.code[first:i], func(c inst) bool { return c.label != "" || c.target != "" }) ||
			slices.ContainsFunc(n.code[first+1:i], func(c inst) bool { return c.touches(to) }) {
			continue
		}
		for j := first; j < i; j++ {
			for k := range n.code[j].fields {
				if n.code[j].fields[k].v == from {
					n.code[j].fields[k].v = to
				}
			}
		}
		n.code = slices.Delete(n.code, i, i+1)
		i--
		if c := n.code[first]; c.kind == move && c.fields[1].v == to {
			n.code = slices.Delete(n.code, first, first+1)
			i--
		}
	}
}

func (c inst) touches(v *virtual) bool {
	return slices.ContainsFunc(c.fields, func(f field) bool { return f.v == v })
}

// constants lists the constants that loops read, those with the most readers first. A copy of a constant is a load in any case.
func (n *neon) constants() (list []*virtual) {
	readers := map[*virtual]int{}
	for _, l := range loops(n.code) {
		for _, c := range n.code[l[0]:l[1]] {
			for _, f := range c.fields {
				if f.v != nil && f.v.constant != nil && c.kind != move {
					if readers[f.v]++; readers[f.v] == 1 {
						list = append(list, f.v)
					}
				}
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *virtual) int { return readers[y] - readers[x] })
	return list
}

func (n *neon) usesPool() bool {
	return slices.ContainsFunc(n.code, func(c inst) bool {
		return slices.ContainsFunc(c.fields, func(f field) bool { return f.v != nil && f.v.constant != nil }) || strings.Contains(c.op.text, fmt.Sprintf("[x%d", poolBase))
	})
}

// prepared returns the code of the function with its constants: those that are kept are loaded first, the others where they are read.
func (n *neon) prepared(kept []*virtual, pool bool) (code []inst) {
	if pool {
		code = append(code, inst{op: opcode{native: fmt.Sprintf("MOVD $%sConstants<>(SB), R%d", n.file, poolBase)}})
	}
	for _, v := range kept {
		code = append(code, n.loadConstant(v, v.constant))
	}
	for _, c := range n.code {
		fields := slices.Clone(c.fields)
		loaded := map[*virtual]*virtual{}
		for i, f := range fields {
			if f.v == nil || f.v.constant == nil || c.kind != move && slices.Contains(kept, f.v) {
				continue
			}
			if c.kind == move {
				c, fields = n.loadConstant(fields[0].v, f.v.constant), []field{fields[0]}
				break
			}
			if loaded[f.v] == nil {
				loaded[f.v] = n.virtual()
				code = append(code, n.loadConstant(loaded[f.v], f.v.constant))
			}
			fields[i].v = loaded[f.v]
		}
		c.fields = fields
		code = append(code, c)
	}
	return code
}

// loops returns the first and the last instruction of each loop.
func loops(code []inst) (list [][2]int) {
	at := map[string]int{}
	for i, c := range code {
		if c.label != "" {
			at[c.label] = i
		}
		if start, ok := at[c.target]; ok && c.target != "" {
			list = append(list, [2]int{start, i})
		}
	}
	return list
}

// assign gives the instructions registers in one pass from the first to the last, and returns their lines. It fails if there are too few.
func assign(code []inst) (lines []string, ok bool) {
	first, last := map[*virtual]int{}, map[*virtual]int{}
	for i, c := range code {
		for _, f := range c.fields {
			if f.v != nil {
				if _, ok := first[f.v]; !ok {
					first[f.v] = i
				}
				last[f.v] = i
			}
		}
	}
	for _, l := range loops(code) {
		for v := range last {
			if first[v] < l[0] && last[v] >= l[0] && last[v] < l[1] {
				last[v] = l[1] // the next iteration reads it, too
			}
		}
	}
	place := map[*virtual]int{}
	var taken [32]*virtual
	if slices.ContainsFunc(code, func(c inst) bool { return strings.HasPrefix(c.op.text, "tbl") }) {
		for r := tableFirst; r < len(taken); r++ {
			taken[r] = &virtual{}
			last[taken[r]] = len(code)
		}
	}
	for i, c := range code {
		for r, v := range taken {
			if v != nil && last[v] < i {
				taken[r] = nil
			}
		}
		ends := func(v *virtual) bool { return last[v] == i }
		need := func(f field) bool {
			if _, ok := place[f.v]; ok {
				return true
			}
			r := slices.Index(taken[:], nil)
			if r < 0 {
				return false
			}
			place[f.v], taken[r] = r, f.v
			return true
		}
		inherit := func(to, from *virtual) bool {
			if _, ok := place[to]; ok || !ends(from) {
				return false
			}
			place[to] = place[from]
			taken[place[to]] = to
			return true
		}
		switch {
		case c.label != "":
			lines = append(lines, c.label+":\n")
			continue
		case c.kind == move:
			to, from := c.fields[0], c.fields[1]
			if inherit(to.v, from.v) {
				continue
			}
			if !need(to) {
				return nil, false
			}
			lines = append(lines, line(opMove, place[to.v], place[from.v], place[from.v]))
			continue
		case c.kind == pick:
			to, m, x, y := c.fields[0].v, c.fields[1].v, c.fields[2].v, c.fields[3].v
			_ = inherit(to, m) || inherit(to, x) || inherit(to, y)
			if !need(c.fields[0]) {
				return nil, false
			}
			switch place[to] {
			case place[x]:
				lines = append(lines, line(opBif, place[to], place[y], place[m]))
			case place[y]:
				lines = append(lines, line(opBit, place[to], place[x], place[m]))
			default:
				if place[to] != place[m] {
					lines = append(lines, line(opMove, place[to], place[m], place[m]))
				}
				lines = append(lines, line(opBsl, place[to], place[x], place[y]))
			}
			continue
		}
		for _, f := range c.fields { // a result may take the register of an operand that is read here for the last time
			if f.read && !f.write && ends(f.v) && !slices.ContainsFunc(c.fields, func(g field) bool { return g.v == f.v && g.write }) {
				taken[place[f.v]] = nil
			}
		}
		var numbers []int
		for _, f := range c.fields {
			if f.v == nil {
				numbers = append(numbers, int(f.number))
				continue
			}
			if f.write && !need(f) {
				return nil, false
			}
			numbers = append(numbers, place[f.v])
		}
		lines = append(lines, line(c.op, numbers...))
	}
	return lines, true
}

// line returns an instruction for Go's assembler.
func line(op opcode, numbers ...int) string {
	var operands []any
	bits := op.bits
	for i, r := range numbers {
		operands = append(operands, r)
		if op.native == "" {
			bits |= uint32(r) << op.shifts[i]
		}
	}
	if op.native == "" {
		return fmt.Sprintf("\tWORD $0x%08x // %s\n", bits, fmt.Sprintf(op.text, operands...))
	}
	code := op.native
	if strings.Contains(code, "%") {
		code = fmt.Sprintf(code, operands...)
	}
	if op.text != "" {
		code += " // " + op.text
	}
	return "\t" + code + "\n"
}

func (n *neon) assembly() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "// Code generated by asmgen. DO NOT EDIT.\n\n//go:build arm64\n\n#include \"textflag.h\"\n")
	if len(n.pool) > 0 {
		fmt.Fprintln(&b)
		for _, c := range n.pool {
			for i, half := range []uint64{c.lo, c.hi} {
				fmt.Fprintf(&b, "DATA %sConstants<>+%d(SB)/8, $0x%016x\n", n.file, c.at+8*i, half)
			}
		}
		fmt.Fprintf(&b, "GLOBL %sConstants<>(SB), RODATA|NOPTR, $%d\n", n.file, 16*len(n.pool))
	}
	b.Write(n.text.Bytes())
	return b.Bytes()
}
