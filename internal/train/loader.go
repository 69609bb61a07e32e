package train

import (
	"math/rand/v2"
	"strconv"

	"tessera/config/part"
	"tessera/data"
	"tessera/data/augment"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/engine/ir/shard"
	"tessera/internal/engine/kernel"
	"tessera/internal/random"
	"tessera/internal/volume"
)

// loader prepares batches ahead of the steps: while the team updates the parameters of one step, it gathers and scales the
// images of the next batch and adds noise. The contents of a batch depend only on the seed, the epoch and the step.
//
// In distributed training each process prepares its own rows of every batch. Random streams belong to the rows of the
// complete batch: together, the rows of all processes equal the batch of a single process.
//
// The loader starts no goroutine. With as many threads as processors, a further goroutine would displace a member of the team
// in the middle of a step and delay every barrier.
type loader struct {
	images   *data.Images
	prepared hooks.Prepared // the images prepared by a hook; nil if no input reads them
	views    []*augment.Chain
	seed     uint64
	size     int // batch size over all processes; the last batch of a pass may be smaller
	epochs   int
	passes   int                   // passes over the images in one epoch; 0 means 1
	threads  int                   // number of threads that call Fill
	inputs   map[int][]graph.Input // inputs of the program for each batch size, over all processes

	rank, processes int // rank of this process and number of processes; 0 processes means 1

	n      int         // number of images
	order  *data.Order // of the images in the pass of the next batch, from its first one on
	plain  [][]float32 // images before augmentation, per thread
	drawn  [][]float32 // block of noise of which this process needs only some rows, per thread
	failed []error     // error in the batch being prepared, per thread

	batches         [2]*batch // one batch is being read while the other is prepared
	next            int       // index of the batch being prepared
	epoch, position int       // epoch and position of the next batch; the position counts the images before the batch in all passes of the epoch
	step            int       // number of steps before the next batch
}

// batch is the input of one step.
type batch struct {
	size     int
	from, to int // rows of this process
	indices  []int
	values   [][]float32 // values of each input for the rows of this process: the images, then the noise
	memory   [][]float32 // buffers behind values
}

// Start selects the first batch: at the given position of the given epoch, after step steps. Every thread must call Fill
// before Take.
func (l *loader) Start(epoch, position, step int) {
	l.passes = max(l.passes, 1)
	l.n = l.images.Len()
	l.drawn, l.failed = make([][]float32, l.threads), make([]error, l.threads)
	if l.views != nil {
		for range l.threads {
			l.plain = append(l.plain, make([]float32, noiseRows*l.images.Pixels()))
		}
	}
	for k := range l.batches {
		b := &batch{}
		for i := range l.inputs[l.size] { // all programs have the same inputs
			length := 0
			for _, of := range l.inputs {
				length = max(length, volume.Of(of[i].Shape))
			}
			b.memory = append(b.memory, make([]float32, length))
		}
		b.values = make([][]float32, len(b.memory))
		l.batches[k] = b
	}
	l.epoch, l.position, l.step = epoch, position, step
	if epoch < l.epochs {
		l.shuffle()
		for range position % l.n {
			l.order.Next()
		}
	}
	l.choose()
}

// Take returns the filled batch, which is valid until the next Take, and selects the next one.
func (l *loader) Take() (*batch, error) {
	for _, err := range l.failed {
		if err != nil {
			return nil, err
		}
	}
	b := l.batches[l.next]
	l.next = 1 - l.next
	l.step++
	if l.position += b.size; l.position == l.passes*l.n {
		l.epoch, l.position = l.epoch+1, 0
	}
	if l.position%l.n == 0 && l.epoch < l.epochs {
		l.shuffle()
	}
	l.choose()
	return b, nil
}

// shuffle sets the order of the images for the pass.
func (l *loader) shuffle() {
	l.order = l.images.Order(random.Stream(l.seed, "shuffle", uint64(l.epoch*l.passes+l.position/l.n)))
}

// choose selects the images of the next batch; after the last epoch there are none.
func (l *loader) choose() {
	b := l.batches[l.next]
	if b.size = 0; l.epoch >= l.epochs {
		return
	}
	b.indices = b.indices[:0]
	for range min(l.size, l.n-l.position%l.n) {
		b.indices = append(b.indices, l.order.Next())
	}
	b.size = len(b.indices)
	b.from, b.to = shard.Rows(b.size, l.rank, max(l.processes, 1))
	for i, in := range l.inputs[b.size] {
		b.values[i] = b.memory[i][:volume.Of(in.Shape)]
		if in.Weight == nil {
			b.values[i] = b.values[i][:volume.Of(in.Shape)/b.size*(b.to-b.from)]
		}
	}
}

// Fill prepares a thread's share of the next batch.
func (l *loader) Fill(thread int) {
	b := l.batches[l.next]
	if b.size == 0 {
		return
	}
	for i, in := range l.inputs[b.size] {
		switch {
		case in.Weight != nil:
			if thread == 0 {
				b.values[i][0] = l.weight(in)
				if w := b.values[i][0]; w < 0 {
					l.failed[thread] = part.KeyErrorf(in.Name, "got %v, want a weight >= 0", w)
					return
				}
			}
		case in.Name == graph.Views:
			l.failed[thread] = l.fillViews(thread, b, b.values[i])
		case in.Sampler != nil:
			l.fillNoise(thread, b, b.values[i], in)
		case l.images.IsDrawn(in.Column):
			l.fillDrawn(thread, b, b.values[i], in)
		default:
			l.fillRows(thread, b, b.values[i], in)
		}
	}
}

// weight returns the weight of a term for the next batch.
func (l *loader) weight(in graph.Input) float32 {
	defer namePart("input", in.Name)
	return float32(in.Weight.At(l.done()))
}

// done returns the number of epochs before the next batch, including fractions.
func (l *loader) done() float64 {
	return float64(l.epoch) + float64(l.position)/float64(l.passes*l.n)
}

// gather writes the rows of an input that contains data.
func gather(images *data.Images, prepared hooks.Prepared, in graph.Input, dst []float32, indices []int) {
	switch {
	case in.Preparation != nil:
		prepared.Batch(dst, indices)
	case in.Classes > 0:
		images.OneHot(dst, in.Column, indices)
	default:
		images.Gather(dst, in.Column, indices)
	}
}

// noiseRows is the number of images per noise stream: threads draw different streams concurrently.
const noiseRows = 16

// noise returns the random stream for one block of rows of a noise input at a step.
func noise(seed uint64, input string, block, step int) *rand.Rand {
	return random.Stream(seed, noisePath(input, block), uint64(step))
}

// noisePath returns the path of the stream of a block of rows.
func noisePath(input string, block int) string { return input + "/" + strconv.Itoa(block) }

// blocks divides all rows into blocks of n rows. It divides the blocks that contain rows in [from, to) among the threads, and
// calls f for each block of this thread, with the first row of the block and the row after its last.
func (l *loader) blocks(thread, n, from, to, all int, f func(block, first, end int)) {
	low, high := from/n, (to+n-1)/n
	count := high - low
	for block := low + count*thread/l.threads; block < low+count*(thread+1)/l.threads; block++ {
		f(block, block*n, min((block+1)*n, all))
	}
}

// fillRows writes this thread's rows of a column.
func (l *loader) fillRows(thread int, b *batch, values []float32, in graph.Input) {
	row := len(values) / (b.to - b.from)
	l.blocks(thread, noiseRows, b.from, b.to, b.size, func(_, first, end int) {
		first, end = max(first, b.from), min(end, b.to)
		gather(l.images, l.prepared, in, values[(first-b.from)*row:(end-b.from)*row], b.indices[first:end])
	})
}

// fillDrawn draws the rows of a drawn column. As for noise, a complete block is drawn from its stream.
func (l *loader) fillDrawn(thread int, b *batch, values []float32, in graph.Input) {
	row, c := len(values)/(b.to-b.from), l.images.DrawnSize(in.Column)
	l.blocks(thread, noiseRows, b.from, b.to, b.size, func(block, first, end int) {
		drawn := l.spare(thread, (end-first)*c)
		draw(l.images, drawn, in.Column, b.indices[first:end], noise(l.seed, graph.ColumnName(in.Column), block, l.step))
		low, high := max(first, b.from), min(end, b.to)
		dst, drawn := values[(low-b.from)*row:(high-b.from)*row], drawn[(low-first)*c:(high-first)*c]
		if in.Classes > 0 {
			data.OneHotOf(dst, drawn)
		} else {
			copy(dst, drawn)
		}
	})
}

func draw(images *data.Images, dst []float32, column string, indices []int, stream *rand.Rand) {
	defer namePart("column", column)
	images.DrawInto(dst, column, indices, stream)
}

// fillNoise draws noise. Each block of a stream is drawn completely, even if this process needs only some of its rows. The
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
		if first >= from && end <= to {
			sample(in, dst[(first-from)*row:(end-from)*row], l.seed, noisePath(in.Name, block), l.step)
			return
		}
		drawn := l.spare(thread, (end-first)*row)
		sample(in, drawn, l.seed, noisePath(in.Name, block), l.step)
		low, high := max(first, from), min(end, to)
		copy(dst[(low-from)*row:(high-from)*row], drawn[(low-first)*row:])
	})
}

// numberSampler is a sampler that draws the same values faster from the generator below the stream.
type numberSampler interface {
	SampleNumbers(dst []float32, p *kernel.PCG)
}

// sample draws values of a noise input from the random stream of a path and a counter.
func sample(in graph.Input, dst []float32, seed uint64, path string, counter int) {
	defer namePart("sampler of", in.Name)
	if s, ok := in.Sampler.(numberSampler); ok {
		s.SampleNumbers(dst, kernel.NewPCG(random.Seeds(seed, path, uint64(counter))))
		return
	}
	in.Sampler.Sample(dst, random.Stream(seed, path, uint64(counter)))
}

// fillViews draws both views of the images: first all first views, then all second views.
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

// spare returns n values of a thread's scratch memory.
func (l *loader) spare(thread, n int) []float32 {
	if len(l.drawn[thread]) < n {
		l.drawn[thread] = make([]float32, n)
	}
	return l.drawn[thread][:n]
}
