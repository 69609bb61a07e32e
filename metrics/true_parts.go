package metrics

// The metric true_parts counts the true parts of the images that [PartsRecovered] finds, one to one, at [PartCosine]; and the mean cosine
// over all parts of the atoms or the bias image that they are matched with, 0 for parts that are left over.
func init() {
	register("true_parts", "atoms that are the true parts of the images", Description{
		Measures: []Measure{
			{Name: "parts_found", Unit: "parts", Better: Higher, Count: true, Doc: "true parts whose atom, or bias image, has a cosine similarity of at least 0.95. " +
				"Parts and atoms are matched one to one with the largest sum of similarities; only where the true parts are known, as of swimmer and bars"},
			{Name: "parts_cosine", Better: Higher, Doc: "mean cosine similarity of the true parts and their atoms. Matched as for `parts_found`"},
		},
		Reads: ReadsAtoms | ReadsParts, ScaleFree: true,
	}, func(s *Subject) (Meter, error) {
		table, err := PartsRecovered(s.Parts, s.Atoms, PartCosine)
		if err != nil {
			return nil, err
		}
		found, sum := 0, 0.0
		for _, part := range table {
			if sum += part.Cosine; part.Found {
				found++
			}
		}
		return Fixed(Number(float64(found)), Number(sum/float64(len(table)))), nil
	})
}
