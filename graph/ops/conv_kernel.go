package ops

import (
	vector "tessera/graph/engine/kernel"
)

// lowering turns a convolution into matrix products: every place of the output becomes a row that holds the patch of the
// image under the filters (im2col), and rows times filters is the output. Images are padded first, so that a patch
// consists of a few runs of consecutive values at fixed distances, for all places alike.
type lowering struct {
	Convolution
	channels int   // of one group
	filters  int   // of one group
	row      int   // values in a patch of one group: Kernel * Kernel * channels
	runs     []int // the places of a patch's runs in a padded image, relative to its first value
	run      int   // values in each of them
	stride   int   // values in a row of a padded image
	padded   int   // values in a padded image
	rows     int   // of the padded image
}

func newLowering(g Convolution) lowering {
	l := lowering{Convolution: g, channels: g.In[2] / g.Groups, filters: g.Out[2] / g.Groups}
	l.row = g.Kernel * g.Kernel * l.channels
	reach := (g.Kernel - 1) * g.Dilation
	l.rows = (g.Out[0]-1)*g.Stride + reach + 1
	l.stride = ((g.Out[1]-1)*g.Stride + reach + 1) * g.In[2]
	l.padded = l.rows * l.stride
	l.run = l.channels
	whole := g.Dilation == 1 && g.Groups == 1 // neighbouring values lie side by side
	if whole {
		l.run *= g.Kernel
	}
	for u := range g.Kernel {
		for v := range g.Kernel {
			if v == 0 || !whole {
				l.runs = append(l.runs, u*g.Dilation*l.stride+v*g.Dilation*g.In[2])
			}
		}
	}
	return l
}

// patches is the number of patches in one image.
func (l *lowering) patches() int { return l.Out[0] * l.Out[1] }

// image is the number of values in the patches of an image, of each patch so many.
func (l *lowering) image(values int) int { return l.patches() * values }

// blockValues is how many values of patches are made before they are multiplied: they should stay in the second-level
// cache, and the filters be packed as seldom as possible.
const blockValues = 1 << 18

// block is the number of images in a block, of each patch so many values.
func (l *lowering) block(values int) int { return max(1, blockValues/l.image(values)) }

// pad copies an image into a padded one, whose margins hold zeros.
func pad[T Float](l *lowering, padded, image []T) {
	line, margin := l.In[1]*l.In[2], l.Left*l.In[2]
	from, to := l.Top, min(l.Top+l.In[0], l.rows)
	n := max(0, min(line, l.stride-margin))
	for y := from; y < to; y++ {
		if n > 0 {
			copy(padded[y*l.stride+margin:][:n], image[(y-l.Top)*line:])
		}
	}
}

// crop copies a padded image into one without margins; what the convolution does not see is 0.
func crop[T Float](l *lowering, image, padded []T) {
	line, margin := l.In[1]*l.In[2], l.Left*l.In[2]
	n := max(0, min(line, l.stride-margin))
	for y := range l.In[0] {
		into := image[y*line : (y+1)*line]
		if y+l.Top >= l.rows {
			clear(into)
			continue
		}
		if n > 0 {
			copy(into[:n], padded[(y+l.Top)*l.stride+margin:])
		}
		clear(into[n:])
	}
}

// gatherPatches writes values [from, to) of every patch of one group as rows.
func gatherPatches[T Float](l *lowering, rows, padded []T, group, from, to int) {
	padded = padded[group*l.channels:]
	at := 0
	for i := range l.Out[0] {
		for j := range l.Out[1] {
			patch := padded[i*l.Stride*l.stride+j*l.Stride*l.In[2]:]
			for r := from / l.run; r*l.run < to; r++ {
				first, last := max(from-r*l.run, 0), min(to-r*l.run, l.run)
				at += copy(rows[at:], patch[l.runs[r]+first:l.runs[r]+last])
			}
		}
	}
}

// scatterPatches adds rows of patches of one group to a padded image.
func scatterPatches[T Float](l *lowering, k *vector.Set[T], padded, rows []T, group int) {
	padded = padded[group*l.channels:]
	at := 0
	for i := range l.Out[0] {
		for j := range l.Out[1] {
			patch := padded[i*l.Stride*l.stride+j*l.Stride*l.In[2]:]
			for _, off := range l.runs {
				into := patch[off : off+l.run]
				k.Add(into, into, rows[at:at+l.run])
				at += l.run
			}
		}
	}
}

// convolve computes the output of images [from, to).
func convolve[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, x, w := kernels(), in[0], in[1]
		padded, rows := scratch[:l.padded], scratch[l.padded:]
		clear(padded)
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(l.row)
		for at := from; at < to; at += block {
			n := min(block, to-at)
			for group := range l.Groups {
				for i := range n {
					pad(&l, padded, x[(at+i)*image:])
					gatherPatches(&l, rows[i*l.image(l.row):(i+1)*l.image(l.row)], padded, group, 0, l.row)
				}
				k.Gemm(false, false, n*patches, l.filters, l.row, 1, rows, l.row, w[group*l.filters:], l.Out[2],
					0, dst[at*patches*l.Out[2]+group*l.filters:], l.Out[2])
			}
		}
	}
}

// convolveImages computes images [from, to).
func convolveImages[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, y, w := kernels(), in[0], in[1]
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(l.row)
		padded, rows := scratch[:block*l.padded], scratch[block*l.padded:]
		for at := from; at < to; at += block {
			n := min(block, to-at)
			clear(padded)
			for group := range l.Groups {
				k.Gemm(false, true, n*patches, l.row, l.filters, 1, y[at*patches*l.Out[2]+group*l.filters:], l.Out[2],
					w[group*l.filters:], l.Out[2], 0, rows, l.row)
				for i := range n {
					scatterPatches(&l, k, padded[i*l.padded:], rows[i*l.image(l.row):(i+1)*l.image(l.row)], group)
				}
			}
			for i := range n {
				crop(&l, dst[(at+i)*image:(at+i+1)*image], padded[i*l.padded:])
			}
		}
	}
}

// convolveGradient computes what values [from, to) of a patch give, for all groups: rows of the filters' gradient.
func convolveGradient[T Float](l lowering, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, x, y := kernels(), in[0], in[1]
		values := to - from
		padded, rows := scratch[:l.padded], scratch[l.padded:]
		clear(padded)
		image, patches, block := l.In[0]*l.In[1]*l.In[2], l.patches(), l.block(values)
		images := len(x) / image
		for at := 0; at < images; at += block {
			n := min(block, images-at)
			beta := T(1)
			if at == 0 {
				beta = 0
			}
			for group := range l.Groups {
				for i := range n {
					pad(&l, padded, x[(at+i)*image:])
					gatherPatches(&l, rows[i*l.image(values):(i+1)*l.image(values)], padded, group, from, to)
				}
				k.Gemm(true, false, values, l.filters, n*patches, 1, rows, values, y[at*patches*l.Out[2]+group*l.filters:], l.Out[2],
					beta, dst[from*l.Out[2]+group*l.filters:], l.Out[2])
			}
		}
	}
}
