package metrics

import (
	"math"

	"tessera/internal/vectors"
)

func init() {
	Registry.Register("true_parts", "atoms that are the true parts of the samples", func() Metric { return &TrueParts{PartCosine: PartCosine} })
}

// TrueParts has three numbers. The first is the number of true parts of the images that [PartsRecovered] finds with a cosine of at
// least PartCosine. The second is the mean, over all parts, of the cosine between a part and the atom or bias image that it is
// matched with; a part without a match counts as 0. The third is the number of parts whose atom is nearer to the sum of the part and
// another one, each of norm 1, than to the part: as where the atom of a special feature has absorbed the general one that it
// implies (Chanin et al., A is for absorption, 2024).
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
			{Name: "parts_absorbed", Unit: "parts", Better: Lower, Count: true, Doc: "true parts whose atom is nearer to the sum of the part and another one: it has absorbed the other one. Matched as for `parts_found`"},
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
	return Fixed(Number(float64(found)), Number(sum/float64(len(table))), Number(absorbed(s.Parts, s.Atoms, table))), nil
}

// absorbed counts the parts whose atoms are nearer to the sum of the part and another one. With unit vectors p, q and a, that is
// (a·p + a·q) / |p + q| > a·p.
func absorbed(parts [][]float32, atoms *Atoms, table []Part) (n float64) {
	for i, own := range table {
		if own.Atom < 0 || own.Cosine <= 0 {
			continue
		}
		atom := atoms.row(own.Atom)
		for j, other := range parts {
			if c := vectors.Cosine(atom, other); j != i && c > 0 &&
				own.Cosine+c > own.Cosine*math.Sqrt(2+2*vectors.Cosine(parts[i], other))*(1+1e-9) {
				n++
				break
			}
		}
	}
	return n
}
