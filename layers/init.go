package layers

import (
	"math/rand/v2"

	"tessera/part"
)

// Init draws the initial values of a parameter. In models.toml it is a name (`init = "he_normal"`) or a table (`init = {
// kind = "normal", stddev = 0.05 }`).
type Init interface {
	// Fill sets every element of w; fanIn and fanOut are the numbers of inputs and outputs of a unit.
	Fill(w []float32, fanIn, fanOut int, r *rand.Rand)
}

// MatrixInit is implemented by initialisations of matrices: a parameter is the matrix of its last axis and all other axes.
type MatrixInit interface {
	Init
	// FillMatrix sets every element of w, a matrix with that number of columns.
	FillMatrix(w []float32, columns int, r *rand.Rand)
}

// Fill sets w to initial values of the parameter.
func (p Parameter) Fill(w []float32, r *rand.Rand) {
	if m, ok := p.Init.(MatrixInit); ok && len(p.Shape) > 1 {
		m.FillMatrix(w, p.Shape[len(p.Shape)-1], r)
		return
	}
	p.Init.Fill(w, p.FanIn, p.FanOut, r)
}

// Inits holds every initialisation.
var Inits = part.New[Init]("init")
