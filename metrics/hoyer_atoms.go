package metrics

func init() {
	Registry.Register("hoyer_atoms", "sparsity of the atoms", func() Metric { return atomHoyer{} })
}

// atomHoyer is the mean over atoms of their [Hoyer] sparsity.
type atomHoyer struct{}

// Describe implements [Metric].
func (atomHoyer) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "hoyer_atoms", Better: Higher,
			Doc: "mean over atoms of their sparsity, as `hoyer` with N in place of k. An atom of zeros counts as 0"}},
		Reads: ReadsAtoms, ScaleFree: true,
	}
}

// Start implements [Metric].
func (atomHoyer) Start(s *Subject) (Meter, error) {
	sparsity, err := MeanHoyer(s.Atoms.Values, s.Atoms.Pixels())
	return Fixed(Number(sparsity)), err
}
