package train

import (
	"math/rand/v2"
	"strconv"

	"tessera/engine/ir/shard"
	"tessera/graph"
	"tessera/internal/random"
	"tessera/internal/volume"
)

// noiseRows is the number of images per noise stream: threads draw different streams concurrently.
const noiseRows = 16

// noise is the random stream of one block of a noise input at a step.
func noise(seed uint64, input string, block, step int) *rand.Rand {
	return random.Stream(seed, input+"/"+strconv.Itoa(block), uint64(step))
}

// blocks calls f for a thread's share of the blocks of n rows that have rows in [from, to), with the first and the last row of
// the block, of all rows.
func (l *loader) blocks(thread, n, from, to, all int, f func(block, first, end int)) {
	low, high := from/n, (to+n-1)/n
	count := high - low
	for block := low + count*thread/l.threads; block < low+count*(thread+1)/l.threads; block++ {
		f(block, block*n, min((block+1)*n, all))
	}
}

// fillRows writes images or labels.
func (l *loader) fillRows(thread int, b *batch, values []float32, in graph.Input) {
	row := len(values) / (b.to - b.from)
	l.blocks(thread, noiseRows, b.from, b.to, b.size, func(_, first, end int) {
		first, end = max(first, b.from), min(end, b.to)
		dst, indices := values[(first-b.from)*row:(end-b.from)*row], b.indices[first:end]
		switch {
		case in.Name == graph.Labels:
			oneHot(dst, row, l.labels, indices)
		case in.Preparation != nil:
			l.prepared.Batch(dst, indices)
		default:
			l.images.Batch(dst, indices)
		}
	})
}

// fillNoise draws noise. A block of a stream is drawn as a whole, also where this process needs some of its rows only. The
// noise of views has two rows per image: this process needs its rows of both halves.
func (l *loader) fillNoise(thread int, b *batch, values []float32, in graph.Input) {
	views := shard.Views(in.Shape, b.size)
	row, rows := volume.Of(in.Shape)/(views*b.size), b.to-b.from
	if rows == b.size { // the halves are one piece
		l.drawRows(thread, b, values, in, row, 0, views*b.size)
		return
	}
	for v := range views {
		half := values[v*rows*row : (v+1)*rows*row]
		l.drawRows(thread, b, half, in, row, v*b.size+b.from, v*b.size+b.to)
	}
}

// drawRows draws rows [from, to) of a noise input.
func (l *loader) drawRows(thread int, b *batch, dst []float32, in graph.Input, row, from, to int) {
	views := shard.Views(in.Shape, b.size)
	l.blocks(thread, noiseRows*views, from, to, views*b.size, func(block, first, end int) {
		stream := noise(l.seed, in.Name, block, l.step)
		if first >= from && end <= to {
			sample(in, dst[(first-from)*row:(end-from)*row], stream)
			return
		}
		drawn := l.spare(thread, (end-first)*row)
		sample(in, drawn, stream)
		low, high := max(first, from), min(end, to)
		copy(dst[(low-from)*row:(high-from)*row], drawn[(low-first)*row:])
	})
}

// sample draws values of a noise input.
func sample(in graph.Input, dst []float32, stream *rand.Rand) {
	defer namePart("sampler of", in.Name)
	in.Sampler.Sample(dst, stream)
}

// fillViews draws both views of the images: all first views precede all second views.
func (l *loader) fillViews(thread int, b *batch, views []float32) (failed error) {
	pixels, rows := l.images.Pixels(), b.to-b.from
	l.blocks(thread, noiseRows, b.from, b.to, b.size, func(block, first, end int) {
		plain := l.plain[thread][:(end-first)*pixels]
		l.images.Batch(plain, b.indices[first:end])
		low, high := max(first, b.from), min(end, b.to)
		for v := range 2 { // one declared view serves for both
			dst := views[(v*rows+low-b.from)*pixels : (v*rows+high-b.from)*pixels]
			stream := noise(l.seed, "view."+strconv.Itoa(v+1), block, l.step)
			drawn := dst
			if len(dst) < len(plain) {
				drawn = l.spare(thread, len(plain))
			}
			if err := l.augment(min(v, len(l.views)-1), drawn, plain, stream); err != nil {
				failed = err
				return
			}
			if len(dst) < len(plain) {
				copy(dst, drawn[(low-first)*pixels:])
			}
		}
	})
	return failed
}

// augment draws one view of images.
func (l *loader) augment(view int, dst, plain []float32, stream *rand.Rand) error {
	defer namePart("augmentation of view", strconv.Itoa(view))
	return l.views[view].Apply(dst, plain, stream)
}

// spare is memory of a thread.
func (l *loader) spare(thread, n int) []float32 {
	if len(l.drawn[thread]) < n {
		l.drawn[thread] = make([]float32, n)
	}
	return l.drawn[thread][:n]
}
