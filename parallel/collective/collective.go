// Package collective defines the operations by which processes that train one model together combine their values: sums, maxima and
// concatenation. [Group] is the interface; [Local] implements it for goroutines of one process, package mpi for processes.
package collective

import "fmt"

// Op combines the values of all processes, element by element.
type Op uint8

// The operations. The order of a sum depends on the number of processes only. Max of a NaN is unspecified.
const (
	Sum Op = iota
	Max
)

// String returns "sum" or "max".
func (o Op) String() string {
	if o == Max {
		return "max"
	}
	return "sum"
}

// Group is the view that one process has of all processes that train a model together. Every process calls the same methods in the
// same order, with the same ops, types and lengths; a difference that an implementation detects is an error on every process.
// After an error the group is unusable. Only one goroutine at a time may call a method.
//
// values is a []float32, a []float64 or a []uint64. A caller that stores it as any once makes calls that do not allocate.
type Group interface {
	// Rank is the number of this process, from 0 to Size()-1.
	Rank() int
	// Size is the number of processes, >= 1.
	Size() int
	// AllReduce replaces values by the combination of the values of all processes. The result has the same bits on every
	// process, and in every run with as many processes.
	AllReduce(op Op, values any) error
	// Start begins an AllReduce. The values belong to the group until Wait of the result has returned. Other methods may be
	// called in between, also further Starts.
	Start(op Op, values any) (Pending, error)
	// AllGather concatenates the values of all processes in the order of their ranks in all, which has the type of mine.
	// counts[r] is the length of mine on rank r, 0 or more; all has the length of their sum.
	AllGather(mine any, counts []int, all any) error
	// Broadcast copies the values of the process root to those of all others.
	Broadcast(root int, values []byte) error
	// Barrier returns when every process has called it.
	Barrier() error
}

// Pending is an operation that has begun.
type Pending interface {
	// Wait returns when the operation is complete. It is called once.
	Wait() error
}

// Len returns the length of values; another type than the three of [Group] is an error.
func Len(values any) (int, error) {
	switch v := values.(type) {
	case []float32:
		return len(v), nil
	case []float64:
		return len(v), nil
	case []uint64:
		return len(v), nil
	}
	return 0, fmt.Errorf("collective: got values of type %T, want []float32, []float64 or []uint64", values)
}
