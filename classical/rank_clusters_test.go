package classical

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/metrics"
)

// corners returns n images around count points that are far apart.
func corners(n, count int) Matrix {
	rng := random.Stream(3, "corners", 0)
	x := lists.Of(n*4, func(i int) float32 { return float32(10*float64((i/4%count)>>(i%4)&1) + 0.5*rng.NormFloat64()) })
	return Matrix{x, 4}
}

func TestTheNumberOfClustersIsFound(t *testing.T) {
	images := corners(240, 5)
	fits := 0
	list, err := Rank(t.Context(), &KMeans{Components: 9, Iterations: 100, Restarts: 5}, images, []int{1, 3, 5, 7, 9}, 3, 1, func(int, int) { fits++ })
	fatal.If(t, err)
	const heldOut, mse, silhouette = 0, 1, 2
	if rows := list.Rows; fits != 20 || len(rows) != 5 || rows[0].Values[silhouette] != nil {
		t.Fatalf("%d fits: %+v", fits, rows)
	}
	var x, y []float64
	for i, r := range list.Rows {
		x, y = append(x, float64(r.Components)), append(y, *r.Values[mse])
		if i > 0 && i != 2 && *r.Values[silhouette] >= *list.Rows[2].Values[silhouette] {
			t.Errorf("%d clusters have the silhouette %v, 5 have %v", r.Components, *r.Values[silhouette], *list.Rows[2].Values[silhouette])
		}
		if i > 0 && (y[i] >= y[i-1] || !(*r.Values[heldOut] > 0.9*y[i])) {
			t.Errorf("%d clusters: errors %v after %v", r.Components, y[i], y[i-1])
		}
	}
	expect.Equal(t, Elbow(x, y), 2, "the elbow of", y, "is at")
	m := newModel(t, &KMeans{Components: 5, Iterations: 100, Restarts: 5}, []int{4}, 1)
	fitAll(t, m, images)
	codes := encode(t, m, images.values)
	want, _ := metrics.Silhouette(images.values, 4, metrics.Clusters(codes, 5))
	wanted := meanSquares(images.values, codes, m.Atoms().Values, nil, 5, 4)
	if got := *list.Rows[2].Values[silhouette]; math.Abs(got-want) > 1e-12 || math.Abs(y[2]-wanted) > 1e-6*wanted {
		t.Errorf("got %v and %v, want %v and %v", got, y[2], want, wanted)
	}
	densities, err := Rank(t.Context(), &GMM{Components: 5, Covariance: spherical, Init: "kmeans", Floor: 1e-4, Iterations: 50, Restarts: 2}, images, []int{2, 5}, 2, 1, nil)
	if err != nil || *densities.Rows[1].Values[silhouette] <= *densities.Rows[0].Values[silhouette] {
		t.Errorf("mixtures: %+v, %v", densities, err)
	}
}

func TestElbow(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want int
	}{
		{[]float64{1, 2, 3, 4, 5}, []float64{10, 4, 1, 0.8, 0.6}, 2},
		{[]float64{1, 10, 100}, []float64{3, 1, 0}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1}, // straight
		{[]float64{1, 2}, []float64{3, 2}, -1},
	} {
		expect.Equal(t, Elbow(c.x, c.y), c.want, c.y, "over", c.x)
	}
}
