package classical

import (
	"fmt"
	"math"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
	"tessera/metrics"
)

// Missing entries of images are NaN. pca, nmf and sparse_nmf fit the entries that are there, and encode an image by these alone.

func (m *restarted) TakesHoles() bool { return metrics.TakesHoles(m.Model) }

func (r replaced) TakesHoles() bool { return metrics.TakesHoles(r.Coder) }

// withNaN contains images of a data set with NaN for missing and hidden entries.
type withNaN struct{ *data.Images }

func (w withNaN) Batch(dst []float32, indices []int) {
	w.Images.Batch(dst, indices)
	observed := make([]float32, len(indices)*w.Pixels())
	w.Gather(observed, data.ObservedColumn, indices)
	metrics.SetNaN(dst, observed)
}

// holed returns images with NaN for missing and hidden entries; it returns the images unchanged if there are none.
func holed(images Images) Images {
	if own, ok := images.(*data.Images); ok && own != nil && own.Holed() {
		return withNaN{own}
	}
	return images
}

func complete(images Images) error {
	if _, ok := holed(images).(withNaN); ok {
		return part.KeyError{Key: "dataset", Problem: "entries of the samples are missing or hidden, but numbers of components are compared on complete samples; fill them first (`tessera complete`), or compare mse_held_out in a sweep over components with dataset.hide = 0.1"}
	}
	return nil
}

// missing contains the missing entries of images.
type missing struct {
	entries  []bool
	observed int // number of observed entries
}

// missingOf returns the missing entries, or nil if there are none. It returns an error if an image has no observed entry, or
// if a pixel is not observed in any image.
func missingOf(x []float32, pixels int) (*missing, error) {
	m := &missing{entries: make([]bool, len(x))}
	rows, columns := make([]int, len(x)/pixels), make([]int, pixels)
	for i, v := range x {
		if v != v {
			m.entries[i] = true
			continue
		}
		m.observed++
		rows[i/pixels]++
		columns[i%pixels]++
	}
	if m.observed == len(x) {
		return nil, nil
	}
	for j, n := range columns {
		if n == 0 {
			return nil, &data.Error{Problem: fmt.Sprintf("value %d is missing in all fitted samples: nothing can be learned about it", j), Hint: "leave it out"}
		}
	}
	for i, n := range rows {
		if n == 0 {
			return nil, &data.Error{Problem: fmt.Sprintf("nothing is known of sample %d: all of its values are missing", i), Hint: "remove it"}
		}
	}
	return m, nil
}

// filled returns a copy of x in which a missing entry is replaced by the mean of its pixel over the images in which the pixel
// is observed.
func (m *missing) filled(x []float32, pixels int) []float32 {
	sums, counts := make([]float64, pixels), make([]float64, pixels)
	for i, v := range x {
		if !m.entries[i] {
			sums[i%pixels] += float64(v)
			counts[i%pixels]++
		}
	}
	all := make([]float32, len(x))
	for i, v := range x {
		if all[i] = v; m.entries[i] {
			all[i] = float32(sums[i%pixels] / counts[i%pixels])
		}
	}
	return all
}

func hasNaN(values []float32) bool {
	for _, v := range values {
		if v != v {
			return true
		}
	}
	return false
}

// fill replaces the missing entries of the fitted images by the entries of the current factorisation Y = HW. The loss of the
// filled images then equals the loss over the observed entries, because filled entries have no error. For any other
// factorisation the former is an upper bound of the latter. An iteration that lowers the former therefore lowers the latter,
// as in expectation maximisation.
//
// Source: S. Zhang, W. Wang, J. Ford, F. Makedon, Learning from incomplete ratings using non-negative matrix factorization,
// SIAM International Conference on Data Mining 2006 (section 3.2).
func (f *factors) fill() {
	fit.ForLanes(f.n, func(lane, from, to int) {
		x, y := f.x[from*f.pixels:to*f.pixels], f.decodeBlock(f.work[lane], from, to)
		for i, gone := range f.missing.entries[from*f.pixels : to*f.pixels] {
			if gone {
				x[i] = y[i]
			}
		}
	})
	f.sumSquares()
}

// refill fills the missing entries for the next iteration, and returns the objective as a mean over the observed entries.
func (m *factorisation) refill() float64 {
	m.fill()
	return m.rule.prepare() * float64(len(m.x)) / float64(m.missing.observed)
}

// encodeHoled returns the codes of images with missing entries. The method's own encoder encodes each image, with missing
// entries set to 0 in the image and in all atoms. These entries then have neither an error nor a gradient.
func (m *factorisation) encodeHoled(images []float32) []float32 {
	p, k := m.pixels, m.units
	codes := make([]float32, len(images)/p*k)
	team.For(len(images)/p, 1, func(i, _ int) {
		one := &factorisation{factors: factors{Base: m.Base, unit: m.unit}}
		one.atoms = make([]float32, len(m.atoms))
		copy(one.atoms, m.atoms)
		image := make([]float32, p)
		for j, v := range images[i*p : (i+1)*p] {
			if v == v {
				image[j] = v
				continue
			}
			for q := range k {
				one.atoms[q*p+j] = 0
			}
		}
		m.build(one)
		copy(codes[i*k:], one.encode(image))
	})
	return codes
}

// complete returns a [part.KeyError] for settings that do not allow missing entries.
func (s *NMF) complete() error {
	switch {
	case s.Batch > 0:
		return part.KeyErrorf("batch", "got %d, but samples with missing or hidden entries are fitted together: want 0", s.Batch)
	case s.Loss != "euclidean" && s.Loss != "kl":
		return part.KeyErrorf("loss", `got %q, but with missing or hidden entries want "euclidean" or "kl"`, s.Loss)
	}
	return nil
}

// canonicalNaN is the bit pattern of a missing entry in digests.
var canonicalNaN = math.Float32bits(float32(math.NaN()))
