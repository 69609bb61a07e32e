package classical

import (
	"math"

	"tessera/config/part"
	"tessera/internal/numeral"
	"tessera/internal/volume"
)

// Registry contains every method.
var Registry = part.New[Method]("baseline")

// Fitting describes the fit of a [Method].
type Fitting struct {
	Name       string  // name of the method, for errors
	Units      int     // number of units of a code
	Iterations int     // maximum number of iterations of one fit
	Restarts   int     // number of fits from different starts, of which the best is kept; 0 and 1 mean a single fit
	Tolerance  float64 // a fit ends when an iteration lowers the objective by less than this fraction of it
	Rises      bool    // the objective may rise, which does not end the fit
	Signed     bool    // samples may have negative values
	Biased     bool    // a bias is added to every decoded sample
	Dense      bool    // all values are held, also the zeros of a sparse matrix
	Absolute   bool    // settings are in the units of the samples, so that the fit depends on their scale
	// Holed is like Iterations, for samples with missing entries; 0 means that the method needs complete samples.
	Holed int
	// Sizes returns a [part.KeyError] for settings that are invalid for the number of samples, 0 if it is not known yet, or for the
	// number of values of each; nil if all are valid.
	Sizes func(samples, values int) error
	// Complete is a [part.KeyError] for a setting with which a method of Holed > 0 needs complete samples all the same.
	Complete error
	// Measures are the metrics by which the model is judged, most important first. A training shows no others. Nil means the squared
	// error, and the usual ones.
	Measures []string
}

// MostIterations returns the maximum number of iterations of all fits together, for samples with missing entries if holed is
// true. It is at most the largest int.
func (f Fitting) MostIterations(holed bool) int {
	most := f.Iterations
	if holed && f.TakesHoles() {
		most = f.Holed
	}
	if f.Restarts > 1 && most > math.MaxInt/f.Restarts {
		return math.MaxInt
	}
	return most * max(f.Restarts, 1)
}

// TakesHoles reports whether samples may have missing entries.
func (f Fitting) TakesHoles() bool { return f.Holed > 0 && f.Complete == nil }

// Measures of methods that have others than the usual ones.
var (
	measuresOfCentres   = []string{"mse", "explained_variance", "dead_units", "useful_units"} // a code is one of the centres: it has no sparsity
	measuresOfDensities = []string{"log_likelihood", "bic", "mse", "explained_variance"}
	measuresOfHidden    = []string{"mse_held_out", "mse_observed", "ranking_ndcg", "ranking_map", "ranking_precision", "ranking_recall", "mse", "explained_variance"}
	measuresOfCounts    = []string{"ranking_ndcg", "ranking_map", "ranking_precision", "ranking_recall", "mse_held_out", "mse_observed"} // predictions are no counts
)

// Bounded returns an error if a tensor of the method, such as the atoms, is too large. Its shape is (components, each...), and
// what is its name in the error. The bound is the same as for the parameters of a layer.
func Bounded(components int, what string, each ...int) error {
	n := volume.Of(append(each, components))
	if n <= volume.MostExpanded {
		return nil
	}
	return part.KeyErrorf("components", "got %d, whose %s take %s, and training needs several times that: want at most %s",
		components, what, numeral.Floats(n), numeral.Floats(volume.MostExpanded))
}
