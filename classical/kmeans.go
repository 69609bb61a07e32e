package classical

import (
	"cmp"
	"context"
	"math"

	"tessera/internal/engine/ir"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
)

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
	Batch      int     `toml:"batch" want:">= 0" optional:"true" doc:"mini-batch size; 0 means Lloyd's iterations over all samples"`
	Soft       float64 `toml:"soft" want:">= 0" optional:"true" doc:"temperature of soft assignments, in mean squared distances of samples from their centres; 0 assigns a sample to one centre"`
}

func init() {
	Registry.Register("kmeans", "k-means: every sample is reconstructed as its nearest centre",
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
	*fit.KMeans         // of the fitted images; nil without a fit
	soft        float64 // temperature of the codes; 0 for one-hot codes
}

func (m *kmeans) Start(images Images) error {
	rows, err := m.Base.rows(images)
	if err != nil {
		return err
	}
	m.KMeans = fit.NewKMeans(rows, m.atoms)
	fresh := m.atoms == nil
	if fresh {
		m.seedCentres()
	}
	// A restored fit computes the same assignment as an uninterrupted one, because it depends only on the centres.
	m.Assign()
	if fresh {
		m.objective = m.meanDistance()
	}
	return nil
}

func (m *kmeans) seedCentres() {
	m.Seed(m.units, 2+int(math.Log(float64(m.units))), m.Random("init/centres"))
	m.atoms = m.Centres
}

func (m *kmeans) Improve(context.Context) (float64, error) {
	m.Move()
	m.Assign()
	return m.meanDistance(), nil
}

func (m *kmeans) meanDistance() float64 {
	return m.Sum() / float64(len(m.Distances)) / float64(m.pixels)
}

func (m *kmeans) search() fit.Search { return fit.NewSearch(m.atoms, m.pixels) }

// sharpness returns the factor of the squared distances in soft codes.
func (m *kmeans) sharpness() float64 {
	return 1 / max(m.soft*m.objective*float64(m.pixels), leastVariance)
}

// soften writes the soft codes of images.
func (m *kmeans) soften(codes, images []float32) {
	by, p := m.sharpness(), m.pixels
	team.For(len(images)/p, fit.BlockSize, func(from, to int) {
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
	team.For(n, fit.BlockSize, func(from, to int) {
		among.Nearest(images[from*m.pixels:to*m.pixels], nearest[from:to])
	})
	for i, c := range nearest {
		codes[i*m.units+int(c)] = 1
	}
	return codes, nil
}

// expression implements expressed: 1 for the nearest centre (the first of equally near ones) and 0 for the others. It computes
// the distances like [fit.Search]. Soft codes are the softmax of the scores.
func (m *kmeans) expression(p *ir.Module, x *ir.Value) *ir.Value {
	k, s := m.units, m.search()
	shape := []int{x.Shape[0], k}
	near := ir.Point(ir.Sub, x.Shape, x, row(p, "origin", s.Origin))
	g := &ir.Value{Op: ir.Product{TransB: true}, Args: []*ir.Value{near, parameter(p, "centres", []int{k, m.pixels}, s.Centres)}, Shape: shape}
	score := ir.Point(ir.Sub, shape, g, row(p, "half squares", s.Halves))
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
