package metrics

import (
	"context"
	"fmt"
	"slices"

	"tessera/internal/vectors"
)

func init() {
	register("recovered_loss", "what a classifier still knows after reconstructions in place of its inner values", Description{
		Measures: []Measure{
			{Name: "recovered_loss", Better: Higher, Doc: "for samples that are values inside of a classifier (data set `run`): (z - r)/(z - o), its `nll` with zeros (z), with the reconstructions (r) and with the " +
				"values themselves (o) in their place. 1 is nothing lost, 0 as bad as zeros (Karvonen et al., SAEBench, 2025)"},
			{Name: "downstream_accuracy", Better: Higher, Doc: "accuracy of that classifier with the reconstructions in place of the values"},
		},
		Reads: ReadsImages | ReadsOutputs | ReadsLabels | ReadsDownstream, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) { return &recoveredLoss{of: s}, nil })
}

// recoveredLoss keeps the labelled samples and their reconstructions, so that the classifier is opened once for each.
type recoveredLoss struct {
	of              *Subject
	values, outputs []float32
	labels          []int
}

func (m *recoveredLoss) Add(b *Batch) error {
	width := len(b.Images) / len(b.Labels)
	for i, label := range b.Labels {
		if label >= 0 {
			m.values = append(m.values, b.Images[i*width:(i+1)*width]...)
			m.outputs = append(m.outputs, b.Outputs[i*width:(i+1)*width]...)
			m.labels = append(m.labels, label)
		}
	}
	return nil
}

func (m *recoveredLoss) Values(context.Context) ([]Value, error) {
	if len(m.labels) == 0 {
		return []Value{NotApplicable("no sample has a class")}, nil
	}
	m.of.Scaling.Undo(m.values)
	m.of.Scaling.Undo(m.outputs)
	var nll, accuracy [3]float64
	for i, samples := range [][]float32{m.values, m.outputs, make([]float32, len(m.values))} {
		logits, err := m.of.Downstream(samples)
		if err != nil {
			return nil, err
		}
		if nll[i], accuracy[i], err = judged(logits, m.labels); err != nil {
			return nil, err
		}
	}
	original, reconstructed, zeros := nll[0], nll[1], nll[2]
	recovered := Number((zeros - reconstructed) / (zeros - original))
	if zeros <= original {
		recovered = NotApplicable("the classifier is not better with the samples than with zeros")
	}
	return []Value{recovered, Number(accuracy[1])}, nil
}

// judged returns the mean negative log-likelihood of the labels, and the share that the largest logit gives.
func judged(logits []float32, labels []int) (nll, accuracy float64, err error) {
	classes := len(logits) / len(labels)
	if most := slices.Max(labels); most >= classes {
		return 0, 0, fmt.Errorf("got the class %d, but the classifier knows %d classes", most, classes)
	}
	for i, label := range labels {
		row := logits[i*classes : (i+1)*classes]
		nll -= logProbability(row, label)
		best, err := vectors.Class(row)
		if err != nil {
			return 0, 0, err
		}
		if best == label {
			accuracy++
		}
	}
	return nll / float64(len(labels)), accuracy / float64(len(labels)), nil
}
