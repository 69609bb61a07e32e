package metrics

import "context"

func init() {
	Registry.Register("svm", "classification of the codes by a linear SVM", func() Metric { return &SVM{Seed: 1} })
}

// SVM classifies the codes by the study's [SVMProtocol]. Images of an unknown class are left out. The splits of all models
// whose labels and Seed are the same are the same.
type SVM struct {
	Seed uint64 `toml:"seed" doc:"seed of the random splits; 0 takes the run's seed"`

	Protocol *SVMProtocol // nil takes the study's
}

// Describe implements [Metric].
func (*SVM) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "svm_accuracy", Better: Higher, Doc: "accuracy of a linear SVM on the codes, mean over 25 splits of a fifth of the codes, the study's protocol. With other splits the accuracy of the same codes differs by up to 0.04; `svm_holdout_accuracy` is more exact"},
			{Name: "svm_std", Better: Neither, Doc: "standard deviation of `svm_accuracy` over its splits"},
			{Name: "svm_c", Better: Neither, Doc: "value of C chosen for the SVM"},
			{Name: "svm_c_at_edge", Better: Lower, Count: true, Doc: "1 where `svm_c` is an end of the grid from 0.01 to 1000: a larger grid might give a better accuracy; else 0"},
		},
		Reads: ReadsCodes | ReadsLabels, Ordered: true, OnRequest: true,
	}
}

// Start implements [Metric].
func (m *SVM) Start(s *Subject) (Meter, error) {
	seed := m.Seed
	if seed == 0 {
		seed = s.Seed
	}
	meter := &svmMeter{protocol: m.Protocol, units: s.Units}
	if meter.protocol == nil {
		meter.protocol = NewSVMProtocol(seed)
	}
	return meter, nil
}

type svmMeter struct {
	protocol *SVMProtocol
	units    int
	codes    []float32
	labels   []int
}

// Add implements [Meter].
func (m *svmMeter) Add(b *Batch) error {
	for i, label := range b.Labels {
		if label >= 0 {
			m.codes = append(m.codes, b.Codes[i*m.units:(i+1)*m.units]...)
			m.labels = append(m.labels, label)
		}
	}
	return nil
}

// Values implements [Meter].
func (m *svmMeter) Values(ctx context.Context) ([]Value, error) {
	r, err := m.protocol.Measure(ctx, m.codes, m.units, m.labels)
	if err != nil {
		return nil, err
	}
	edge := 0.0
	if grid := m.protocol.Grid; r.C == grid[0] || r.C == grid[len(grid)-1] {
		edge = 1
	}
	return []Value{Number(r.Accuracy), Number(r.Std), Number(r.C), Number(edge)}, nil
}
