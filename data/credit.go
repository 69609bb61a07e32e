package data

import (
	"context"
	"math"

	"tessera/internal/random"
)

func init() {
	Registry.Register("credit", "generated applicants for a loan in two groups, with documented biases against one of them; no person's data",
		func() Source {
			return &Credit{Count: 10000, Test: 10000, Share: 0.3, Gap: 0.8, Proxy: 1.5, Noise: 1, LabelBias: 0.1, Seed: 1}
		})
}

// Credit is a generated data set for the study of fairness. A sample is a vector of six numbers. Its class is 1 if the loan
// was repaid and 0 otherwise (default). The group, 0 (a) or 1 (b), is the column `group` and not part of the vector. With the
// group g, independent standard normal numbers n_i, and sigmoid(x) = 1/(1+exp(-x)),
//
//	g is 1 with probability share
//	means s = n_0 - gap g                         what the applicant can repay
//	repaid with probability sigmoid(1 + 2 s)      the column truth
//	income   = s + 0.5 (1 + noise g) n_1
//	savings  = s + 0.7 (1 + noise g) n_2
//	history  = s + 0.9 (1 + noise g) n_3
//	district = proxy (2 g - 1) + n_4
//	work     = 0.5 proxy (2 g - 1) + 0.3 s + n_5
//	age      = n_6
//
// The label equals the truth, except that a repaid loan of group b is recorded as default with probability label_bias. Five
// keys set the biases, and the value 0 (for share: 0.5) means no bias: group b is a minority (share), has smaller means (gap)
// and less informative features (noise); district and work reveal the group (proxy); labels of group b are wrong in one
// direction (label_bias).
//
// Equal keys give equal samples. Each applicant has a separate random stream, so that a larger set begins with the samples of
// a smaller one.
type Credit struct {
	Count     int     `toml:"count" want:"in [1,1000000]" doc:"number of training samples"`
	Test      int     `toml:"test" want:"in [0,1000000]" doc:"number of test samples; with 0 there is no test split"`
	Share     float64 `toml:"share" want:"in [0,1]" doc:"probability of group b"`
	Gap       float64 `toml:"gap" doc:"difference of the mean of the means of group a and of group b"`
	Proxy     float64 `toml:"proxy" want:">= 0" doc:"how much district and work depend on the group"`
	Noise     float64 `toml:"noise" want:">= 0" doc:"additional noise of the features of group b, as a fraction"`
	LabelBias float64 `toml:"label_bias" want:"in [0,1]" doc:"probability that a loan repaid by group b is recorded as default"`
	Seed      uint64  `toml:"seed" doc:"seed of the samples; independent of the run's seed, so that all runs see the same samples"`
}

// creditValues is the length of a vector: income, savings, history, district, work, age.
const creditValues = 6

// The names of the columns of [Credit] and of their classes.
const (
	groupColumn = "group"
	truthColumn = "truth"
)

func creditOutcomes() []string { return []string{"default", "repaid"} }

func (*Credit) Shape(Dirs) ([]int, bool) { return []int{creditValues}, true }
func (c *Credit) HasTest() bool          { return c.Test > 0 }
func (*Credit) Classes(Dirs) (int, bool) { return len(creditOutcomes()), true }

func (*Credit) DescribeColumns(Dirs) []Column {
	return []Column{{Name: groupColumn, Type: Whole, Names: []string{"a", "b"}}, {Name: truthColumn, Type: Whole, Names: creditOutcomes()}}
}

func (c *Credit) Load(context.Context, Dirs, Need) (*Set, error) {
	if _, err := generatedSize("credit", max(c.Count, c.Test), creditValues); err != nil {
		return nil, err
	}
	set := &Set{Name: "credit", Shape: []int{creditValues}, Classes: creditOutcomes(), HasTest: c.HasTest()}
	var err error
	if set.Train, err = c.draw("credit", c.Count); err != nil || !set.HasTest {
		return set, err
	}
	set.Test, err = c.draw("credit test", c.Test)
	return set, err
}

func (c *Credit) draw(stream string, n int) (*Images, error) {
	values, labels := make([]float32, 0, n*creditValues), make([]int, n)
	groups, truth := make([]int32, n), make([]int32, n)
	for i := range n {
		r := random.Stream(c.Seed, stream, uint64(i))
		g := 0.0
		if r.Float64() < c.Share {
			groups[i], g = 1, 1
		}
		means := r.NormFloat64() - c.Gap*g
		if r.Float64() < 1/(1+math.Exp(-1-2*means)) {
			truth[i], labels[i] = 1, 1
		}
		if wrong := r.Float64() < c.LabelBias; wrong && g == 1 {
			labels[i] = 0
		}
		side := c.Proxy * (2*g - 1)
		for _, v := range []float64{
			means + 0.5*(1+c.Noise*g)*r.NormFloat64(), means + 0.7*(1+c.Noise*g)*r.NormFloat64(), means + 0.9*(1+c.Noise*g)*r.NormFloat64(),
			side + r.NormFloat64(), 0.5*side + 0.3*means + r.NormFloat64(), r.NormFloat64(),
		} {
			values = append(values, float32(v))
		}
	}
	images, err := NewFloats([]int{creditValues}, values, labels)
	if err != nil {
		return nil, err
	}
	described := c.DescribeColumns(nil)
	columns := []*Values{WholeColumn(groupColumn, nil, groups), WholeColumn(truthColumn, nil, truth)}
	for i := range columns {
		columns[i].Names = described[i].Names
	}
	return images.WithColumns(columns...)
}
