package metrics

import (
	"context"
	"math"
	"math/rand/v2"

	"tessera/internal/assignment"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
)

func init() {
	Registry.Register("kmeans", "clusters of the codes compared with the classes", func() Metric { return &KMeans{Seed: 1, Starts: 10} })
}

// KMeans clusters the contributions h_j |w_j|_2 of the labelled images by k-means, with one cluster per class, and compares
// the clusters with the classes:
//
//	kmeans_accuracy  share of the images whose cluster is matched with their class, for the one-to-one matching of clusters
//	                 and classes with the largest share
//	kmeans_nmi       I(clusters; classes) / max(H(clusters), H(classes)), the normalised mutual information
//
// Lloyd's algorithm (at most 300 iterations) runs from Starts initialisations by k-means++; the result is the clustering with
// the smallest sum of squared distances. The seed is a setting of the metric, not of the run, so that all models have the same
// initialisations.
//
// Source: D. Cai, X. He, J. Han, T. S. Huang, Graph regularized nonnegative matrix factorization for data representation, IEEE
// Trans. Pattern Analysis and Machine Intelligence 33(8), 2011 (section 5.2).
type KMeans struct {
	Seed   uint64 `toml:"seed" doc:"seed of the starts"`
	Starts int    `toml:"starts" want:"> 0" doc:"number of starts of k-means; 0 means 10"`
}

func (*KMeans) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "kmeans_accuracy", Better: Higher, Doc: "share of the labelled images whose cluster is matched with their class, by the best one-to-one matching. " +
				"k-means of the contributions h_j \\|w_j\\|₂, with as many clusters as classes, the best of 10 starts (Cai et al. 2011); only where every " +
				"value of a code weighs one atom"},
			{Name: "kmeans_nmi", Better: Higher, Doc: "mutual information of these clusters and the classes, divided by the larger of their entropies"},
		},
		Reads: ReadsCodes | ReadsSums | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *KMeans) Start(s *Subject) (Meter, error) {
	meter := &kmeansMeter{labelled: newLabelled("kmeans", s), seed: m.Seed, starts: m.Starts}
	if meter.starts < 1 {
		meter.starts = 10
	}
	return meter, nil
}

type kmeansMeter struct {
	labelled
	seed   uint64
	starts int
}

func (m *kmeansMeter) Values(ctx context.Context) ([]Value, error) {
	labels, classes, err := m.classes()
	if err != nil {
		return nil, err
	}
	l := &lloyd{rows: m.rows, width: len(m.scales)}
	var best []int
	least := math.Inf(1)
	for start := range m.starts {
		l.seed(classes, random.Stream(m.seed, "kmeans/start", uint64(start)))
		sum, err := l.run(ctx)
		if err != nil {
			return nil, err
		}
		if best == nil || sum < least {
			least, best = sum, append(best[:0], l.nearest...)
		}
	}
	accuracy, nmi, err := compareClusters(best, labels, classes, classes)
	return []Value{Number(accuracy), Number(nmi)}, err
}

// compareClusters returns accuracy and normalised mutual information of clusters and classes, both numbered from 0. The mutual
// information is 0 if there is only one cluster or one class.
func compareClusters(clusters, classes []int, clusterCount, classCount int) (accuracy, nmi float64, err error) {
	together := make([]float64, clusterCount*classCount)
	ofCluster, ofClass := make([]float64, clusterCount), make([]float64, classCount)
	for i, c := range clusters {
		together[c*classCount+classes[i]]++
		ofCluster[c]++
		ofClass[classes[i]]++
	}
	matched, err := assignment.Maximise(clusterCount, classCount, func(i, j int) float64 { return together[i*classCount+j] })
	if err != nil {
		return 0, 0, err
	}
	right := 0.0
	for i, j := range matched {
		if j >= 0 {
			right += together[i*classCount+j]
		}
	}
	n := float64(len(classes))
	for _, counts := range [][]float64{together, ofCluster, ofClass} {
		for i := range counts {
			counts[i] /= n
		}
	}
	information := 0.0
	for i, p := range together {
		if p > 0 {
			information += p * math.Log(p/(ofCluster[i/classCount]*ofClass[i%classCount]))
		}
	}
	if most := max(entropyOf(ofCluster), entropyOf(ofClass)); most > 0 {
		nmi = max(0, information) / most
	}
	return right / n, nmi, nil
}

// entropyOf returns the entropy of a distribution in nats.
func entropyOf(p []float64) (sum float64) {
	for _, v := range p {
		if v > 0 {
			sum -= v * math.Log(v)
		}
	}
	return sum
}

// lloydIterations is the maximum number of iterations from one initialisation of k-means.
const lloydIterations = 300

// lloyd is Lloyd's algorithm for k-means in float64. It ends when no row changes its cluster.
type lloyd struct {
	rows      []float64 // n x width
	width     int
	centres   []float64 // clusters x width
	nearest   []int     // cluster of each row
	distances []float64 // squared distance of each row to its centre
}

func (l *lloyd) row(i int) []float64    { return l.rows[i*l.width : (i+1)*l.width] }
func (l *lloyd) centre(c int) []float64 { return l.centres[c*l.width : (c+1)*l.width] }

// seed draws the initial centres by k-means++: rows, with a probability proportional to the squared distance from the nearest
// centre so far.
func (l *lloyd) seed(clusters int, r *rand.Rand) {
	n := len(l.rows) / l.width
	l.centres = append(make([]float64, 0, clusters*l.width), l.row(r.IntN(n))...)
	nearest := make([]float64, n)
	for c := 1; c < clusters; c++ {
		total := 0.0
		for i := range nearest {
			if d := squaredDistance(l.row(i), l.centre(c-1)); c == 1 || d < nearest[i] {
				nearest[i] = d
			}
			total += nearest[i]
		}
		chosen, left := 0, r.Float64()*total
		for i, d := range nearest {
			if d > 0 {
				chosen = i
				if left -= d; left < 0 {
					break
				}
			}
		}
		l.centres = append(l.centres, l.row(chosen)...)
	}
}

// run updates the centres until no row changes its cluster, and returns the sum of squared distances.
func (l *lloyd) run(ctx context.Context) (sum float64, err error) {
	n := len(l.rows) / l.width
	l.nearest, l.distances = make([]int, n), make([]float64, n)
	for i := range l.nearest {
		l.nearest[i] = -1
	}
	for iteration := 0; l.assign() && iteration < lloydIterations; iteration++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		l.move()
	}
	return mean(l.distances, 1), nil
}

// assign finds the nearest centre of every row, the first of equally near ones, and reports whether any assignment changed.
func (l *lloyd) assign() bool {
	n := len(l.nearest)
	changed := make([]bool, n)
	team.For(n, 200, func(from, to int) {
		for i := from; i < to; i++ {
			best, least := 0, math.Inf(1)
			for c := range len(l.centres) / l.width {
				if d := squaredDistance(l.row(i), l.centre(c)); d < least {
					best, least = c, d
				}
			}
			changed[i] = best != l.nearest[i]
			l.nearest[i], l.distances[i] = best, least
		}
	})
	for _, c := range changed {
		if c {
			return true
		}
	}
	return false
}

// move sets every centre to the mean of its rows. A centre without rows becomes the row that is farthest from its centre.
func (l *lloyd) move() {
	counts := make([]int, len(l.centres)/l.width)
	clear(l.centres)
	for i, c := range l.nearest {
		counts[c]++
		for j, v := range l.row(i) {
			l.centres[c*l.width+j] += v
		}
	}
	for c, count := range counts {
		if count > 0 {
			for j := range l.width {
				l.centres[c*l.width+j] /= float64(count)
			}
			continue
		}
		farthest := 0
		for i, d := range l.distances {
			if d > l.distances[farthest] {
				farthest = i
			}
		}
		copy(l.centre(c), l.row(farthest))
		l.distances[farthest] = 0
	}
}
