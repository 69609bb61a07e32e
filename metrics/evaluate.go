package metrics

import (
	"context"

	"tessera/morph"
	"tessera/team"
)

// Options are the settings of [Evaluate]; the zero value means the defaults.
type Options struct {
	KLTarget float64        // p of the KL measure, in (0,1); 0 means [KLTarget]
	Operator morph.Operator // whose max-approximation is measured; "" means dilation
	Radius   int            // of its disk, in pixels; 0 means 1
	Atoms    bool           // measure usage and overlap of the atoms as well, which takes some seconds
	SVM      *SVMProtocol   // classify the codes as well; nil leaves it out
	Labels   []int          // one class per image, for the SVM
}

// Evaluate measures a coder on images (n x pixels, row-major): every image is encoded once, and decoded once per
// dictionary. Sums are in float64 and in a fixed order: the number of processors changes no bit. It fails when the coder
// does, when a metric is not finite, and when ctx is done.
func Evaluate(ctx context.Context, coder Coder, images []float32, o Options) (r *Report, err error) {
	n, err := imageCount(coder, images)
	if err != nil {
		return nil, err
	}
	e := newEvaluation(coder, images, n)
	e.operator = o.maxApproximation()
	defer func() { closeAll(&err, e.dilated, e.biased) }()
	if err := e.operate(); err != nil {
		return nil, err
	}
	for from, to := range batches(n) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := e.batch(from, to); err != nil {
			return nil, err
		}
	}
	r = e.report()
	if err := e.atomMetrics(r); err != nil {
		return nil, err
	}
	if err := e.codeMetrics(r, o.KLTarget); err != nil {
		return nil, err
	}
	if r.Operator, r.Radius = string(o.Operator), o.Radius; o.Atoms {
		if err := e.usage(r); err != nil {
			return nil, err
		}
	}
	if err := r.checkFinite(); err != nil {
		return nil, err
	}
	if o.SVM != nil {
		s, err := o.SVM.Measure(ctx, e.codes, coder.Units(), o.Labels)
		if err != nil {
			return nil, err
		}
		r.SVMAccuracy, r.SVMStd, r.SVMC = &s.Accuracy, &s.Std, &s.C
	}
	return r, nil
}

// evaluation is one run of Evaluate.
type evaluation struct {
	coder  Coder
	images []float32
	pixels int
	n      int

	operator MaxApproximation // what dilated and biased apply: dilation, unless another was asked for
	atoms    *Atoms           // nil where there are none; then dilated and biased are nil too
	dilated  Coder            // decodes with dilated atoms
	biased   Coder            // decodes with a dilated bias as well; nil without a bias, where dilated says the same

	codes  []float32    // n x units
	errors []imageError // one per image
}

// imageError holds sums over one image's pixels of squared errors.
type imageError struct {
	mse, mseClipped                              float64
	dilated, dilatedClipped, biased, dilatedRecs float64
}

// maxApproximation is that of the study's main number, unless the options say another.
func (o Options) maxApproximation() MaxApproximation {
	m := MaxApproximation{Operator: morph.Dilation, Radius: 1}
	if o.Operator != "" {
		m.Operator = o.Operator
	}
	if o.Radius != 0 {
		m.Radius = o.Radius
	}
	return m
}

func newEvaluation(coder Coder, images []float32, n int) *evaluation {
	return &evaluation{
		coder: coder, images: images, n: n, pixels: len(images) / n, atoms: coder.Atoms(),
		codes: make([]float32, n*coder.Units()), errors: make([]imageError, n),
	}
}

// operate makes the coders that decode with dilated atoms, where there are atoms.
func (e *evaluation) operate() (err error) {
	if e.atoms == nil {
		return nil
	}
	if e.dilated, err = e.operator.Coder(e.coder); err != nil {
		return err
	}
	if e.atoms.Bias != nil {
		withBias := e.operator
		withBias.OperateBias = true
		e.biased, err = withBias.Coder(e.coder)
	}
	return err
}

// decoded are the images of one batch: the originals and what the dictionaries make of their codes.
type decoded struct{ original, plain, dilated, biased []float32 }

// batch encodes and decodes the images of one range and takes their errors.
func (e *evaluation) batch(from, to int) error {
	d := decoded{original: e.images[from*e.pixels : to*e.pixels]}
	codes, err := encode(e.coder, d.original)
	if err != nil {
		return err
	}
	copy(e.codes[from*e.coder.Units():], codes)
	if d.plain, err = decode(e.coder, codes); err != nil {
		return err
	}
	if e.dilated != nil {
		if d.dilated, err = decode(e.dilated, codes); err != nil {
			return err
		}
		d.biased = d.dilated
	}
	if e.biased != nil {
		if d.biased, err = decode(e.biased, codes); err != nil {
			return err
		}
	}
	e.measure(d, e.errors[from:to])
	return nil
}

// measure takes the errors of a batch, image by image, on all processors.
func (e *evaluation) measure(d decoded, errors []imageError) {
	team.For(len(errors), 25, func(from, to int) {
		scratch := make([]float32, e.pixels)
		// Where atoms could be dilated, which operate checked, images of the same shape can.
		filter, _ := morph.NewFilter(e.operator.Operator, e.operator.Radius, e.coder.Shape())
		for i := from; i < to; i++ {
			one := func(batch []float32) []float32 { return batch[i*e.pixels : (i+1)*e.pixels] }
			errs := &errors[i]
			errs.mse, errs.mseClipped = squaredErrors(one(d.original), one(d.plain))
			if e.dilated == nil {
				continue
			}
			filter.Image(scratch, one(d.original))
			errs.dilated, errs.dilatedClipped = squaredErrors(scratch, one(d.dilated))
			errs.biased = squaredError(scratch, one(d.biased))
			filter.Image(scratch, one(d.plain))
			errs.dilatedRecs = squaredError(scratch, one(d.dilated))
		}
	})
}

// report adds the images' errors up, in order.
func (e *evaluation) report() *Report {
	var sum imageError
	for _, i := range e.errors {
		sum.mse += i.mse
		sum.mseClipped += i.mseClipped
		sum.dilated += i.dilated
		sum.dilatedClipped += i.dilatedClipped
		sum.biased += i.biased
		sum.dilatedRecs += i.dilatedRecs
	}
	values := float64(len(e.images))
	r := &Report{Images: e.n, MSE: sum.mse / values, MSEClipped: sum.mseClipped / values}
	if e.dilated != nil {
		r.MaxApprox = new(sum.dilated / values)
		r.MaxApproxClipped = new(sum.dilatedClipped / values)
		r.MaxApproxBiasDilated = new(sum.biased / values)
		r.MaxApproxReconstructed = new(sum.dilatedRecs / values)
	}
	return r
}

// atomMetrics fills in what is measured on the decoder's weights alone.
func (e *evaluation) atomMetrics(r *Report) error {
	if w := LastWeight(e.coder); w != nil {
		r.NegativeWeights = new(NegativeWeights(w))
	}
	if e.atoms == nil {
		return nil
	}
	sparsity, err := MeanHoyer(e.atoms.Values, e.atoms.Pixels())
	if err != nil {
		return err
	}
	r.HoyerAtoms = &sparsity
	return nil
}

// usage fills in how many atoms are used and how much they overlap, before and after the operator.
func (e *evaluation) usage(r *Report) error {
	used, err := UsedUnits(e.codes, e.coder.Units(), UsageThreshold)
	if err != nil {
		return err
	}
	r.UsedUnits = new(len(used))
	if e.atoms == nil || e.atoms.Count != e.coder.Units() { // a deeper decoder weighs its atoms by other values than the codes
		return nil
	}
	operated, err := e.atoms.Apply(e.operator.Operator, e.operator.Radius)
	if err != nil {
		return err
	}
	sparsity, err := MeanHoyer(operated.Values, operated.Pixels())
	if err != nil {
		return err
	}
	r.HoyerAtomsDilated = &sparsity
	first := e.codes[:min(e.n, JaccardImages)*e.coder.Units()]
	overlap, err := Jaccard(e.atoms, first)
	if err != nil {
		return err
	}
	after, err := Jaccard(operated, first)
	r.Jaccard, r.JaccardDilated = &overlap, &after
	return err
}

// codeMetrics fills in what is measured on the codes alone.
func (e *evaluation) codeMetrics(r *Report, target float64) (err error) {
	units := e.coder.Units()
	if r.Hoyer, err = MeanHoyer(e.codes, units); err != nil {
		return err
	}
	dead, err := DeadUnits(e.codes, units)
	if err != nil {
		return err
	}
	r.DeadUnits = len(dead)
	if target == 0 {
		target = KLTarget
	}
	kl, ok, err := KL(e.codes, units, target)
	if ok {
		r.KL = &kl
	}
	return err
}
