package metrics

import (
	"context"
	"math"

	"tessera/internal/fit"
)

// The cluster of a sample is the nearest centre of a kmeans model, and the most probable component of a gmm or bmm model.
func init() {
	register("clusters", "clusters, the largest values of the codes, compared with the classes", Description{
		Measures: []Measure{
			{Name: "cluster_accuracy", Better: Higher, Doc: "share of the labelled samples whose cluster, the index of the largest value of the code, is matched with their class, by the " +
				"one-to-one matching of clusters and classes that makes it largest (Kuhn 1955). With more clusters than classes those that are left over count as wrong"},
			{Name: "cluster_nmi", Better: Higher, Doc: "mutual information of these clusters and the classes, divided by the larger of their entropies"},
			{Name: "cluster_ari", Better: Higher, Doc: "adjusted Rand index of these clusters and the classes: the share of pairs of samples on which they agree, shifted and scaled so that equal partitions " +
				"have 1 and independent ones 0 on average (Hubert and Arabie 1985)"},
		},
		Reads: ReadsCodes | ReadsLabels, OnRequest: true,
	}, func(s *Subject) (Meter, error) { return &clustersMeter{units: s.Units}, nil })
}

type clustersMeter struct {
	units            int
	clusters, labels []int
}

func (m *clustersMeter) Add(b *Batch) error {
	for i, label := range b.Labels {
		if label >= 0 {
			m.clusters = append(m.clusters, Clusters(b.Codes[i*m.units:(i+1)*m.units], m.units)...)
			m.labels = append(m.labels, label)
		}
	}
	return nil
}

// Clusters returns the cluster of each code: the index of its largest value, the first of equal ones. units is the length of a
// code.
func Clusters(codes []float32, units int) (clusters []int) {
	for ; len(codes) > 0; codes = codes[units:] {
		best := 0
		for j, v := range codes[:units] {
			if v > codes[best] {
				best = j
			}
		}
		clusters = append(clusters, best)
	}
	return clusters
}

func (m *clustersMeter) Values(context.Context) ([]Value, error) {
	classes, labels, err := fit.Classes("clusters", m.labels)
	if err != nil {
		return nil, err
	}
	accuracy, nmi, err := compareClusters(m.clusters, labels, m.units, len(classes))
	return []Value{Number(accuracy), Number(nmi), Number(adjustedRand(m.clusters, labels, m.units, len(classes)))}, err
}

// adjustedRand returns the adjusted Rand index of clusters and classes, both numbered from 0.
func adjustedRand(clusters, classes []int, clusterCount, classCount int) float64 {
	together, ofCluster, ofClass := make([]float64, clusterCount*classCount), make([]float64, clusterCount), make([]float64, classCount)
	for i, c := range clusters {
		together[c*classCount+classes[i]]++
		ofCluster[c]++
		ofClass[classes[i]]++
	}
	pairs := func(counts []float64) (sum float64) {
		for _, n := range counts {
			sum += n * (n - 1) / 2
		}
		return sum
	}
	n := float64(len(clusters))
	all, both, one, other := n*(n-1)/2, pairs(together), pairs(ofCluster), pairs(ofClass)
	expected, most := one*other/math.Max(all, 1), (one+other)/2
	if most == expected { // all in one, or each on its own, in both
		return 1
	}
	return (both - expected) / (most - expected)
}
