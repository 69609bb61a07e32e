package classical

import "tessera/config"

// Measures implements [config.Measured]. The code of an image is one of the centres: it has no sparsity.
func (*KMeans) Measures() []string {
	return []string{"mse", "explained_variance", "dead_units", "useful_units"}
}

// ofDensities are the metrics of a model that is a density.
var ofDensities = []string{"log_likelihood", "bic", "mse", "explained_variance"}

// Measures implements [config.Measured].
func (*GMM) Measures() []string { return ofDensities }

// Measures implements [config.Measured].
func (*BMM) Measures() []string { return ofDensities }

// Measures implements [config.Measured].
func (*FactorAnalysis) Measures() []string { return ofDensities }

// Measures implements [config.Measured]: first the error of the entries that were hidden.
func (*MatrixFactorisation) Measures() []string {
	return []string{"mse_held_out", "mse_observed", "mse", "explained_variance"}
}

var (
	_ config.Measured = (*KMeans)(nil)
	_ config.Measured = (*GMM)(nil)
	_ config.Measured = (*BMM)(nil)
	_ config.Measured = (*FactorAnalysis)(nil)
	_ config.Measured = (*MatrixFactorisation)(nil)
)
