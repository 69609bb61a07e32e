package metrics

import (
	"fmt"

	"tessera/internal/assignment"
	"tessera/internal/vectors"
)

// PartCosine is the minimum cosine similarity at which a true part counts as found.
const PartCosine = 0.95

const (
	// BiasAtom is the atom number of the decoder's bias image.
	BiasAtom = -1
	// NoAtom is the atom number of an unmatched part, which occurs if there are more parts than atoms.
	NoAtom = -2
)

// Part is one row of the table of [PartsRecovered].
type Part struct {
	Atom   int     `json:"atom"`   // the matched atom, BiasAtom or NoAtom
	Cosine float64 `json:"cosine"` // cosine similarity of the atom and the part
	Found  bool    `json:"found"`  // the cosine reaches the threshold
}

// PartsRecovered matches the true parts (one image each) one-to-one with atoms or the bias image: no two parts share an atom.
// It returns a matching with the largest sum of cosine similarities w.p / (|w| |p|). The similarity of an all-zero image is
// 0. A part is found if its similarity reaches the threshold.
func PartsRecovered(parts [][]float32, atoms *Atoms, threshold float64) ([]Part, error) {
	if err := atoms.check(); err != nil {
		return nil, err
	}
	candidates := atoms.Count
	if atoms.Bias != nil {
		candidates++
	}
	if candidates == 0 {
		return nil, fmt.Errorf("metrics: there is no atom to compare the parts with")
	}
	pixels := atoms.Pixels()
	for i, part := range parts {
		if len(part) != pixels {
			return nil, fmt.Errorf("metrics: part %d has %d values, the atoms %d", i, len(part), pixels)
		}
	}
	similarity := func(part, j int) float64 {
		if j == atoms.Count {
			return vectors.Cosine(parts[part], atoms.Bias)
		}
		return vectors.Cosine(parts[part], atoms.row(j))
	}
	matched, err := assignment.Maximise(len(parts), candidates, similarity)
	if err != nil {
		return nil, fmt.Errorf("metrics: match parts with atoms: %w", err)
	}
	table := make([]Part, len(parts))
	for i, j := range matched {
		if j == assignment.None {
			table[i] = Part{Atom: NoAtom}
			continue
		}
		c := similarity(i, j)
		if j == atoms.Count {
			j = BiasAtom
		}
		table[i] = Part{Atom: j, Cosine: c, Found: c >= threshold}
	}
	return table, nil
}
