package metrics

func init() {
	register("hoyer_atoms", "sparsity of the atoms", Description{
		Measures: []Measure{{Name: "hoyer_atoms", Better: Higher,
			Doc: "mean over atoms of their sparsity, as `hoyer` with N in place of k. An atom of zeros counts as 0"}},
		Reads: ReadsAtoms, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		sparsity, err := MeanHoyer(s.Atoms.Values, s.Atoms.Pixels())
		return Fixed(Number(sparsity)), err
	})
}
