package metrics

import (
	"context"
	"math"

	"tessera/internal/assignment"
	"tessera/internal/random"
)

func init() {
	Registry.Register("kmeans", "clusters of the codes beside the classes", func() Metric { return &KMeans{Seed: 1, Starts: 10} })
}

// KMeans clusters the contributions h_j |w_j|_2 of the labelled images by k-means, with as many clusters as classes, and
// compares the clusters with the classes:
//
//	kmeans_accuracy  share of the images whose cluster is matched with their class, by the one-to-one matching of clusters
//	                 and classes that makes it largest
//	kmeans_nmi       I(clusters; classes) / max(H(clusters), H(classes)), the mutual information of the two
//
// The clusters are those of the least sum of squared distances of Starts runs of Lloyd's algorithm (at most 300 iterations),
// each from a start by k-means++. The seed is that of the metric and not of the run, so that all models have the same starts.
//
// Source: D. Cai, X. He, J. Han, T. S. Huang, Graph regularized nonnegative matrix factorization for data representation,
// IEEE Trans. Pattern Analysis and Machine Intelligence 33(8), 2011 (section 5.2).
type KMeans struct {
	Seed   uint64 `toml:"seed" doc:"seed of the starts"`
	Starts int    `toml:"starts" want:"> 0" doc:"how often k-means is started; 0 takes 10"`
}

// Describe implements [Metric].
func (*KMeans) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "kmeans_accuracy", Better: Higher, Doc: "share of the labelled images whose cluster is that of their class, by the best one-to-one matching. " +
				"k-means of the contributions h_j \\|w_j\\|₂, with as many clusters as classes, the best of 10 starts (Cai et al. 2011); only where every " +
				"value of a code weighs one atom"},
			{Name: "kmeans_nmi", Better: Higher, Doc: "mutual information of these clusters and the classes, divided by the larger of their entropies"},
		},
		Reads: ReadsCodes | ReadsAtoms | ReadsLabels, ScaleFree: true, Ordered: true, Partial: true, OnRequest: true,
	}
}

// Start implements [Metric].
func (m *KMeans) Start(s *Subject) (Meter, error) {
	if why := otherAtoms(s); why != "" {
		return Fixed(NotApplicable(why), NotApplicable(why)), nil
	}
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

// Values implements [Meter].
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
	accuracy, nmi, err := compareClusters(best, labels, classes)
	return []Value{Number(accuracy), Number(nmi)}, err
}

// compareClusters returns accuracy and normalised mutual information of clusters, both numbered from 0 to count-1. With one
// cluster and one class, nothing is to be known: the information is 0.
func compareClusters(clusters, classes []int, count int) (accuracy, nmi float64, err error) {
	together := make([]float64, count*count)
	ofCluster, ofClass := make([]float64, count), make([]float64, count)
	n := float64(len(classes))
	for i, c := range clusters {
		together[c*count+classes[i]] += 1 / n
		ofCluster[c] += 1 / n
		ofClass[classes[i]] += 1 / n
	}
	matched, err := assignment.Maximise(count, count, func(i, j int) float64 { return together[i*count+j] })
	if err != nil {
		return 0, 0, err
	}
	information := 0.0
	for i, p := range together {
		if p > 0 {
			information += p * math.Log(p/(ofCluster[i/count]*ofClass[i%count]))
		}
	}
	for i, j := range matched {
		accuracy += together[i*count+j]
	}
	if most := max(entropyOf(ofCluster), entropyOf(ofClass)); most > 0 {
		nmi = max(0, information) / most
	}
	return accuracy, nmi, nil
}

// entropyOf is the entropy of a distribution in nats.
func entropyOf(p []float64) (sum float64) {
	for _, v := range p {
		if v > 0 {
			sum -= v * math.Log(v)
		}
	}
	return sum
}
