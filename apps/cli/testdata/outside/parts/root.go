package parts

import (
	"math"

	"tessera/optim"
)

// Root lowers the learning rate as 1 / sqrt(1 + epoch / epochs).
type Root struct {
	Epochs float64 `toml:"epochs" want:"> 0" doc:"number of epochs after which the rate is divided by the root of 2"`
}

func init() {
	optim.Schedules.Register("root", "1 / sqrt(1 + epoch / epochs)", func() optim.Schedule { return &Root{Epochs: 10} })
}

// Factor implements [optim.Schedule].
func (s *Root) Factor(epoch, _ float64) float64 { return 1 / math.Sqrt(1+epoch/s.Epochs) }
