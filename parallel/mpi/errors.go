package mpi

import (
	"fmt"
	"strings"
	"time"
)

// SetupError is the error of a process that cannot join a group: it was not started by a launcher, the library is missing or is
// not the launcher's.
type SetupError struct{ Problem string }

// Error implements error.
func (e *SetupError) Error() string { return "mpi: " + e.Problem }

func setupf(format string, a ...any) error { return &SetupError{fmt.Sprintf(format, a...)} }

// Lost is the error of processes that did not take part in an operation before the deadline.
type Lost struct {
	What  string        // the operation
	Ranks []int         // that did not answer
	Hosts []string      // their machines
	After time.Duration // the deadline
}

// Error implements error.
func (e *Lost) Error() string {
	names := make([]string, len(e.Ranks))
	for i, r := range e.Ranks {
		names[i] = fmt.Sprintf("rank %d on %s", r, e.Hosts[i])
	}
	return fmt.Sprintf("mpi: %s: no answer from %s within %v: the process has ended, hangs or is slower by more than the deadline; see its machine, or give a longer --deadline",
		e.What, strings.Join(names, ", "), e.After)
}

// Failed is the error of another process, which ended the group.
type Failed struct {
	Rank int
	Host string
	Code int    // its exit code
	Text string // its error
}

// Error implements error.
func (e *Failed) Error() string { return fmt.Sprintf("rank %d on %s: %s", e.Rank, e.Host, e.Text) }

// CallError is the error of a call of the library, or of processes that disagree about an operation.
type CallError struct{ Call, Text string }

// Error implements error.
func (e *CallError) Error() string { return "mpi: " + e.Call + ": " + e.Text }
