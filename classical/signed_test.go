package classical

import "testing"

func TestMethodsSayWhetherTheyTakeNegativeValues(t *testing.T) {
	for name, c := range map[string]struct {
		method Method
		want   bool
	}{
		"nmf":             {&NMF{Components: 2, Iterations: 1, Init: "random", Loss: "euclidean", Solver: "hals", Restarts: 1}, false},
		"nmf, restarted":  {&NMF{Components: 2, Iterations: 1, Init: "random", Loss: "euclidean", Solver: "hals", Restarts: 3}, false},
		"k-means":         {&KMeans{Components: 2, Iterations: 1, Restarts: 1}, true},
		"semi-NMF":        {&SemiNMF{Components: 2, Iterations: 1, Restarts: 1}, true},
		"too many for it": {&KMeans{Components: -1}, true},
	} {
		if got := TakesSigned(c.method, []int{2, 3}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
