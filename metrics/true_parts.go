package metrics

func init() {
	Registry.Register("true_parts", "atoms that are the true parts of the images", func() Metric { return &TrueParts{PartCosine: PartCosine} })
}

// TrueParts has two numbers. The first is the number of true parts of the images that [PartsRecovered] finds with a cosine of at
// least PartCosine. The second is the mean, over all parts, of the cosine between a part and the atom or bias image that it is
// matched with; a part without a match counts as 0.
type TrueParts struct {
	PartCosine float64 `toml:"part_cosine" want:"in (0,1]" doc:"least cosine similarity of a part that is found"`
}

func (*TrueParts) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "parts_found", Unit: "parts", Better: Higher, Count: true, Doc: "true parts whose atom, or bias image, has a cosine similarity of at least 0.95. " +
				"Parts and atoms are matched one to one with the largest sum of similarities; only where the true parts are known, as of swimmer and bars. " +
				"`--with part_cosine=0.9` changes 0.95"},
			{Name: "parts_cosine", Better: Higher, Doc: "mean cosine similarity of the true parts and their atoms. Matched as for `parts_found`"},
		},
		Reads: ReadsAtoms | ReadsParts, ScaleFree: true,
	}
}

func (m *TrueParts) Start(s *Subject) (Meter, error) {
	table, err := PartsRecovered(s.Parts, s.Atoms, m.PartCosine)
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
}
