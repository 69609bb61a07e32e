package classical

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/metrics"
)

// StablePart is a part of a consensus.
type StablePart struct {
	Seeds      int     `json:"seeds"`             // fits that have it
	Similarity float64 `json:"similarity"`        // mean cosine of their atoms with it
	Columns    string  `json:"columns,omitempty"` // names of its largest columns, if the caller knows them
}

const (
	neighbourhood  = 0.3 // nearest neighbours of an atom whose distances count, as a share of the fits
	mostApart      = 0.5 // largest mean distance from them of an atom that is part of the consensus
	consensusTries = 10  // starts of the clustering of atoms
)

// Consensus fits a factorisation with non-negative codes from several random starts for each number of components. The atoms of all fits,
// scaled to norm 1, are clustered by k-means into as many clusters as there are components: the stability is the mean silhouette of these
// clusters, as in consensus NMF. A part of the consensus is the median of the atoms of a cluster, without atoms whose mean distance from their nearest
// neighbours, three tenths of the number of fits, is more than 0.5. Its error is that of non-negative least-squares codes. Choose a large number whose stability is
// high. report, which may be nil, is called after each fit. See [Rank].
//
// Source: D. Kotliar et al., Identifying gene expression programs of cell-type identity and cellular activity with single-cell RNA-Seq,
// eLife 8, 2019.
func Consensus(ctx context.Context, method Method, images Images, components []int, seeds int, seed uint64, report func(done, all int)) (*Ranking, error) {
	if ctx == nil || method == nil || images == nil {
		return nil, errors.New("classical: consensus: no method, no samples or no context")
	}
	if err := complete(images); err != nil {
		return nil, err
	}
	switch method.(type) {
	case *NMF, *SparseNMF, *SemiNMF, *OrthogonalNMF, *LocalNMF:
	default:
		return nil, part.KeyError{Key: "kind", Problem: `a consensus is one of fits with non-negative codes: want kind = "nmf", "sparse_nmf", "semi_nmf", "orthogonal_nmf" or "local_nmf"`}
	}
	if seeds < 3 || len(components) == 0 || slices.Min(components) < 1 || slices.Max(components) > images.Len() {
		return nil, fmt.Errorf("got %d seeds and the components %v, want at least 3 seeds, and numbers from 1 to %d, that of the samples", seeds, components, images.Len())
	}
	started := reflect.New(reflect.TypeOf(method).Elem()) // the method from random starts
	started.Elem().Set(reflect.ValueOf(method).Elem())
	if init := started.Elem().FieldByName("Init"); init.IsValid() {
		init.SetString("random")
	}
	x, err := (&Base{pixels: images.Pixels(), fit: Fitting{Signed: true}}).rows(images)
	if err != nil {
		return nil, err
	}
	r := &Ranking{Measures: []RankMeasure{{Key: "mse", Name: "mse of the fits"}, {Key: "consensus_mse", Name: "mse of the consensus"},
		{Key: "stability", Name: "stability", Choice: Highest, Mark: "most stable"}}}
	for i, k := range components {
		var atoms []float32
		var errs []float64
		for run := range seeds {
			m, err := fitTo(ctx, started.Interface().(Method), k, seed+uint64(run), images)
			if err != nil {
				return nil, err
			}
			all, codes := m.Atoms().Values, m.Codes()
			if codes == nil {
				return nil, fmt.Errorf("classical: consensus: the method keeps no codes: want batch = 0")
			}
			errs, atoms = append(errs, meanError(x, all, codes, k)), append(atoms, all...)
			if report != nil {
				report(i*seeds+run+1, seeds*len(components))
			}
		}
		one := r.Add(k, standardError(errs), lists.Sum(errs)/float64(seeds))
		stability, err := one.agree(ctx, atoms, x.Width, seeds, seed)
		if err != nil {
			return nil, err
		}
		consensus := meanError(x, one.Atoms.Values, nil, one.Atoms.Count)
		one.Values = append(one.Values, &consensus, stability)
	}
	return r, nil
}

// agree sets the parts from the atoms of all fits, which it scales to norm 1. It returns their stability: the mean silhouette of the atoms in as
// many clusters as components.
func (r *Ranked) agree(ctx context.Context, atoms []float32, p, seeds int, seed uint64) (stability *float64, err error) {
	k := r.Components
	unit := func(row []float32) {
		if norm := rowNorm(row); norm > 0 {
			kernel.Float32().DivScalar(row, row, norm)
		}
	}
	for row := range slices.Chunk(atoms, p) {
		unit(row)
	}
	starts := func(start int) *rand.Rand { return random.Stream(seed, "consensus", uint64(start)) }
	clusters, err := fit.Clusters(ctx, atoms, p, k, consensusTries, starts)
	if err != nil {
		return nil, err
	}
	stability = silhouetteOf(atoms, p, clusters)
	near := nearAtoms(atoms, p, max(1, int(neighbourhood*float64(seeds))))
	if r.LeftOut = 1 - float64(len(near))/float64(k*seeds); len(near) < k {
		r.LeftOut, near = 0, span(nil, 0, k*seeds)
	}
	var kept []float32
	for _, i := range near {
		kept = append(kept, atoms[i*p:(i+1)*p]...)
	}
	if r.LeftOut > 0 {
		if clusters, err = fit.Clusters(ctx, kept, p, k, consensusTries, starts); err != nil {
			return nil, err
		}
	}
	type found struct {
		StablePart
		atom []float32
	}
	var parts []found
	for c := range k {
		one, fits, column := found{atom: make([]float32, p)}, map[int]bool{}, []float32(nil)
		var members []int
		for i, of := range clusters {
			if of == c {
				members, fits[near[i]/k] = append(members, i), true
			}
		}
		if members == nil {
			continue
		}
		for j := range p {
			column = column[:0]
			for _, i := range members {
				column = append(column, kept[i*p+j])
			}
			slices.Sort(column)
			one.atom[j] = (column[(len(column)-1)/2] + column[len(column)/2]) / 2
		}
		unit(one.atom)
		for _, i := range members {
			one.Similarity += float64(kernel.Float32().Dot(one.atom, kept[i*p:(i+1)*p])) / float64(len(members))
		}
		one.Seeds = len(fits)
		parts = append(parts, one)
	}
	slices.SortStableFunc(parts, func(a, b found) int {
		return cmp.Compare(float64(b.Seeds)*b.Similarity, float64(a.Seeds)*a.Similarity)
	})
	r.Atoms = metrics.Atoms{Shape: []int{p}, Count: len(parts)}
	for _, one := range parts {
		r.Parts, r.Atoms.Values = append(r.Parts, one.StablePart), append(r.Atoms.Values, one.atom...)
	}
	return stability, nil
}

// nearAtoms returns the atoms whose mean distance from their nearest neighbours is at most [mostApart].
func nearAtoms(atoms []float32, p, neighbours int) (list []int) {
	n := len(atoms) / p
	for i := range n {
		var distances []float64
		for j := range n {
			if j != i {
				distances = append(distances, math.Sqrt(float64(kernel.Float32().SquaredDistance(atoms[i*p:(i+1)*p], atoms[j*p:(j+1)*p]))))
			}
		}
		slices.Sort(distances)
		if most := min(neighbours, len(distances)); lists.Sum(distances[:most]) <= mostApart*float64(most) {
			list = append(list, i)
		}
	}
	return list
}

// meanError returns the mean squared error of rows by atoms (k x p), with given codes (n x k), or with non-negative least-squares codes.
func meanError(x fit.Rows, atoms, codes []float32, k int) float64 {
	total := sumLanesOf(x.N, x.Step(), func(memory *blocks, from, to int) (sum float64) {
		rows := x.Block(&memory.rows, from, to)
		var own []float32
		if codes == nil {
			own = encodeSquared(rows, atoms, k, x.Width, encodePrecision)
		} else {
			own = codes[from*k : to*k]
		}
		y := memory.result(len(rows))
		kernel.Float32().Gemm(false, false, to-from, x.Width, k, 1, own, k, atoms, x.Width, 0, y, x.Width)
		return float64(kernel.Float32().SquaredDistance(rows, y))
	})
	return total / float64(x.N) / float64(x.Width)
}
