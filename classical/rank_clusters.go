package classical

import (
	"context"
	"math"

	"tessera/config/part"
	"tessera/metrics"
)

// RankClusters contains the errors of k-means with a given number of centres.
type RankClusters struct {
	Components int      `json:"components"`
	MSE        float64  `json:"mse"`            // mean squared error of all images by their nearest centres, for a fit to all images
	HeldOut    float64  `json:"held_out_mse"`   // mean squared error of held-out images by their nearest centres
	Deviation  float64  `json:"standard_error"` // standard error of this mean over the folds
	Silhouette *float64 `json:"silhouette"`     // mean silhouette of the clusters of the fit to all images; nil for a single cluster
}

// CrossValidateClusters compares numbers of centres of k-means. The images are divided into folds at random, and the error on
// each fold is measured by a fit to the other folds. The errors fall with more centres, and more slowly above the true number:
// see [Elbow]. The silhouette is highest for clusters that are far apart. All other settings are those of method. report,
// which may be nil, is called after each of the (folds + 1) x len(components) fits.
//
// Source: P. J. Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis, Journal of
// Computational and Applied Mathematics 20, 1987.
func CrossValidateClusters(ctx context.Context, method Method, images Images, components []int, folds int, seed uint64,
	report func(done int)) (results []RankClusters, err error) {
	if _, ok := method.(*KMeans); !ok && method != nil {
		return nil, part.KeyError{Key: "kind", Problem: `clusters are compared of kind = "kmeans"`}
	}
	v := foldwise{images: images, components: components, folds: folds, seed: seed, report: report}
	v.sum = func(m Model, rows []float32) (float64, error) {
		hard := coderOf(m).(interface {
			squares(rows []float32) float64
		})
		return hard.squares(rows) / float64(images.Pixels()), nil
	}
	err = v.run(ctx, method, func(k int, m Model, all, total, deviation float64, x []float32) error {
		r := RankClusters{Components: k, MSE: all / float64(images.Len()), HeldOut: total / float64(images.Len()), Deviation: deviation}
		results = append(results, r)
		r.Silhouette, err = silhouetteOf(m, x, images.Pixels())
		results[len(results)-1] = r
		return err
	})
	return results, err
}

// coderOf returns the best fit of a model with restarts.
func coderOf(m Model) Model {
	if r, ok := m.(*restarted); ok {
		return r.Model
	}
	return m
}

// squares returns the sum of the squared distances of images from their nearest centres.
func (m *kmeans) squares(images []float32) (total float64) {
	nearest, among, p := make([]int32, len(images)/m.pixels), m.search(), m.pixels
	among.Nearest(images, nearest)
	for i, c := range nearest {
		centre := m.atom(int(c))
		for j, v := range images[i*p : (i+1)*p] {
			d := float64(v) - float64(centre[j])
			total += d * d
		}
	}
	return total
}

// silhouetteOf returns the mean silhouette of at most [metrics.MostSilhouette] evenly spaced images. The cluster of an image
// is the index of the largest value of its code. The result is nil if there is only one cluster.
func silhouetteOf(m Model, x []float32, p int) (*float64, error) {
	n := len(x) / p
	every := (n + metrics.MostSilhouette - 1) / metrics.MostSilhouette
	var rows []float32
	for i := 0; i < n; i += every {
		rows = append(rows, x[i*p:(i+1)*p]...)
	}
	codes, err := m.Encode(rows)
	if err != nil {
		return nil, err
	}
	if mean, ok := metrics.Silhouette(rows, p, metrics.Clusters(codes, m.Units())); ok {
		return &mean, nil
	}
	return nil, nil
}

// Elbow returns the index of the point of a falling curve that is farthest below the straight line from its first to its last
// point, with both axes scaled to [0,1]; It returns -1 for fewer than three points. x is ascending.
//
// Source: V. Satopaa, J. Albrecht, D. Irwin, B. Raghavan, Finding a "kneedle" in a haystack, ICDCS Workshops 2011.
func Elbow(x, y []float64) int {
	if len(x) < 3 || len(x) != len(y) {
		return -1
	}
	last := len(x) - 1
	best, most := -1, math.Inf(-1)
	for i := range x {
		line := y[0] + (y[last]-y[0])*(x[i]-x[0])/(x[last]-x[0])
		if below := line - y[i]; below > most {
			best, most = i, below
		}
	}
	if !(most > 0) {
		return -1
	}
	return best
}
