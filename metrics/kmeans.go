package metrics

import (
	"context"
	"math"
	"math/rand/v2"

	"tessera/internal/assignment"
	"tessera/internal/fit"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

func init() {
	Registry.Register("kmeans", "clusters of the codes compared with the classes", func() Metric { return &KMeans{Seed: 1, Starts: 10} })
}

// KMeans clusters the contributions of the labelled samples by k-means, with one cluster per class, and compares the clusters with the classes.
//
// Lloyd's algorithm (at most 300 iterations) begins with k-means++. The seed is a setting of the metric, not of the run, so that all models have the
// same initialisations.
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
			{Name: "kmeans_accuracy", Better: Higher, Doc: "share of the labelled samples whose cluster is matched with their class, by the best one-to-one matching. " +
				"k-means of the contributions h_j \\|w_j\\|₂, with as many clusters as classes, the best of 10 starts (Cai et al. 2011); only where every " +
				"value of a code weighs one atom"},
			{Name: "kmeans_nmi", Better: Higher, Doc: "mutual information of these clusters and the classes, divided by the larger of their entropies"},
		},
		Reads: ReadsCodes | ReadsSums | ReadsLabels, ScaleFree: true, Ordered: true, OnRequest: true,
	}
}

func (m *KMeans) Start(s *Subject) (Meter, error) {
	seed, starts := m.Seed, m.Starts
	if starts < 1 {
		starts = 10
	}
	return contributionReadout("kmeans", s, func(ctx context.Context, p *fit.Labelled) ([]Value, error) {
		k := len(p.Classes)
		clusters, err := fit.Clusters(ctx, vectors.Narrow(p.Rows), p.Width, k, starts, func(start int) *rand.Rand { return random.Stream(seed, "kmeans/start", uint64(start)) })
		if err != nil {
			return nil, err
		}
		accuracy, nmi, err := compareClusters(clusters, p.Labels, k, k)
		return []Value{Number(accuracy), Number(nmi)}, err
	}), nil
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
