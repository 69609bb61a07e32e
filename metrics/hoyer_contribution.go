package metrics

// The metric hoyer_contribution is the mean over images of the Hoyer sparsity of the contributions c_j = |h_j| |w_j|_2 of the
// k units:
//
//	(sqrt k - |c|_1 / |c|_2) / (sqrt k - 1)
//
// It equals `hoyer` of the codes after the atoms are rescaled to length 1. The sparsity of an image without contributions, and
// of a code of one unit, is 0.
//
// Source: P. O. Hoyer, Non-negative matrix factorization with sparseness constraints, JMLR 5, 2004.
func init() {
	register("hoyer_contribution", "sparsity of what the units contribute", Description{
		Measures: []Measure{{Name: "hoyer_contribution", Better: Higher,
			Doc: "mean over images of the sparsity of the contributions c_j = \\|h_j\\| \\|w_j\\|₂, (√k - \\|c\\|₁ / \\|c\\|₂) / (√k - 1). `hoyer` of the codes " +
				"that the model has with atoms of length 1. Only where every value of a code weighs one atom"}},
		Reads: ReadsCodes | ReadsSums, ScaleFree: true,
	}, ofContributions(contributionSparsity))
}

// contributionSparsity returns the Hoyer sparsity of contributions, which are non-negative.
func contributionSparsity(c []float64) float64 {
	var l1, squares float64
	for _, v := range c {
		l1 += v
		squares += v * v
	}
	return sparsity(len(c), l1, squares)
}
