package metrics

func init() {
	Registry.Register("hoyer_atoms_dilated", "sparsity of the dilated atoms", func() Metric { return &HoyerAtomsDilated{Dilation()} })
}

// HoyerAtomsDilated is the mean over atoms of the [Hoyer] sparsity of the atoms after a morphological operator.
type HoyerAtomsDilated struct{ Morphology }

func (*HoyerAtomsDilated) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "hoyer_atoms_dilated", Better: Higher,
			Doc: "`hoyer_atoms` of the dilated atoms (or of the atoms after another `operator`). Only if every value of a code weighs one atom"}},
		Reads: ReadsSums | ReadsPictures, ScaleFree: true, OnRequest: true,
	}
}

func (m *HoyerAtomsDilated) Start(s *Subject) (Meter, error) {
	operated, err := s.Atoms.Apply(m.Morphology)
	if err != nil {
		return nil, err
	}
	sparsity, err := MeanHoyer(operated.Values, operated.Pixels())
	return Fixed(Number(sparsity)), err
}
