package metrics

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
)

// The expected values are those of scikit-learn and SciPy, computed by testdata/clusters.py.
func TestClustersEqualScikitLearns(t *testing.T) {
	text, err := os.ReadFile("testdata/clusters.json")
	fatal.If(t, err)
	var cases []struct {
		X                              []float32
		Width, Units                   int
		Clusters, Labels               []int
		Accuracy, NMI, ARI, Silhouette float64
	}
	fatal.If(t, json.Unmarshal(text, &cases))
	for i, c := range cases {
		codes := make([]float32, len(c.Clusters)*c.Units)
		for j, cluster := range c.Clusters {
			codes[j*c.Units+cluster] = 0.7
		}
		m := &clustersMeter{units: c.Units}
		s := &silhouetteMeter{newSpaced(&Subject{Images: len(c.Clusters)}, c.Width, MostSilhouette), newSpaced(&Subject{Images: len(c.Clusters)}, c.Units, MostSilhouette)}
		for _, half := range [][2]int{{0, len(c.Clusters) / 2}, {len(c.Clusters) / 2, len(c.Clusters)}} {
			b := &Batch{Images: c.X[half[0]*c.Width : half[1]*c.Width], Codes: codes[half[0]*c.Units : half[1]*c.Units], Labels: c.Labels[half[0]:half[1]]}
			fatal.If(t, m.Add(b))
			fatal.If(t, s.Add(b))
		}
		values, err := m.Values(t.Context())
		fatal.If(t, err)
		silhouettes, err := s.Values(t.Context())
		fatal.If(t, err)
		for name, v := range map[string][2]float64{"accuracy": {values[0].Number, c.Accuracy}, "nmi": {values[1].Number, c.NMI}, "ari": {values[2].Number, c.ARI},
			"silhouette": {silhouettes[0].Number, c.Silhouette}} {
			expect.Near(t, v[0], v[1], 1e-6, "case", i, name)
		}
	}
}

func TestClustersOfSpecialPartitions(t *testing.T) {
	expect.Equal(t, adjustedRand([]int{0, 1, 2}, []int{2, 0, 1}, 3, 3), 1, "every image on its own")
	expect.Equal(t, adjustedRand([]int{0, 0, 1, 1}, []int{1, 1, 0, 0}, 2, 2), 1, "equal partitions")
	if _, ok := Silhouette([]float32{1, 2, 3}, 1, []int{4, 4, 4}); ok {
		t.Error("one cluster has a silhouette")
	}
	if got, _ := Silhouette([]float32{0, 1, 10}, 1, []int{0, 0, 1}); math.Abs(got-(9.0/10+8.0/9)/3) > 1e-7 {
		t.Errorf("with an image alone in its cluster: %v", got)
	}
}

// Ten tenths are 1, not 0.9999999999999999, which is their sum.
func TestAccuraciesAreRatiosOfCounts(t *testing.T) {
	labels := []int{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	if accuracy, _, err := compareClusters(make([]int, 10), make([]int, 10), 1, 1); err != nil || accuracy != 1 {
		t.Errorf("one cluster of one class: got %v and the error %v, want 1", accuracy, err)
	}
	codes := lists.Map(labels, func(label int) float32 { return float32(2*label - 1) })
	p, err := fit.Of("svm", codes, 1, labels)
	fatal.If(t, err)
	if accuracy, _ := p.Predicted([]float64{-1, 0, 1, 0}); accuracy != 1 {
		t.Errorf("linear probe: got %v, want 1", accuracy)
	}
}
