package losses

import (
	"math"

	"tessera/config/part"
)

// Weight is the factor of a term during training: a number, [Constant], or a schedule.
type Weight interface {
	// At returns the weight after the given number of epochs, which may be fractional; +Inf means the end of training.
	At(epoch float64) float64
}

// Weights is the registry of the schedules of a term's weight.
var Weights = part.New[Weight]("weight")

// Constant is a weight that does not change.
type Constant struct {
	Value float64 `toml:"value" want:">= 0" doc:"factor of the term: a number or a schedule"`
}

func init() {
	Weights.Register("constant", "constant weight", func() Weight { return &Constant{Value: 1} })
}

func (c *Constant) At(float64) float64 { return c.Value }

// Between is embedded by the schedules that change a weight from From to To. To has no default, so a struct literal without
// To decreases to 0.
type Between struct {
	From   float64 `toml:"from" want:">= 0" doc:"weight at the beginning"`
	To     float64 `toml:"to" want:">= 0" required:"true" doc:"weight at the end and afterwards"`
	Epochs float64 `toml:"epochs" want:"> 0" doc:"number of epochs between the two weights; may be a fraction"`
}

// at interpolates between From and To by shape, a function of [0,1] onto [0,1].
func (b Between) at(epoch float64, shape func(float64) float64) float64 {
	if epoch >= b.Epochs {
		return b.To
	}
	return b.From + (b.To-b.From)*shape(epoch/b.Epochs)
}

func (b Between) Ends() float64 {
	if b.From == b.To {
		return 0
	}
	return b.Epochs
}

// Linear interpolates linearly: from + (to - from) min(1, epoch / epochs).
type Linear struct{ Between }

func init() {
	Weights.Register("linear", "linear from one weight to another", func() Weight { return &Linear{Between{Epochs: 10}} })
}

func (l *Linear) At(epoch float64) float64 {
	return l.at(epoch, func(x float64) float64 { return x })
}

// Cosine interpolates along half a cosine: from + (to - from) (1 - cos(pi min(1, epoch / epochs))) / 2.
type Cosine struct{ Between }

func init() {
	Weights.Register("cosine", "half a cosine from one weight to another", func() Weight { return &Cosine{Between{Epochs: 10}} })
}

func (c *Cosine) At(epoch float64) float64 {
	return c.at(epoch, func(x float64) float64 { return (1 - math.Cos(math.Pi*x)) / 2 })
}

// Step switches from From to To after the given number of epochs.
type Step struct{ Between }

func init() {
	Weights.Register("step", "one weight first, another after a number of epochs", func() Weight { return &Step{Between{Epochs: 10}} })
}

func (s *Step) At(epoch float64) float64 { return s.at(epoch, func(float64) float64 { return 0 }) }

// Points interpolates linearly between points (epoch, weight). Before the first point the weight is that of the first, after the
// last one that of the last. Of two points at the same epoch, the second one counts from this epoch on: the weight jumps.
type Points struct {
	Epochs  []float64 `toml:"epochs" want:">= 0" required:"true" doc:"epochs of the points, in ascending order; may be fractions"`
	Weights []float64 `toml:"weights" want:">= 0" required:"true" doc:"weights at the points"`
}

func init() {
	Weights.Register("points", "linear between given points", func() Weight { return &Points{} })
}

// Check returns an error for points that are no schedule.
func (p *Points) Check() error {
	if len(p.Epochs) == 0 || len(p.Weights) != len(p.Epochs) {
		return part.KeyErrorf("weights", "got %d weights for %d epochs, want one for each, at least one", len(p.Weights), len(p.Epochs))
	}
	for i, epoch := range p.Epochs[1:] {
		if epoch < p.Epochs[i] {
			return part.KeyErrorf("epochs", "got %v after %v, want epochs in ascending order", epoch, p.Epochs[i])
		}
	}
	return nil
}

func (p *Points) At(epoch float64) float64 {
	next := 0 // the first point after epoch
	for next < len(p.Epochs) && p.Epochs[next] <= epoch {
		next++
	}
	switch next {
	case 0:
		return p.Weights[0]
	case len(p.Epochs):
		return p.Weights[next-1]
	}
	from, to := p.Epochs[next-1], p.Epochs[next]
	return p.Weights[next-1] + (p.Weights[next]-p.Weights[next-1])*(epoch-from)/(to-from)
}

func (p *Points) Passes() []float64 { return p.Weights }

func (p *Points) Ends() float64 {
	last := len(p.Weights) - 1
	for last > 0 && p.Weights[last-1] == p.Weights[last] {
		last--
	}
	if last == 0 {
		return 0
	}
	return p.Epochs[last]
}

// Passing is a [Weight] that passes other weights between its first and its last one.
type Passing interface {
	// Passes returns all of these weights in their order, with the first and the last one.
	Passes() []float64
}

// Ending is a [Weight] that stays as it is from an epoch on.
type Ending interface {
	// Ends returns this epoch.
	Ends() float64
}

// Through returns the weights that a schedule goes through: those that it passes, or the first and the last one.
func Through(w Weight) []float64 {
	if p, ok := w.(Passing); ok {
		return p.Passes()
	}
	return []float64{w.At(0), w.At(math.Inf(1))}
}
