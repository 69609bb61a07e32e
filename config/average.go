package config

// Average makes a moving average of the weights the model of a run: what is validated, kept and opened. Training goes on
// with the weights themselves.
type Average struct {
	Decay float64 `toml:"decay" want:"in (0,1)" doc:"how much less the weights of each step before count"`
}

// Defaults sets what holds where the table says nothing.
func (a *Average) Defaults() { a.Decay = 0.999 }
