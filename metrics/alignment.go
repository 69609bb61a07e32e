package metrics

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tessera/internal/fit"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

// mostAligned is the maximum number of images of the metrics alignment and uniformity.
const mostAligned = 2000

// Viewer is a [Coder] of a model that may declare random views of its images.
type Viewer interface {
	Coder
	// HasViews reports whether the model declares views.
	HasViews() bool
	// View draws the first (0) or second (1) view of each image. r provides the randomness, in the order of the images.
	View(v int, images []float32, r *rand.Rand) ([]float32, error)
}

// A joint embedding is good if alignment and uniformity are low: views of a sample have equal codes, and codes of samples spread over the sphere.
// A code of zeros stays zero. One pair of views is drawn for each sample.
//
// Source: T. Wang, P. Isola, Understanding contrastive representation learning through alignment and uniformity on the
// hypersphere, ICML 2020 (alpha = 2, t = 2).
func init() {
	register("alignment", "distance of the codes of two views of an image", Description{
		Measures: []Measure{{Name: "alignment", Better: Lower, Doc: "mean squared distance of the codes, scaled to length 1, of two views of an image, as the model declares them " +
			"(Wang and Isola 2020). 0 if codes do not depend on the augmentations. Of at most 2000 images, evenly spaced; only for models with views"}},
		Reads: ReadsImages | ReadsCodes, Ordered: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		viewer, ok := As[Viewer](s.Coder)
		if !ok || !viewer.HasViews() {
			return Fixed(NotApplicable("the model declares no views of its images")), nil
		}
		if column := lackedColumn(viewer, CodeName, nil); column != "" {
			return Fixed(NotApplicable(fmt.Sprintf("its codes are also computed from the column %q, which views do not have", column))), nil
		}
		return &alignmentMeter{viewer, s.Seed, newSpaced(s, volume.Of(s.Shape), mostAligned)}, nil
	})
	register("uniformity", "how evenly the codes spread over the sphere", Description{
		Measures: []Measure{{Name: "uniformity", Better: Lower, Doc: "ln mean exp(-2 \\|z - z'\\|²) over all pairs of images, z their codes scaled to length 1 (Wang and Isola 2020). " +
			"0 if all codes are equal, almost -4 at best. Of at most 2000 images, evenly spaced"}},
		Reads: ReadsCodes, Ordered: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) { return &uniformityMeter{newSpaced(s, s.Units, mostAligned)}, nil })
	register("code_spread", "variance of the codes scaled to length 1", Description{
		Measures: []Measure{{Name: "code_spread", Better: Higher, Doc: "variance of the codes scaled to length 1, mean \\|z\\|² - \\|mean z\\|². 0 if all codes are equal, at most 1"}},
		Reads:    ReadsCodes, OnRequest: true,
	}, func(s *Subject) (Meter, error) {
		means, squares, n := make([]float64, s.Units), 0.0, 0.0
		return meter{func(b *Batch) error {
			z := vectors.Wide(b.Codes)
			toLength1(z, s.Units)
			for j, v := range z {
				means[j%s.Units] += v
				squares += v * v
			}
			n += float64(len(z) / s.Units)
			return nil
		}, func() []Value {
			return []Value{Number(max(0, squares/n-fit.Dot(means, means)/(n*n)))}
		}}, nil
	})
}

type alignmentMeter struct {
	coder  Viewer
	seed   uint64
	images spaced
}

func (m *alignmentMeter) Add(b *Batch) error { m.images.add(b.Images); return nil }

func (m *alignmentMeter) Values(context.Context) ([]Value, error) {
	var z [2][]float64
	for v := range z {
		view, err := m.coder.View(v, m.images.rows, random.Stream(m.seed, fmt.Sprintf("alignment/view.%d", v+1), 0))
		if err != nil {
			return nil, fmt.Errorf("metrics: alignment: %w", err)
		}
		codes, err := encode(m.coder, view)
		if err != nil {
			return nil, err
		}
		z[v] = vectors.Wide(codes)
		toLength1(z[v], m.coder.Units())
	}
	return []Value{Number(fit.SquaredDistance(z[0], z[1]) / float64(len(z[0])/m.coder.Units()))}, nil
}

type uniformityMeter struct{ spaced }

func (m *uniformityMeter) Add(b *Batch) error { m.add(b.Codes); return nil }

func (m *uniformityMeter) Values(ctx context.Context) ([]Value, error) {
	z, k := vectors.Wide(m.rows), m.width
	n := len(z) / k
	if n < 2 {
		return []Value{NotApplicable("there are fewer than two images")}, nil
	}
	toLength1(z, k)
	sums := make([]float64, n)
	team.For(n, 16, func(from, to int) {
		for i := from; i < to && ctx.Err() == nil; i++ {
			for j := range i {
				sums[i] += math.Exp(-2 * fit.SquaredDistance(z[i*k:(i+1)*k], z[j*k:(j+1)*k]))
			}
		}
	})
	return []Value{Number(math.Log(2 * mean(sums, n) / float64(n-1)))}, ctx.Err()
}
