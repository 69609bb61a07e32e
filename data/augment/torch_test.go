package augment

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"tessera/internal/fatal"
)

// torch_augment.json contains results of PyTorch and SciPy in float64. It is written by torch_augment.py in the same
// folder.
//
//go:embed testdata/torch_augment.json
var torchAugment []byte

// peerCase is one operation on the image that patterned returns.
type peerCase struct {
	Shape   []int
	Box     []float64
	Degrees float64
	Sigma   float64
	Y       []float64
}

func TestOperationsAgreeWithPyTorchAndSciPy(t *testing.T) {
	var cases map[string][]peerCase
	fatal.If(t, json.Unmarshal(torchAugment, &cases))
	operations := map[string]func(dst, src []float32, c peerCase){
		"crop": func(dst, src []float32, c peerCase) {
			enlarge(dst, src, sizeOf(c.Shape), box{c.Box[0], c.Box[1], c.Box[2], c.Box[3]})
		},
		"rotate": func(dst, src []float32, c peerCase) { turn(dst, src, sizeOf(c.Shape), c.Degrees, 0) },
		"blur":   func(dst, src []float32, c peerCase) { newSmoother(sizeOf(c.Shape), c.Sigma).smooth(dst, src, c.Sigma) },
	}
	for name, operate := range operations {
		if len(cases[name]) < 10 {
			t.Errorf("%s: only %d cases", name, len(cases[name]))
		}
		for i, c := range cases[name] {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				src := patterned(sizeOf(c.Shape))
				dst := make([]float32, len(src))
				operate(dst, src, c)
				for j, want := range c.Y {
					if d := math.Abs(float64(dst[j]) - want); !(d < 1e-6) {
						t.Fatalf("%+v: value %d is %v, want %v", c, j, dst[j], want)
					}
				}
			})
		}
	}
}

// patterned returns the image that torch_augment.py uses.
func patterned(in size) []float32 {
	var image []float32
	for y := range in.height {
		for x := range in.width {
			for c := range in.channels {
				image = append(image, float32((7*y+3*x+5*c)%11)/10)
			}
		}
	}
	return image
}
