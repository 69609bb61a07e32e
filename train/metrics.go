package train

import (
	"math"

	"tessera/metrics"
)

// Metrics are the numbers of one epoch, a line of metrics.jsonl. An epoch of a baseline is one iteration; its codes are not
// measured.
type Metrics struct {
	Epoch           int            // from 1
	Step            int            // steps done since the beginning of the run
	Loss            float64        // sum of Terms: mean over the images of the epoch, each with the parameters of its step
	Terms           metrics.Values // the weighted terms of the loss by their kinds, "kind.2" for the second of a kind; empty for a baseline, whose loss is its objective
	Measured        metrics.Values // at the end of the epoch, without noise: see [Watched]; empty within an epoch
	LearningRate    float64        // of the epoch's last step; NaN for a baseline
	ImagesPerSecond float64        // trained images per second
	Seconds         float64        // wall time of this epoch alone, validation and checkpoint included
}

// Watched is the number of training images, from the first, on which the code sparsity and the dead units are measured if
// there are no validation images.
const Watched = 10000

// values are the deterministic numbers by their keys: the loss, its terms and the metrics.
func (m Metrics) values() metrics.Values {
	v := metrics.Values{finiteValue("loss", m.Loss)}
	for _, t := range m.Terms {
		v = append(v, finiteValue(t.Name, t.Number))
	}
	for _, one := range m.Measured.Shown() {
		if one.Missing == "" {
			one = finiteValue(one.Name, one.Number)
		}
		v = append(v, one)
	}
	return v
}

// finiteValue is v, or missing if v is not finite.
func finiteValue(name string, number float64) metrics.Value {
	v := metrics.Number(number)
	if math.IsNaN(number) || math.IsInf(number, 0) {
		v = metrics.NotApplicable("it is not finite")
	}
	v.Name = name
	return v
}

// MarshalJSON writes one object with the keys in a fixed order. A value that is not a number is null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	all := metrics.Values{finiteValue("epoch", float64(m.Epoch)), finiteValue("step", float64(m.Step))}
	all = append(all, m.values()...)
	return append(all, finiteValue("learning_rate", m.LearningRate), finiteValue("images_per_second", m.ImagesPerSecond),
		finiteValue("seconds", m.Seconds)).MarshalJSON()
}
