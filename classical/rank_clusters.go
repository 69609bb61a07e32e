package classical

import (
	"context"
	"math"
	"slices"

	"tessera/metrics"
)

// clusters compares numbers of centres of k-means, in ascending order. The images are divided into folds at random, and the error of images by
// their nearest centres on each fold is measured by a fit to the other folds. The errors fall with more centres, and more slowly above the true number:
// see [Elbow]. The silhouette, of the clusters of a fit to all images, is highest for clusters that are far apart.
//
// Source: P. J. Rousseeuw, Silhouettes: a graphical aid to the interpretation and validation of cluster analysis, Journal of
// Computational and Applied Mathematics 20, 1987.
func (v *validation) clusters(ctx context.Context) (*Ranking, error) {
	v.components = slices.Sorted(slices.Values(v.components))
	r := &Ranking{Measures: []RankMeasure{{Key: "held_out_mse", Name: "held-out mse"}, {Key: "mse", Name: "mse of all samples", Choice: Bend, Mark: "elbow"}, silhouetteMeasure}}
	squares := func(m Model, rows []float32) (float64, error) {
		hard := coderOf(m).(interface {
			squares(rows []float32) float64
		})
		return hard.squares(rows) / float64(v.p), nil
	}
	err := v.byImages(ctx, squares, func(k int, m Model, all, total, deviation float64) error {
		return r.Add(k, deviation, total/float64(v.n), all/float64(v.n)).silhouette(m, v.x, v.p)
	})
	return r, err
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

var silhouetteMeasure = RankMeasure{Key: "silhouette", Name: "silhouette", Choice: Highest, Mark: "highest silhouette"}

// silhouette adds the mean silhouette of at most [metrics.MostSilhouette] evenly spaced images. The cluster of an image
// is the index of the largest value of its code. It is missing if there is only one cluster.
func (r *Ranked) silhouette(m Model, x []float32, p int) error {
	n := len(x) / p
	every := (n + metrics.MostSilhouette - 1) / metrics.MostSilhouette
	var rows []float32
	for i := 0; i < n; i += every {
		rows = append(rows, x[i*p:(i+1)*p]...)
	}
	codes, err := m.Encode(rows)
	if err != nil {
		return err
	}
	r.Values = append(r.Values, silhouetteOf(rows, p, metrics.Clusters(codes, m.Units())))
	return nil
}

// silhouetteOf returns the mean silhouette, nil if there is only one cluster.
func silhouetteOf(rows []float32, p int, clusters []int) *float64 {
	if mean, ok := metrics.Silhouette(rows, p, clusters); ok {
		return &mean
	}
	return nil
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
