package metrics

import (
	"context"
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
)

func init() {
	register("silhouette", "silhouette of the clusters, the largest values of the codes", Description{
		Measures: []Measure{{Name: "silhouette", Better: Higher, Doc: "mean over samples of (b - a) / max(a, b) for the mean distance a of a sample from the others of its cluster, the index of the largest " +
			"value of the code, and the least mean distance b from the samples of another cluster (Rousseeuw 1987). 1 for clusters that are far apart, below 0 for samples that are nearer " +
			"to another cluster. Of at most 2000 samples, evenly spaced"}},
		Reads: ReadsImages | ReadsCodes, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		return &silhouetteMeter{newSpaced(s, volume.Of(s.Shape), MostSilhouette), newSpaced(s, s.Units, MostSilhouette)}, nil
	})
}

// MostSilhouette is the maximum number of images for the metric silhouette, which computes the distances of all pairs.
const MostSilhouette = 2000

type silhouetteMeter struct{ images, codes spaced }

func (m *silhouetteMeter) Add(b *Batch) error {
	m.images.add(b.Images)
	m.codes.add(b.Codes)
	return nil
}

func (m *silhouetteMeter) Values(context.Context) ([]Value, error) {
	mean, ok := Silhouette(m.images.rows, m.images.width, Clusters(m.codes.rows, m.codes.width))
	if !ok {
		return []Value{NotApplicable("all samples are in one cluster")}, nil
	}
	return []Value{Number(mean)}, nil
}

// Silhouette returns the mean silhouette of the rows of a matrix with the given width. clusters contains the cluster of each
// row, numbered from 0. The silhouette of a row alone in its cluster is 0. ok is false if there are fewer than two clusters.
func Silhouette(rows []float32, width int, clusters []int) (mean float64, ok bool) {
	count := 0
	for _, c := range clusters {
		count = max(count, c+1)
	}
	sizes, used := make([]float64, count), 0
	for _, c := range clusters {
		if sizes[c]++; sizes[c] == 1 {
			used++
		}
	}
	if used < 2 {
		return 0, false
	}
	each := make([]float64, len(clusters))
	distance := kernel.Float32().SquaredDistance
	team.For(len(each), 16, func(from, to int) {
		sums := make([]float64, count)
		for i := from; i < to; i++ {
			clear(sums)
			for j, c := range clusters {
				sums[c] += math.Sqrt(float64(distance(rows[i*width:(i+1)*width], rows[j*width:(j+1)*width])))
			}
			own := clusters[i]
			if sizes[own] == 1 {
				continue
			}
			a, b := sums[own]/(sizes[own]-1), math.Inf(1)
			for c, sum := range sums {
				if c != own && sizes[c] > 0 {
					b = min(b, sum/sizes[c])
				}
			}
			if most := max(a, b); most > 0 {
				each[i] = (b - a) / most
			}
		}
	})
	for _, s := range each {
		mean += s / float64(len(each))
	}
	return mean, true
}
