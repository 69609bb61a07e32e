package metrics

import (
	"context"
	"fmt"
	"slices"

	"tessera/internal/vectors"
)

func init() {
	register("recovered_loss", "what a classifier, or a model of language, still knows after reconstructions in place of its inner values", Description{
		Measures: []Measure{
			{Name: "recovered_loss", Better: Higher, Doc: "for samples that are values inside of a network that tells classes or next tokens (data set `run`): (z - r)/(z - o), its `nll` with zeros (z), with the " +
				"reconstructions (r) and with the values themselves (o) in their place. 1 is nothing lost, 0 as bad as zeros (Karvonen et al., SAEBench, 2025)"},
			{Name: "downstream_accuracy", Better: Higher, Doc: "accuracy of that network with the reconstructions in place of the values"},
		},
		Reads: ReadsImages | ReadsOutputs | ReadsLabels | ReadsDownstream, ScaleFree: true, Partial: true,
	}, func(s *Subject) (Meter, error) { return &recoveredLoss{of: s}, nil })
}

// recoveredLoss keeps the samples and their reconstructions, so that the network is opened once for each.
type recoveredLoss struct {
	of              *Subject
	values, outputs []float32
	labels          []int
}

func (m *recoveredLoss) Add(b *Batch) error {
	m.values = append(m.values, b.Images...)
	m.outputs = append(m.outputs, b.Outputs...)
	m.labels = append(m.labels, b.Labels...)
	return nil
}

func (m *recoveredLoss) Values(ctx context.Context) ([]Value, error) {
	if !slices.ContainsFunc(m.labels, known) {
		return []Value{NotApplicable("no sample has a class")}, nil
	}
	m.of.Scaling.Undo(m.values)
	m.of.Scaling.Undo(m.outputs)
	var nll, accuracy [3]float64
	for i, samples := range [][]float32{m.values, m.outputs, make([]float32, len(m.values))} {
		var err error
		if nll[i], accuracy[i], err = m.judged(ctx, samples); err != nil {
			return nil, err
		}
	}
	original, reconstructed, zeros := nll[0], nll[1], nll[2]
	recovered := Number((zeros - reconstructed) / (zeros - original))
	if zeros <= original {
		recovered = NotApplicable("the network is not better with the samples than with zeros")
	}
	return []Value{recovered, Number(accuracy[1])}, nil
}

func known(label int) bool { return label >= 0 }

// judged returns the mean negative log-likelihood of the known labels, given samples in place of the values, and the share of them that the
// largest logit gives.
func (m *recoveredLoss) judged(ctx context.Context, samples []float32) (nll, accuracy float64, err error) {
	n := 0
	err = m.of.Downstream(samples, func(i int, logits []float32) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		label := m.labels[i]
		if !known(label) {
			return nil
		}
		if label >= len(logits) {
			return fmt.Errorf("got the class %d, but the network knows %d classes", label, len(logits))
		}
		n++
		nll -= logProbability(logits, label)
		best, err := vectors.Class(logits)
		if best == label {
			accuracy++
		}
		return err
	})
	return nll / float64(n), accuracy / float64(n), err
}
