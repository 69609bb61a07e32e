package metrics

import (
	"errors"

	"tessera/morph"
)

// ErrNoAtoms says that a coder's decoder has no dictionary of atoms to measure or operate on.
var ErrNoAtoms = errors.New("metrics: the decoder's last layer has no atoms")

// MaxApproximation measures how well a morphological operator psi on images is replaced by psi on the atoms alone:
//
//	D_psi(x) = activation( sum_j h_j(x) psi(w_j) + b ), error = mean over images and pixels of (D_psi(x) - psi(x))^2
//
// with the codes h of the encoder. The study's main number is dilation by the disk of radius 1, to originals, bias not
// operated on, nothing clipped; its published tables mix the conventions, hence the settings.
type MaxApproximation struct {
	Operator        morph.Operator
	Radius          int  // of the disk, in pixels
	OperateBias     bool // apply the operator to the bias image too
	Clip            bool // clip D_psi to [0,1] (what it is compared with is never clipped)
	Reconstructions bool // compare with psi of the reconstruction instead of psi of the original
}

// Coder returns the coder that decodes with psi of the atoms: what draws max-approximations.
// It fails with [ErrNoAtoms] where there are none. Where the coder is an io.Closer, the caller closes it.
func (m MaxApproximation) Coder(coder Coder) (Coder, error) {
	atoms := coder.Atoms()
	if atoms == nil {
		return nil, ErrNoAtoms
	}
	if err := atoms.check(); err != nil {
		return nil, err
	}
	operated, err := atoms.Apply(m.Operator, m.Radius)
	if err != nil {
		return nil, err
	}
	if m.OperateBias {
		if operated, err = operated.ApplyToBias(m.Operator, m.Radius); err != nil {
			return nil, err
		}
	}
	return coder.WithAtoms(operated)
}

// Measure returns the error over these images.
func (m MaxApproximation) Measure(coder Coder, images []float32) (mse float64, err error) {
	n, err := imageCount(coder, images)
	if err != nil {
		return 0, err
	}
	operated, err := m.Coder(coder)
	if err != nil {
		return 0, err
	}
	defer closeAll(&err, operated)
	pixels, sum := len(images)/n, 0.0
	for from, to := range batches(n) {
		e, err := m.batch(coder, operated, images[from*pixels:to*pixels])
		if err != nil {
			return 0, err
		}
		sum += e * float64(to-from)
	}
	return sum / float64(n), nil
}

// batch returns the mean error over some images.
func (m MaxApproximation) batch(coder, operated Coder, images []float32) (float64, error) {
	codes, err := encode(coder, images)
	if err != nil {
		return 0, err
	}
	approximated, err := decode(operated, codes)
	if err != nil {
		return 0, err
	}
	if m.Reconstructions {
		if images, err = decode(coder, codes); err != nil {
			return 0, err
		}
	}
	target, err := morph.Apply(m.Operator, m.Radius, images, coder.Shape())
	if err != nil {
		return 0, err
	}
	if m.Clip {
		return ClippedMSE(target, approximated)
	}
	return MSE(target, approximated)
}
