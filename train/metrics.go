package train

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"

	"tessera/metrics"
)

// Metrics are the numbers of one epoch, a line of metrics.jsonl. An epoch of a baseline is one iteration; its codes are not
// measured.
type Metrics struct {
	Epoch           int            // from 1
	Step            int            // steps done since the beginning of the run
	Loss            float64        // mean over the images of the epoch, as each was when its batch was computed: the sum of Terms
	Terms           []Term         // the weighted terms of the loss, in their declared order; none of a baseline, whose loss is its objective
	Measured        metrics.Values // at the end of the epoch, without noise: see [Watched]; empty within an epoch
	LearningRate    float64        // of the epoch's last step; NaN for a baseline
	ImagesPerSecond float64        // images trained on per second of Seconds
	Seconds         float64        // wall time of this epoch alone, validation and checkpoint included
}

// Watched is how many of the fitted images the sparsity of codes and the dead units are measured on without
// validation images: the first ones.
const Watched = 10000

// Term is one weighted term of the loss.
type Term struct {
	Name  string // its kind; "kind.2" for the second of a kind
	Value float64
}

// MarshalJSON writes one object with the keys in a fixed order. A value that is not a number is null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	field := func(key string, value any) {
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			value = nil
		}
		name, _ := json.Marshal(key) // texts and finite numbers cannot fail
		text, _ := json.Marshal(value)
		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(text)
	}
	field("epoch", m.Epoch)
	field("step", m.Step)
	field("loss", m.Loss)
	for _, t := range m.Terms {
		field(t.Name, t.Value)
	}
	for _, v := range m.Measured.Shown() {
		if v.Missing != "" {
			v.Number = math.NaN()
		}
		field(v.Name, v.Number)
	}
	field("learning_rate", m.LearningRate)
	field("images_per_second", m.ImagesPerSecond)
	field("seconds", m.Seconds)
	b.WriteByte('}')
	return b.Bytes(), nil
}

// known are the metrics that hooks get, by their keys; what was not measured is missing.
func (m Metrics) known() map[string]float64 {
	all := map[string]float64{"loss": m.Loss}
	for _, v := range m.Measured {
		if v.Missing == "" {
			all[v.Name] = v.Number
		}
	}
	for _, t := range m.Terms {
		all[t.Name] = t.Value
	}
	maps.DeleteFunc(all, func(_ string, v float64) bool { return math.IsNaN(v) })
	return all
}
