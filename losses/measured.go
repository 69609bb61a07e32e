package losses

// Measured is implemented by terms that name the metrics by which a model that minimises them is judged, in order of importance.
type Measured interface {
	Loss
	Measures() []string
}

// ofClasses are the metrics of a head that is compared with classes.
var ofClasses = []string{"accuracy", "nll"}

func (*CrossEntropy) Measures() []string { return ofClasses }

// Measures implements [Measured]: the bound of the log-likelihood, and its two parts.
func (FreeBits) Measures() []string { return []string{"elbo", "elbo_likelihood", "elbo_divergence"} }

var (
	_ Measured = (*CrossEntropy)(nil)
	_ Measured = (*GaussianKL)(nil)
	_ Measured = (*RectifiedKL)(nil)
)
