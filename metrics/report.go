package metrics

import (
	"fmt"
	"math"
)

// Report is what `eval --json` prints, in this order. A nil value means that the metric has no meaning for the coder:
// those of atoms where the decoder's last layer has none, NegativeWeights where its decoder has no weight, KL where codes leave [0,1]. The SVM's are left out unless asked for.
type Report struct {
	Model   string `json:"model"`   // set by the caller
	Dataset string `json:"dataset"` // set by the caller
	Images  int    `json:"images"`  // how many were measured on

	MSE        float64  `json:"mse"`         // see [MSE]
	MSEClipped float64  `json:"mse_clipped"` // see [ClippedMSE]
	Hoyer      float64  `json:"hoyer"`       // mean sparsity of the codes, see [Hoyer]
	HoyerAtoms *float64 `json:"hoyer_atoms"` // mean sparsity of the atoms

	// Max-approximation of an operator by a disk, see [MaxApproximation]: of the dilation by the disk of radius 1 unless
	// Operator and Radius, which are set only when they are asked for, say another.
	Operator               string   `json:"operator,omitempty"`
	Radius                 int      `json:"radius,omitempty"`
	MaxApprox              *float64 `json:"max_approx"`
	MaxApproxClipped       *float64 `json:"max_approx_clipped"`
	MaxApproxBiasDilated   *float64 `json:"max_approx_bias_dilated"`
	MaxApproxReconstructed *float64 `json:"max_approx_reconstructed"`

	DeadUnits       int      `json:"dead_units"`       // see [DeadUnits]
	NegativeWeights *int     `json:"negative_weights"` // see [NegativeWeights]
	KL              *float64 `json:"kl"`               // see [KL]

	// Asked for by [Options.Atoms].
	HoyerAtomsDilated *float64 `json:"hoyer_atoms_dilated,omitempty"` // mean sparsity of the atoms after the operator
	UsedUnits         *int     `json:"used_units,omitempty"`          // see [UsedUnits]
	Jaccard           *float64 `json:"jaccard,omitempty"`             // see [Jaccard]; over the first [JaccardImages] images
	JaccardDilated    *float64 `json:"jaccard_dilated,omitempty"`     // the same of the atoms after the operator

	SVMAccuracy *float64 `json:"svm_accuracy,omitempty"` // see [SVMProtocol]
	SVMStd      *float64 `json:"svm_std,omitempty"`
	SVMC        *float64 `json:"svm_c,omitempty"`
}

// checkFinite names the first metric that is NaN or infinite: JSON cannot say it, and no one should compare it.
func (r *Report) checkFinite() error {
	for _, m := range []struct {
		name  string
		value *float64
	}{
		{"mse", &r.MSE}, {"mse_clipped", &r.MSEClipped}, {"hoyer", &r.Hoyer}, {"hoyer_atoms", r.HoyerAtoms},
		{"max_approx", r.MaxApprox}, {"max_approx_clipped", r.MaxApproxClipped},
		{"max_approx_bias_dilated", r.MaxApproxBiasDilated}, {"max_approx_reconstructed", r.MaxApproxReconstructed},
		{"kl", r.KL}, {"hoyer_atoms_dilated", r.HoyerAtomsDilated},
	} {
		if m.value != nil && (math.IsNaN(*m.value) || math.IsInf(*m.value, 0)) {
			return fmt.Errorf("metrics: %s is %g: the coder's codes, images or atoms are not finite", m.name, *m.value)
		}
	}
	return nil
}
