package classical

import (
	"cmp"
	"context"
	"math"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

var _ Algorithm = (*kmeans)(nil)

// KMeans finds centres W that minimise the sum over images of the squared distance to the nearest centre. It starts with
// greedy k-means++ (each centre is the best of 2 + log k images that are drawn with a probability proportional to their
// squared distance from the nearest previous centre) and continues with Lloyd's iterations, which never raise the sum. The
// code of an image is 1 at its nearest centre (the first of equally near ones) and 0 elsewhere. A centre without images moves
// to the image that is farthest from its centre. The result is the best of several fits, by default three.
//
// With batch > 0 the images are read in shuffled mini-batches and are never all in memory (Sculley 2010): a centre is the mean
// of all images that were nearest to it when their batch was read. An iteration is one pass over the images.
//
// With soft > 0 the code of an image is softmax(-d / (soft D)) for its squared distances d from the centres, where D is the
// mean squared distance of the fitted images from their nearest centres. These codes are the probabilities of equal spherical
// normal distributions around the centres. The centres do not change.
//
// Sources: S. Lloyd, Least squares quantization in PCM, IEEE Trans. Information Theory 28(2), 1982; D. Arthur, S.
// Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007, whose last section describes the greedy choice; D.
// Sculley, Web-scale k-means clustering, WWW 2010.
type KMeans struct {
	Components int     `toml:"components" want:"> 0" doc:"centres"`
	Iterations int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance  float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the error by less than this fraction of it"`
	Restarts   int     `toml:"restarts" want:"> 0" doc:"fits from different random starts, the best of which is the result"`
	Batch      int     `toml:"batch" want:">= 0" optional:"true" doc:"mini-batch size; 0 means Lloyd's iterations over all images"`
	Soft       float64 `toml:"soft" want:">= 0" optional:"true" doc:"temperature of soft assignments, in mean squared distances of images from their centres; 0 assigns an image to one centre"`
}

func init() {
	Registry.Register("kmeans", "k-means: every image is reconstructed as its nearest centre",
		func() Method { return &KMeans{Components: 100, Iterations: 200, Tolerance: 1e-4, Restarts: 3} })
}

func (s *KMeans) Describe() Fitting {
	return Fitting{Name: "kmeans", Measures: measuresOfCentres, Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance, Signed: true,
		Sizes: func(images, pixels int) error {
			return cmp.Or(atMostImages(s.Components, images), Bounded(s.Components, "atoms", pixels))
		}}
}

func (s *KMeans) New(shape []int, seed uint64) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm {
		if s.Batch > 0 {
			return &kmeansBatch{kmeans: kmeans{Base: b, soft: s.Soft}, passes: passes{batch: s.Batch}}
		}
		return &kmeans{Base: b, soft: s.Soft}
	})
}

type kmeans struct {
	Base
	soft float64 // temperature of the codes; 0 for one-hot codes

	n         int
	x         []float32
	nearest   []int32   // index of the nearest centre of each image
	distances []float32 // squared distance of each image to its nearest centre
	among     search    // the centres to which nearest and distances refer
	sums      *laneSums // sum of the images of each centre, minus the origin
}

func (m *kmeans) Start(images Images) (err error) {
	m.n = images.Len()
	if m.x, err = m.Load(images); err != nil {
		return err
	}
	m.nearest, m.distances = make([]int32, m.n), make([]float32, m.n)
	m.sums = newLaneSums(m.n, m.units*m.pixels)
	fresh := m.atoms == nil
	if fresh {
		m.seedCentres()
	}
	// A restored fit computes the same assignment as an uninterrupted one, because it depends only on the centres.
	m.assign()
	if fresh {
		m.objective = m.meanDistance()
	}
	return nil
}

func (m *kmeans) image(i int) []float32 { return m.x[i*m.pixels : (i+1)*m.pixels] }

func (m *kmeans) Improve(context.Context) (float64, error) {
	m.moveCentres()
	m.assign()
	return m.meanDistance(), nil
}

// assign finds the nearest centre of every image, and its distance.
func (m *kmeans) assign() {
	m.among = m.search()
	team.For(m.n, blockSize, func(from, to int) {
		m.among.nearest(m.x[from*m.pixels:to*m.pixels], m.nearest[from:to])
		for i := from; i < to; i++ {
			c := int(m.nearest[i]) * m.pixels
			m.distances[i] = kernel.Float32().SquaredDistance(m.image(i), m.atoms[c:c+m.pixels])
		}
	})
}

// search finds nearest centres. The mean of the centres is subtracted from all values, so that a large common offset of the
// images does not reduce the precision of the products.
type search struct {
	origin, centres []float32 // mean of the centres, and the centres minus this mean
	halves          []float32 // half the squared norm of each centre, after subtraction of the origin
}

func (m *kmeans) search() search {
	origin := columnMeans(m.atoms, m.units, m.pixels)
	s := search{origin, subtractRow(m.atoms, origin), make([]float32, m.units)}
	for j := range s.halves {
		s.halves[j] = kernel.Float32().SumSquares(s.centres[j*m.pixels:(j+1)*m.pixels]) / 2
	}
	return s
}

// nearest writes the index of the nearest centre of each image x: the centre c with the largest xc - |c|^2/2.
func (s *search) nearest(images []float32, nearest []int32) {
	n, k, p := len(nearest), len(s.halves), len(s.origin)
	products := make([]float32, n*k)
	kernel.Float32().Gemm(false, true, n, k, p, 1, subtractRow(images, s.origin), p, s.centres, p, 0, products, k)
	for i := range nearest {
		row := products[i*k : (i+1)*k]
		best := 0
		for j, v := range row {
			if v-s.halves[j] > row[best]-s.halves[best] {
				best = j
			}
		}
		nearest[i] = int32(best)
	}
}

// moveCentres moves every centre to the mean of its images.
func (m *kmeans) moveCentres() {
	ops, p := kernel.Float32(), m.pixels
	m.sums.reset()
	origin := m.among.origin
	forLanes(m.n, func(lane, from, to int) {
		image := make([]float32, p)
		for i := from; i < to; i++ {
			sum := m.sums.sums[lane][int(m.nearest[i])*p : (int(m.nearest[i])+1)*p]
			ops.Sub(image, m.image(i), origin)
			ops.Add(sum, sum, image)
		}
	})
	total := make([]float32, m.units*p)
	m.sums.total(total)
	counts := make([]int, m.units)
	for _, c := range m.nearest {
		counts[c]++
	}
	for j, count := range counts {
		centre := m.atoms[j*p : (j+1)*p]
		if count > 0 {
			ops.DivScalar(centre, total[j*p:(j+1)*p], float32(count))
			ops.Add(centre, centre, origin)
		} else if far := m.farthest(); m.distances[far] > 0 {
			copy(centre, m.image(far))
			m.distances[far] = 0 // another empty centre takes the next
		}
	}
}

func (m *kmeans) farthest() int {
	far := 0
	for i, d := range m.distances {
		if d > m.distances[far] {
			far = i
		}
	}
	return far
}

func (m *kmeans) meanDistance() float64 {
	var sum float64
	for _, d := range m.distances {
		sum += float64(d)
	}
	return sum / float64(m.n) / float64(m.pixels)
}

// sharpness returns the factor of the squared distances in soft codes.
func (m *kmeans) sharpness() float64 {
	return 1 / max(m.soft*m.objective*float64(m.pixels), leastVariance)
}

// soften writes the soft codes of images.
func (m *kmeans) soften(codes, images []float32) {
	by, p := m.sharpness(), m.pixels
	team.For(len(images)/p, blockSize, func(from, to int) {
		distances := make([]float64, m.units)
		for i := from; i < to; i++ {
			least := math.Inf(1)
			for c := range distances {
				distances[c] = float64(kernel.Float32().SquaredDistance(images[i*p:(i+1)*p], m.atom(c)))
				least = min(least, distances[c])
			}
			total := 0.0
			for c, d := range distances {
				distances[c] = math.Exp(-by * (d - least))
				total += distances[c]
			}
			for c, e := range distances {
				codes[i*m.units+c] = float32(e / total)
			}
		}
	})
}

func (m *kmeans) Infer(images []float32) ([]float32, error) {
	if m.soft > 0 {
		codes := make([]float32, len(images)/m.pixels*m.units)
		m.soften(codes, images)
		return codes, nil
	}
	n := len(images) / m.pixels
	codes, nearest, among := make([]float32, n*m.units), make([]int32, n), m.search()
	team.For(n, blockSize, func(from, to int) {
		among.nearest(images[from*m.pixels:to*m.pixels], nearest[from:to])
	})
	for i, c := range nearest {
		codes[i*m.units+int(c)] = 1
	}
	return codes, nil
}

// expression implements expressed: 1 for the nearest centre (the first of equally near ones) and 0 for the others. It computes
// the distances like [search]. Soft codes are the softmax of the scores.
func (m *kmeans) expression(p *ir.Module, x *ir.Value) *ir.Value {
	k, s := m.units, m.search()
	shape := []int{x.Shape[0], k}
	near := ir.Point(ir.Sub, x.Shape, x, row(p, "origin", s.origin))
	g := &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{near, parameter(p, "centres", []int{k, m.pixels}, s.centres)}, Shape: shape}
	score := ir.Point(ir.Sub, shape, g, row(p, "half squares", s.halves))
	best := ir.Reduce(ir.Max, score, []int{x.Shape[0], 1}, 1)
	if m.soft > 0 {
		below := ir.Point(ir.Sub, shape, score, ir.Broadcasted(best, shape))
		e := ir.Point(ir.Exp, shape, ir.Point(ir.Mul, shape, below, ir.Uniform(2*m.sharpness(), shape)))
		return ir.Point(ir.Div, shape, e, ir.Broadcasted(ir.Reduce(ir.Sum, e, []int{x.Shape[0], 1}, 1), shape))
	}
	tied := ir.Point(ir.Eq, shape, score, ir.Broadcasted(best, shape))
	before := make([]float32, k*k) // 1 in row i, column j where i < j
	for i := range k {
		for j := i + 1; j < k; j++ {
			before[i*k+j] = 1
		}
	}
	earlier := &ir.Value{Op: ir.Product{}, Args: []*ir.Value{tied, parameter(p, "before", []int{k, k}, before)}, Shape: shape}
	return ir.Point(ir.Mul, shape, tied, ir.Point(ir.Eq, shape, earlier, row(p, "none before", make([]float32, k))))
}

// seedCentres draws the first centres.
func (m *kmeans) seedCentres() {
	rng := m.Random("init/centres")
	trials := 2 + int(math.Log(float64(m.units)))
	m.atoms = make([]float32, 0, m.units*m.pixels)
	for i := range m.distances {
		m.distances[i] = math.MaxFloat32
	}
	candidates := []int{rng.IntN(m.n)}
	for range m.units {
		m.atoms = append(m.atoms, m.image(m.bestCentre(candidates))...)
		candidates = candidates[:0]
		for range trials {
			candidates = append(candidates, draw(m.distances, rng.Float64()))
		}
	}
}

// bestCentre returns the candidate with the smallest resulting sum of squared distances, the first of equal ones, and updates
// the distances for it.
func (m *kmeans) bestCentre(candidates []int) int {
	sums := make([][]float64, laneCount(m.n))
	forLanes(m.n, func(lane, from, to int) {
		if sums[lane] == nil {
			sums[lane] = make([]float64, len(candidates))
		}
		for i := from; i < to; i++ {
			for c, candidate := range candidates {
				sums[lane][c] += float64(min(m.distances[i], kernel.Float32().SquaredDistance(m.image(i), m.image(candidate))))
			}
		}
	})
	best, least := 0, math.Inf(1)
	for c := range candidates {
		total := 0.0
		for _, s := range sums {
			total += s[c]
		}
		if total < least {
			best, least = c, total
		}
	}
	centre := m.image(candidates[best])
	team.For(m.n, blockSize, func(from, to int) {
		for i := from; i < to; i++ {
			m.distances[i] = min(m.distances[i], kernel.Float32().SquaredDistance(m.image(i), centre))
		}
	})
	return candidates[best]
}

// draw returns an index with a probability proportional to its weight, for u uniform in [0,1).
func draw(weights []float32, u float64) int {
	var total float64
	for _, w := range weights {
		total += float64(w)
	}
	if total == 0 {
		return int(u * float64(len(weights)))
	}
	left, last := u*total, 0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		last = i
		if left -= float64(w); left < 0 {
			break
		}
	}
	return last
}
