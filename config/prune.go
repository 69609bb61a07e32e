package config

import "fmt"

// Prune is a phase of a run in which the small weights of every parameter that the glob matches are held at 0.
type Prune struct {
	On        string  `toml:"on" doc:"a glob over parameter paths"`
	Fraction  float64 `toml:"fraction" want:"in (0,1)" doc:"the smallest so much of each parameter is pruned"`
	Threshold float64 `toml:"threshold" want:"> 0" doc:"in place of fraction: what is not larger is pruned"`
	From      int     `toml:"from" want:">= 0" doc:"the phase begins after so many epochs"`
	Until     int     `toml:"until" want:"> 0" doc:"the phase ends after so many epochs; left out, it does not end"`
	Rate      float64 `toml:"rate" want:"> 0" doc:"multiplies the learning rate once the phase has ended"`
}

// Defaults sets what holds where the table says nothing.
func (p *Prune) Defaults() { p.On, p.Rate = "*.weight", 0.1 }

// Holds reports whether the phase goes on in the epoch that follows so many complete ones.
func (p *Prune) Holds(epoch int) bool { return epoch >= p.From && !p.Over(epoch) }

// Over reports whether the phase has ended after so many complete epochs.
func (p *Prune) Over(epoch int) bool { return p.Until > 0 && epoch >= p.Until }

// prune checks one phase.
func (c *checker) prune(i int) {
	p, part := c.model.Prune[i], fmt.Sprintf("prune[%d]", i)
	if c.model.origin.Doubt(part) != nil {
		return
	}
	switch {
	case p.Fraction == 0 && p.Threshold == 0:
		c.report(part, "", "", "says not what is pruned", "give a fraction or a threshold")
	case p.Fraction != 0 && p.Threshold != 0:
		c.report(part, "", "threshold", "threshold: fraction is given too", "give one of them")
	}
	if p.Until != 0 && p.Until <= p.From {
		c.report(part, "", "until", fmt.Sprintf("until: got %d, want > from (%d)", p.Until, p.From), "")
	}
	if epochs := c.model.Train.Epochs; p.From >= epochs && c.model.origin.Doubt("train") == nil {
		c.report(part, "", "from", fmt.Sprintf("from: the phase begins after epoch %d, but the run ends after epoch %d: nothing would be pruned", p.From, epochs),
			"train for longer, let the phase begin earlier, or leave it out: prune = []")
	}
	c.moving(part, "", p.On, c.model.Frozen)
}
