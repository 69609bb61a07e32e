package collective

// combine replaces elements [from, to) of every part by their combination in the order of the parts.
func combine(op Op, parts []any, from, to int) {
	switch parts[0].(type) {
	case []float32:
		combined[float32](op, parts, from, to)
	case []float64:
		combined[float64](op, parts, from, to)
	case []uint64:
		combined[uint64](op, parts, from, to)
	}
}

func combined[T float32 | float64 | uint64](op Op, parts []any, from, to int) {
	first := parts[0].([]T)[from:to]
	for _, p := range parts[1:] {
		other := p.([]T)[from:to]
		if op == Max {
			for i, v := range other {
				first[i] = max(first[i], v)
			}
			continue
		}
		for i, v := range other {
			first[i] += v
		}
	}
	for _, p := range parts[1:] {
		copy(p.([]T)[from:to], first)
	}
}

// concatenate copies the parts to all, one after the other.
func concatenate(parts []any, all any) {
	switch to := all.(type) {
	case []float32:
		concatenated(parts, to)
	case []float64:
		concatenated(parts, to)
	case []uint64:
		concatenated(parts, to)
	}
}

func concatenated[T float32 | float64 | uint64](parts []any, to []T) {
	for _, p := range parts {
		to = to[copy(to, p.([]T)):]
	}
}
