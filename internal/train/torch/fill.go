package torch

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/train/checkpoint"
)

// Fill sets the parameters of a model that the function wanted selects to tensors in the layouts of PyTorch's modules, which have the names of
// [Tensors] as renamed changes them. The values of a tensor without a parameter, such as the bias of the keys of an attention layer, which changes
// no output, are ignored. If a tensor is missing or has another shape, Fill changes nothing and returns an error for each.
func Fill(m *graph.Model, wanted func(path string) bool, renamed func(string) string, tensors map[string]data.Tensor) (problems []string, err error) {
	marked := m.Twin()
	// Every value of the twin is its own number, so that its tensors say where each of their values comes from. 0 marks a value without a parameter.
	var first []uint32 // number of the first value of each parameter
	var fills []bool   // the parameter is wanted
	next := 1
	for i, p := range m.Parameters {
		first, fills = append(first, uint32(next)), append(fills, wanted(p.Path))
		for j := range p.Data {
			marked.Parameters[i].Data[j] = math.Float32frombits(uint32(next + j))
		}
		if next += len(p.Data); next > math.MaxUint32 {
			return nil, fmt.Errorf("the model has more than %d parameters", uint32(math.MaxUint32))
		}
	}
	layouts, err := Tensors(marked)
	if err != nil {
		return nil, err
	}
	place := func(mark float32) *float32 {
		n := math.Float32bits(mark)
		i := sort.Search(len(first), func(i int) bool { return first[i] > n }) - 1
		if i < 0 || !fills[i] {
			return nil
		}
		return &m.Parameters[i].Data[n-first[i]]
	}
	layouts = slices.DeleteFunc(layouts, func(t checkpoint.Tensor) bool {
		return !slices.ContainsFunc(t.Data, func(mark float32) bool { return place(mark) != nil })
	})
	for _, t := range layouts {
		name := renamed(t.Name)
		if got, ok := tensors[name]; !ok {
			problems = append(problems, fmt.Sprintf("%s is missing (for %s)", name, t.Name))
		} else if !slices.Equal(got.Shape, t.Shape) {
			problems = append(problems, fmt.Sprintf("%s has shape %v, want %v (for %s)", name, got.Shape, t.Shape, t.Name))
		}
	}
	if problems != nil {
		return problems, nil
	}
	for _, t := range layouts {
		for i, v := range tensors[renamed(t.Name)].Data {
			if p := place(t.Data[i]); p != nil {
				*p = v
			}
		}
	}
	return nil, nil
}

// Renamed returns the function that replaces the longest beginning of a name that names contains: the whole name, or all before one of its dots.
func Renamed(names map[string]string) func(string) string {
	return func(name string) string {
		for head := name; ; {
			if to, ok := names[head]; ok {
				return strings.TrimPrefix(to+strings.TrimPrefix(name, head), ".")
			}
			at := strings.LastIndexByte(head, '.')
			if at < 0 {
				return name
			}
			head = head[:at]
		}
	}
}
