package losses

// Measured is implemented by terms that name the metrics by which a model that minimises them is judged, in order of importance.
type Measured interface {
	Loss
	Measures() []string
}

// MeasuresOf lists the metrics that a term declares: its own, or of a term that compares two views of an image the probes of its codes.
func MeasuresOf(l Loss) []string {
	if declared, ok := l.(Measured); ok {
		return declared.Measures()
	}
	if r := l.Reads(); r.Views || r.Teacher {
		return []string{"linear_probe_accuracy", "knn_cosine_accuracy"}
	}
	return nil
}

// ofClasses are the metrics of a head that is compared with classes.
var ofClasses = []string{"accuracy", "nll"}

func (*CrossEntropy) Measures() []string { return ofClasses }

func (*Contrastive) Measures() []string { return []string{"retrieval_first", "retrieval_recall"} }

func (*NextToken) Measures() []string   { return []string{"perplexity", "bits_per_byte"} }
func (*MaskedToken) Measures() []string { return []string{"perplexity", "bits_per_byte"} }

// Regression is implemented by terms that compare numbers: of a value that they compare with a column, the error is measured.
type Regression interface {
	Measured
	regression()
}

// ofNumbers are the metrics of a value that is compared with a column of numbers.
var ofNumbers = []string{"rmse", "mae", "r2"}

// Measures implements [Measured], for a value that is compared with a column.
func (*MSE) Measures() []string { return ofNumbers }

// Measures implements [Measured], for a value that is compared with a column.
func (*MAE) Measures() []string { return []string{"mae", "rmse", "r2"} }

// Measures implements [Measured], for a value that is compared with a column.
func (*Huber) Measures() []string { return ofNumbers }

func (*MSE) regression()   {}
func (*MAE) regression()   {}
func (*Huber) regression() {}

// Measures implements [Measured]: the bound of the log-likelihood, and its two parts.
func (FreeBits) Measures() []string { return []string{"elbo", "elbo_likelihood", "elbo_divergence"} }

var (
	_ Measured = (*CrossEntropy)(nil)
	_ Measured = (*GaussianKL)(nil)
	_ Measured = (*RectifiedKL)(nil)

	_ Regression = (*MSE)(nil)
	_ Regression = (*MAE)(nil)
	_ Regression = (*Huber)(nil)
)
