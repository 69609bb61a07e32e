package ops

import vector "tessera/graph/engine/kernel"

// Where neighbouring columns of an image lie side by side, what one row of the filters sees from a place of the output is
// one run of values. The runs of many images, an image's size apart, are a matrix that can be multiplied as it stands:
// nothing is gathered, and what lies outside of the images is not multiplied.

// Runs that are shorter than a block of a product, or of fewer images than a tile wants, are gathered.
const (
	leastRun    = 256
	leastImages = 4
)

// imagesAtOnce are multiplied together, three tiles of the largest kind: the rows of the images that are in use fit the
// second-level cache.
const imagesAtOnce = 36

// inPlace reports whether the runs of a batch are multiplied where they stand.
func (l *lowering) inPlace(batch int) bool {
	return l.runs == 1 && l.run >= leastRun && batch >= leastImages
}

// blind reports whether there are places of the output from which no filter sees anything of the image.
func (l *lowering) blind() bool {
	along := func(in, out, before int) bool { return before >= l.Kernel || (out-1)*l.Stride-before >= in }
	return along(l.In[0], l.Out[0], l.Top) || along(l.In[1], l.Out[1], l.Left)
}

// places calls visit, for one row u of the filters, with every place of the output and what u sees from there: values
// [low, high) of a run are inside of the image, where value low is the image's value at. first says that no row of the
// filters before u sees anything from that place.
func (l *lowering) places(u int, visit func(place, low, high, at int, first bool)) {
	line := l.In[1] * l.In[2]
	for i := range l.Out[0] {
		top := i*l.Stride - l.Top
		y := top + u
		if y < 0 || y >= l.In[0] {
			continue
		}
		for j := range l.Out[1] {
			start := (j*l.Stride - l.Left) * l.In[2]
			if low, high := max(0, -start), min(l.run, line-start); low < high {
				visit(i*l.Out[1]+j, low, high, y*line+start+low, u == max(0, -top))
			}
		}
	}
}

// convolveInPlace computes the output of images [from, to).
func convolveInPlace[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		k, x, w := kernels(), in[0], in[1]
		image, out, filters := l.In[0]*l.In[1]*l.In[2], l.image(l.filters), l.filters
		if l.blind() {
			clear(dst[from*out : to*out])
		}
		for first := from; first < to; first += imagesAtOnce {
			n := min(imagesAtOnce, to-first)
			for u := range l.Kernel {
				l.places(u, func(place, low, high, at int, unwritten bool) {
					beta := T(1)
					if unwritten {
						beta = 0
					}
					k.Gemm(false, false, n, filters, high-low, 1, x[first*image+at:], image, w[(u*l.run+low)*filters:], filters,
						beta, dst[first*out+place*filters:], out)
				})
			}
		}
	}
}
