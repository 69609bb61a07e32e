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

// Inits holds every initialisation.
var Inits = part.New[Init]("init")
