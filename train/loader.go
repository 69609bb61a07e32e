package train

import (
	"tessera/augment"
	"tessera/data"
	"tessera/engine/ir/shard"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/internal/volume"
	"tessera/part"
)

// loader prepares batches ahead of the steps: while the team updates the parameters of one step, it gathers and scales the
// images of the next batch and adds noise. The contents of a batch depend only on the seed, the epoch and the step.
//
// Of several processes that train together, each prepares its rows of every batch. Streams belong to the rows of the whole
// batch: the rows of all processes are the batch of one process.
//
// It starts no goroutine. With as many threads as processors, a further goroutine would displace a member of the team in
// the middle of a step and delay every barrier.
type loader struct {
	images   *data.Images
	prepared hooks.Prepared // the images as prepared by a hook; nil if no input reads that
	views    []*augment.Chain
	seed     uint64
	size     int // of all batches but the last of a pass, for all processes together
	epochs   int
	passes   int                   // over the images in one epoch; 0 is 1
	threads  int                   // number of threads that call Fill
	inputs   map[int][]graph.Input // of the program for each batch size, for all processes together

	rank, processes int // this process of how many; 0 processes is 1

	order  []int       // of the images in the pass of the next batch
	labels []int       // of the images
	plain  [][]float32 // per thread: images before they are augmented
	drawn  [][]float32 // per thread: a block of which this process needs some rows
	failed []error     // per thread: of the batch being prepared

	batches         [2]*batch // one being read, one being prepared
	next            int       // index of the one being prepared
	epoch, position int       // of the next batch; the position counts the images of all passes of the epoch before it
	step            int       // steps before it
}

// batch is the input of one step.
type batch struct {
	size     int
	from, to int // rows of this process
	indices  []int
	values   [][]float32 // by input: the images, then the noise; the rows of this process
	memory   [][]float32 // memory of values
}

// Start selects the first batch: the one at that position of that epoch, after step steps. Every thread must call Fill
// before Take.
func (l *loader) Start(epoch, position, step int) {
	l.passes = max(l.passes, 1)
	l.order, l.labels = make([]int, l.images.Len()), l.images.Labels()
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
	if l.position += b.size; l.position == l.passes*len(l.order) {
		l.epoch, l.position = l.epoch+1, 0
	}
	if l.position%len(l.order) == 0 && l.epoch < l.epochs {
		l.shuffle()
	}
	l.choose()
	return b, nil
}

// shuffle sets the order of the images in the pass.
func (l *loader) shuffle() {
	for i := range l.order {
		l.order[i] = i
	}
	random.Stream(l.seed, "shuffle", uint64(l.epoch*l.passes+l.position/len(l.order))).Shuffle(len(l.order), func(i, j int) {
		l.order[i], l.order[j] = l.order[j], l.order[i]
	})
}

// choose selects the images of the next batch; none after the last epoch.
func (l *loader) choose() {
	b := l.batches[l.next]
	if b.size = 0; l.epoch >= l.epochs {
		return
	}
	from := l.position % len(l.order)
	b.indices = append(b.indices[:0], l.order[from:min(from+l.size, len(l.order))]...)
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
		default:
			l.fillRows(thread, b, b.values[i], in)
		}
	}
}

// weight is the weight of a term in the next batch.
func (l *loader) weight(in graph.Input) float32 {
	defer namePart("input", in.Name)
	return float32(in.Weight.At(l.done()))
}

// done is the number of epochs before the next batch, including a fraction.
func (l *loader) done() float64 {
	return float64(l.epoch) + float64(l.position)/float64(l.passes*len(l.order))
}

// oneHot writes one row per label: 1 at its class, or zeros if the label is unknown.
func oneHot(dst []float32, classes int, labels, indices []int) {
	clear(dst)
	for k, i := range indices {
		if label := labels[i]; label >= 0 {
			dst[k*classes+label] = 1
		}
	}
}
