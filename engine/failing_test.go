package engine

import (
	"errors"
	"hash"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// failing is an op of a user's own that panics or fails in turn.
type failing struct{}

var failures int

func (failing) Arity() int                                       { return 1 }
func (failing) Type() hm.Type                                    { return hm.NewFnType(hm.TypeVariable('a'), hm.TypeVariable('a')) }
func (failing) InferShape(s ...G.DimSizer) (tensor.Shape, error) { return s[0].(tensor.Shape), nil }
func (failing) ReturnsPtr() bool                                 { return false }
func (failing) CallsExtern() bool                                { return false }
func (failing) OverwritesInput() int                             { return -1 }
func (failing) WriteHash(h hash.Hash)                            { h.Write([]byte("failing")) }
func (failing) Hashcode() uint32                                 { return 7 }
func (failing) String() string                                   { return "failing" }
func (failing) Do(...G.Value) (G.Value, error) {
	if failures++; failures%2 == 0 {
		panic("on purpose")
	}
	return nil, errors.New("on purpose")
}
