package metrics

import (
	"fmt"
	"math"
)

// PartCosine is the cosine similarity from which a true part counts as found.
const PartCosine = 0.95

// BiasAtom stands for the decoder's bias image where an atom's number is asked for.
const BiasAtom = -1

// Part is one row of the table of [PartsRecovered].
type Part struct {
	Atom   int     `json:"atom"`   // the most similar atom, or BiasAtom
	Cosine float64 `json:"cosine"` // its cosine similarity to the part
	Found  bool    `json:"found"`  // the cosine reaches the threshold
}

// PartsRecovered finds for each true part (one image each) the most similar atom, or the bias image, by cosine
// similarity w.p / (|w| |p|); an all-zero image has similarity 0. Parts may share an atom: a true part counts as found when
// some atom is that part. The first of equally similar atoms is taken, the bias last.
func PartsRecovered(parts [][]float32, atoms *Atoms, threshold float64) ([]Part, error) {
	if err := atoms.check(); err != nil {
		return nil, err
	}
	if atoms.Count == 0 && atoms.Bias == nil {
		return nil, fmt.Errorf("metrics: there is no atom to compare the parts with")
	}
	pixels := atoms.Pixels()
	table := make([]Part, len(parts))
	for i, part := range parts {
		if len(part) != pixels {
			return nil, fmt.Errorf("metrics: part %d has %d values, the atoms %d", i, len(part), pixels)
		}
		best := Part{Atom: BiasAtom, Cosine: math.Inf(-1)}
		for j := range atoms.Count {
			if c := cosine(part, atoms.Values[j*pixels:(j+1)*pixels]); c > best.Cosine {
				best = Part{Atom: j, Cosine: c}
			}
		}
		if atoms.Bias != nil {
			if c := cosine(part, atoms.Bias); c > best.Cosine {
				best = Part{Atom: BiasAtom, Cosine: c}
			}
		}
		best.Found = best.Cosine >= threshold
		table[i] = best
	}
	return table, nil
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		dot += x * y
		aa += x * x
		bb += y * y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return dot / math.Sqrt(aa*bb)
}
