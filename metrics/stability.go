package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tessera/internal/assignment"
	"tessera/internal/random"
)

// permutations is the number of permutations of the pixels for [Agreement.Permuted].
const permutations = 10

// Agreement measures how similar the atoms of several models are, for example of several seeds. All numbers are means over the
// pairs of models. C_ij is |cosine| of atom i of one model and atom j of the other, and 0 for all-zero atoms.
type Agreement struct {
	// Matched is the mean of C over the one-to-one matching of the atoms with the largest sum. Unmatched atoms of the larger
	// model are ignored. It is 1 for the same atoms in any order, of any sign and scale.
	Matched float64 `json:"matched"`
	// Amari is the distance 1 - (mean_i max_j C_ij + mean_j max_i C_ij) / 2. It is 0 if every atom of each model is, up to
	// sign and scale, also an atom of the other model.
	Amari float64 `json:"amari"`
	// Random is the expected mean of C over a random one-to-one matching, which is the mean of C. A value of Matched close to
	// it shows no agreement.
	Random float64 `json:"random"`
	// Permuted is Matched after a random permutation of the pixels of every atom of the second model, with a different
	// permutation for each atom; it is the mean over 10 draws. The best matching reaches this agreement by chance.
	Permuted float64 `json:"permuted"`
}

// CompareAtoms measures the agreement of the atoms of two or more models, over all pairs of models. The atoms must have the
// same number of pixels; models may have different numbers of atoms. The seed determines the permutations. Fewer than two
// models, a model without atoms and non-finite atoms are errors.
//
// Sources: S. Amari, A. Cichocki, H. H. Yang, A new learning algorithm for blind signal separation, NIPS 8, 1996; as a
// distance of dictionaries: S. Wu et al., Stability-driven nonnegative matrix factorization to interpret spatial gene
// expression and build local gene networks, PNAS 113(16), 2016.
func CompareAtoms(models []*Atoms, seed uint64) (*Agreement, error) {
	if len(models) < 2 {
		return nil, fmt.Errorf("metrics: got the atoms of %d models, want at least 2", len(models))
	}
	if err := comparable(models); err != nil {
		return nil, err
	}
	var sum Agreement
	pairs := 0
	for i, a := range models {
		for j, b := range models[:i] {
			one, err := comparePair(b, a, seed, uint64(i*len(models)+j))
			if err != nil {
				return nil, fmt.Errorf("metrics: atoms of models %d and %d: %w", j, i, err)
			}
			sum.Matched += one.Matched
			sum.Amari += one.Amari
			sum.Random += one.Random
			sum.Permuted += one.Permuted
			pairs++
		}
	}
	n := float64(pairs)
	return &Agreement{sum.Matched / n, sum.Amari / n, sum.Random / n, sum.Permuted / n}, nil
}

// comparable reports models without atoms and atoms of different sizes.
func comparable(models []*Atoms) error {
	for i, a := range models {
		if a == nil || a.Count < 1 {
			return fmt.Errorf("metrics: model %d has no atoms to compare", i)
		}
		if err := a.check(); err != nil {
			return err
		}
		if a.Pixels() != models[0].Pixels() {
			return fmt.Errorf("metrics: the atoms of model %d have %d values, want %d as those of model 0", i, a.Pixels(), models[0].Pixels())
		}
	}
	return nil
}

// Match is a pair of atoms of two models.
type Match struct {
	First  int     `json:"first"` // number of the first model's atom
	Second int     `json:"second"`
	Cosine float64 `json:"cosine"` // |cosine|; 0 for all-zero atoms
}

// MatchAtoms matches the atoms of two models one-to-one, with the largest sum of |cosines|, and returns the pairs, the most
// similar pairs first. Unmatched atoms of the larger model are omitted. The errors are those of [CompareAtoms].
func MatchAtoms(first, second *Atoms) ([]Match, error) {
	if err := comparable([]*Atoms{first, second}); err != nil {
		return nil, err
	}
	cosines := similarities(first.directions(), second.directions(), first.Pixels())
	columns, err := assignment.Maximise(first.Count, second.Count, func(i, j int) float64 { return cosines[i*second.Count+j] })
	if err != nil {
		return nil, fmt.Errorf("metrics: atoms: %w", err)
	}
	var pairs []Match
	for i, j := range columns {
		if j != assignment.None {
			pairs = append(pairs, Match{i, j, cosines[i*second.Count+j]})
		}
	}
	slices.SortStableFunc(pairs, func(a, b Match) int { return cmp.Compare(b.Cosine, a.Cosine) })
	return pairs, nil
}

// comparePair computes the agreement of two models.
func comparePair(a, b *Atoms, seed, pair uint64) (r Agreement, err error) {
	pixels := a.Pixels()
	one, other := a.directions(), b.directions()
	cosines := similarities(one, other, pixels)
	if r.Matched, err = matchedMean(cosines, a.Count, b.Count); err != nil {
		return r, err
	}
	r.Random = mean(cosines, len(cosines))
	ofOne, ofOther := make([]float64, a.Count), make([]float64, b.Count)
	for i, c := range cosines {
		ofOne[i/b.Count] = max(ofOne[i/b.Count], c)
		ofOther[i%b.Count] = max(ofOther[i%b.Count], c)
	}
	r.Amari = 1 - (mean(ofOne, a.Count)+mean(ofOther, b.Count))/2
	for draw := range permutations {
		rng := random.Stream(seed, "stability/pixels", pair*permutations+uint64(draw))
		permuted := slices.Clone(other)
		for j := range b.Count {
			atom := permuted[j*pixels : (j+1)*pixels]
			rng.Shuffle(pixels, func(p, q int) { atom[p], atom[q] = atom[q], atom[p] })
		}
		matched, err := matchedMean(similarities(one, permuted, pixels), a.Count, b.Count)
		if err != nil {
			return r, err
		}
		r.Permuted += matched / permutations
	}
	return r, nil
}

// similarities returns the |cosines| of all rows of one with all rows of other.
func similarities(one, other []float64, pixels int) []float64 {
	c := cosinesOf(one, other, pixels)
	for i, v := range c {
		c[i] = min(math.Abs(v), 1)
	}
	return c
}

// matchedMean returns the mean similarity of the pairs of the best one-to-one matching.
func matchedMean(similarities []float64, rows, columns int) (float64, error) {
	matched, err := assignment.Maximise(rows, columns, func(i, j int) float64 { return similarities[i*columns+j] })
	sum := 0.0
	for i, j := range matched {
		if j != assignment.None {
			sum += similarities[i*columns+j]
		}
	}
	return sum / float64(min(rows, columns)), err
}
