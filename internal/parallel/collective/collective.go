// Package collective defines the operations by which processes that train one model together combine their values:
// sums, maxima and concatenation. [Group] is the interface. [Local] implements it for goroutines of one process,
// package mpi implements it for processes.
package collective

import (
	"fmt"
	"reflect"

	"tessera/internal/lists"
)

// Op is an elementwise reduction over the processes.
type Op uint8

// The reductions. The order of a sum depends only on the number of processes. Max is unspecified if one of the values
// is NaN.
const (
	Sum Op = iota
	Max
)

func (o Op) String() string {
	if o == Max {
		return "max"
	}
	return "sum"
}

// Group is one process's view of all processes that train a model together. Every process must call the same methods in
// the same order, with the same ops, types and lengths. If an implementation detects a difference, every process gets
// an error. After an error the group is unusable. Only one goroutine at a time may call a method.
//
// values is a []float32, a []float64 or a []uint64. Calls do not allocate if the caller stores it once as any.
type Group interface {
	// Rank returns the number of this process, from 0 to Size()-1.
	Rank() int
	// Size returns the number of processes, >= 1.
	Size() int
	// AllReduce replaces values by the reduction of the values of all processes. The result has the same bits on every
	// process, and in every run with the same number of processes.
	AllReduce(op Op, values any) error
	// Start begins an AllReduce. The caller must not use values until Wait of the result has returned. Other methods,
	// also Start, may be called in the meantime.
	Start(op Op, values any) (Pending, error)
	// AllGather concatenates the values of all processes in the order of their ranks and writes them to all, which has
	// the type of mine. counts[r] is the length of mine on rank r, 0 or more. The length of all is the sum of counts.
	AllGather(mine any, counts []int, all any) error
	// Broadcast copies the values of the process root to the values of all other processes.
	Broadcast(root int, values []byte) error
	// Barrier returns when every process has called it.
	Barrier() error
}

// Pending is an operation that has begun and may not be complete.
type Pending interface {
	// Wait returns when the operation is complete. It must be called once.
	Wait() error
}

// Len returns the length of values. It returns an error unless values has one of the three types of [Group].
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

// CheckGather returns an error if the lengths or types of the arguments of [Group].AllGather do not match.
func CheckGather(g Group, mine any, counts []int, all any) error {
	m, err := Len(mine)
	if err != nil {
		return err
	}
	n, err := Len(all)
	if err != nil {
		return err
	}
	total := lists.Sum(counts)
	if len(counts) != g.Size() || counts[g.Rank()] != m || total != n || reflect.TypeOf(mine) != reflect.TypeOf(all) {
		return fmt.Errorf("collective: all-gather on rank %d of %d: got %d values of %T for %d of %T, counts %v", g.Rank(), g.Size(), m, mine, n, all, counts)
	}
	return nil
}
