package ir

import (
	"errors"
	"fmt"

	"tessera/internal/volume"
)

// The ops of a program that several processes run together, each on its images of the batch. Package ir/shard makes them
// of a program for one process. A collective op belongs to a message; the messages are sent in ascending order by every
// process. Members of one message are sent together.
type (
	// AllReduce combines the args of all processes, element by element.
	AllReduce struct {
		F       Reducer
		Message int
		Member  int  // of the message, from 0
		Late    bool // only the caller reads it: the message is complete when the run ends
	}
	// AllGather is the batch's value of args that hold the images of one process each. Seen as (Outer, Batch, rest), process
	// r of Processes has the images from Batch*r/Processes to Batch*(r+1)/Processes.
	AllGather struct {
		Message   int
		Outer     int
		Batch     int
		Processes int
	}
)

// String is "all-reduce sum 2.0": message and member.
func (a AllReduce) String() string {
	late := ""
	if a.Late {
		late = " late"
	}
	return fmt.Sprintf("all-reduce %v %d.%d%s", a.F, a.Message, a.Member, late)
}

// String is "all-gather 2".
func (a AllGather) String() string { return fmt.Sprintf("all-gather %d", a.Message) }

// MessageOf is the message of a collective op; ok is false for other ops.
func MessageOf(o Op) (message int, ok bool) {
	switch o := o.(type) {
	case AllReduce:
		return o.Message, true
	case AllGather:
		return o.Message, true
	}
	return 0, false
}

// Collective reports whether only several processes together can run the program.
func (m *Module) Collective() bool {
	for _, v := range m.Values() {
		if _, ok := MessageOf(v.Op); ok {
			return true
		}
	}
	return false
}

// fitsCollective checks a collective value.
func fitsCollective(v *Value) error {
	a := v.Args[0]
	switch o := v.Op.(type) {
	case AllReduce:
		return want(volume.Of(a.Shape) == volume.Of(v.Shape), "the arg has shape %v, another size", a.Shape)
	case AllGather:
		if o.Outer < 1 || o.Processes < 1 || o.Batch < o.Processes || volume.Of(v.Shape)%(o.Outer*o.Batch) != 0 {
			return fmt.Errorf("does not divide into %d times %d images of %d processes", o.Outer, o.Batch, o.Processes)
		}
		image := volume.Of(v.Shape) / o.Batch
		return want(image > 0 && volume.Of(a.Shape)%image == 0 && volume.Of(a.Shape) < volume.Of(v.Shape)+image,
			"the arg has shape %v, no whole number of images", a.Shape)
	}
	return nil
}

// inOrder reports messages that cannot be sent in ascending order: one that needs the result of itself or of a later one.
func (m *Module) inOrder() error {
	latest := map[*Value]int{} // message that a value needs, plus 1
	for _, v := range m.Values() {
		for _, a := range v.Args {
			latest[v] = max(latest[v], latest[a])
		}
		if message, ok := MessageOf(v.Op); ok {
			if message < latest[v] {
				return errors.New("a message needs the result of a later one")
			}
			latest[v] = message + 1
		}
	}
	return nil
}
