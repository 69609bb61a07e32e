package metrics

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// scipyFile contains the results of testdata/scipy_metrics.py.
type scipyFile struct {
	Models    []scipyModel
	TrueParts struct {
		Parts   [][]float32
		Matched []int
		Cosines []float64
	} `json:"true_parts"`
	Clustered scipyClusters
	Agreement struct {
		Models                           [][][]float32
		Matched, Amari, Random, Permuted float64
		Deviation                        float64 `json:"permuted_deviation"`
	}
}

type scipyModel struct {
	Name, Activation     string
	Shape                []int
	Units                int
	Codes, Atoms, Images [][]float32
	Bias                 []float32
	Values               map[string]float64
	Useful               map[string]int // accepted increase of the error
}

type scipyClusters struct {
	Shape        []int
	Units        int
	Codes, Atoms [][]float32
	Labels       []int
	KNN1         float64 `json:"knn_1"`
	KNN5         float64 `json:"knn_5"`
	KNN8         float64 `json:"knn_8"`
	Lloyd        struct {
		Nearest []int
		Sum     float64
	}
	Accuracy float64 `json:"kmeans_accuracy"`
	NMI      float64 `json:"kmeans_nmi"`
}

func scipy(t *testing.T) *scipyFile {
	t.Helper()
	text, err := os.ReadFile("testdata/scipy_metrics.json")
	fatal.If(t, err)
	var f scipyFile
	fatal.If(t, json.Unmarshal(text, &f))
	return &f
}

// listed is a coder with given codes: the code of an image depends on the index of the image.
type listed struct {
	*scipyModel
	next int
}

func (l *listed) Shape() []int { return l.scipyModel.Shape }
func (l *listed) Units() int   { return l.scipyModel.Units }

func (l *listed) Encode(images []float32) ([]float32, error) {
	n := len(images) / volume.Of(l.scipyModel.Shape)
	l.next += n
	return flat(l.Codes[l.next-n : l.next]), nil
}

func (l *listed) Decode(codes []float32) ([]float32, error) {
	y := matrixProduct(codes, flat(l.scipyModel.Atoms), l.Units(), len(l.Bias))
	for i := range y {
		y[i] += l.Bias[i%len(l.Bias)]
		switch l.Activation {
		case "relu":
			y[i] = max(y[i], 0)
		case "sigmoid":
			y[i] = float32(1 / (1 + math.Exp(-float64(y[i]))))
		}
	}
	return y, nil
}

func (l *listed) Atoms() *Atoms {
	return &Atoms{Shape: l.scipyModel.Shape, Count: l.Units(), Values: flat(l.scipyModel.Atoms), Bias: l.Bias}
}

func (l *listed) WithAtoms(*Atoms) (Coder, error) { return l, nil }

func flat(rows [][]float32) []float32 { return slices.Concat(rows...) }

// within1e6 checks that two numbers agree with a tolerance of 1e-6, relative to the larger number or to 1.
func within1e6(t *testing.T, what string, got, want float64) {
	t.Helper()
	expect.Near(t, got, want, 1e-6*max(1, math.Abs(want)), what)
}

func TestMeasuresWithoutScaleEqualNumPys(t *testing.T) {
	names := []string{"explained_variance", "cosine", "active_units", "hoyer_contribution", "l0", "dead_units_contribution", "additivity_lost", "useful_units",
		"atom_area", "atom_components", "atom_radius", "atom_entropy", "coherence", "coherence_mean"}
	for _, m := range scipy(t).Models {
		got := measured(t, &listed{scipyModel: &m}, flat(m.Images), selected(t, names...)...)
		expect.Equal(t, len(m.Values), len(names), m.Name, len(m.Values), "values")
		for name, want := range m.Values {
			within1e6(t, m.Name+": "+name, number(t, got, name), want)
		}
	}
}

func TestUsefulUnitsEqualTheLeastOfAllSubsets(t *testing.T) {
	seen := map[int]bool{}
	for _, m := range scipy(t).Models {
		for rise, want := range m.Useful {
			r, err := strconv.ParseFloat(rise, 64)
			fatal.If(t, err)
			seen[want] = true
			got := measured(t, &listed{scipyModel: &m}, flat(m.Images), Choice{Metric: &UsefulUnits{Rise: r}})
			expect.Equal(t, number(t, got, "useful_units"), float64(want), m.Name, "rise", rise)
		}
	}
	if len(seen) < 4 {
		t.Errorf("the models have %v useful units only", seen)
	}
}

func TestTruePartsAreMatchedAsBySciPy(t *testing.T) {
	f := scipy(t)
	table, err := PartsRecovered(f.TrueParts.Parts, (&listed{scipyModel: &f.Models[1]}).Atoms(), PartCosine)
	fatal.If(t, err)
	for i, row := range table {
		within1e6(t, "cosine", row.Cosine, f.TrueParts.Cosines[i])
		expect.Equal(t, row.Atom, f.TrueParts.Matched[i], "part", i, row)
		expect.Equal(t, row.Found, row.Cosine >= PartCosine, "part", i, row)
	}
}

// measure returns the values of a metric on the labelled codes.
func (c *scipyClusters) measure(t *testing.T, m Metric) Values {
	s := Subject{Units: c.Units, Atoms: &Atoms{Shape: c.Shape, Count: c.Units, Values: flat(c.Atoms)}, Images: len(c.Codes)}
	return added(t, m, s, Batch{Codes: flat(c.Codes[:33]), Labels: c.Labels[:33]}, Batch{Codes: flat(c.Codes[33:]), Labels: c.Labels[33:]})
}

func TestNeighboursAndClustersEqualScikitLearns(t *testing.T) {
	c := scipy(t).Clustered
	for neighbours, want := range map[int]float64{0: c.KNN5, 1: c.KNN1, 5: c.KNN5, 8: c.KNN8} {
		within1e6(t, "knn "+strconv.Itoa(neighbours), c.measure(t, &KNN{Neighbours: neighbours})[0].Number, want)
	}
	got := c.measure(t, &KMeans{Seed: 1})
	within1e6(t, "accuracy", got[0].Number, c.Accuracy)
	within1e6(t, "nmi", got[1].Number, c.NMI)

	m := contributionReadout("", &Subject{Atoms: &Atoms{Shape: c.Shape, Count: c.Units, Values: flat(c.Atoms)}}, nil)
	fatal.If(t, m.Add(&Batch{Codes: flat(c.Codes), Labels: c.Labels}))
	rows := vectors.Narrow(m.codes.Rows)
	k := fit.NewKMeans(fit.Dense(rows, m.codes.Width), slices.Clone(rows[:3*m.codes.Width]))
	fatal.If(t, k.Run(t.Context()))
	for i, c := range c.Lloyd.Nearest {
		expect.Equal(t, int(k.Nearest[i]), c, "from given centres: cluster", k.Nearest[i], "of code", i)
	}
	within1e6(t, "sum of squares", k.Sum(), c.Lloyd.Sum)
}

func TestAgreementOfAtomsEqualsSciPys(t *testing.T) {
	want := scipy(t).Agreement
	models := lists.Map(want.Models, func(rows [][]float32) *Atoms { return &Atoms{Shape: []int{30}, Count: len(rows), Values: flat(rows)} })
	got, err := CompareAtoms(models, 1)
	fatal.If(t, err)
	within1e6(t, "matched", got.Matched, want.Matched)
	within1e6(t, "amari", got.Amari, want.Amari)
	within1e6(t, "random", got.Random, want.Random)
	expect.Near(t, got.Permuted, want.Permuted, 4*want.Deviation/math.Sqrt(permutations), "permuted")
}
