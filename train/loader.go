package train

import (
	"math/rand/v2"
	"strconv"

	"tessera/augment"
	"tessera/data"
	"tessera/graph"
	"tessera/hooks"
	"tessera/internal/random"
	"tessera/internal/volume"
)

// loader prepares batches ahead of the steps: while the team moves the parameters of one step, it gathers, scales and
// gives noise to the next batch. What a batch holds depends on the seed, the epoch and the step alone.
//
// It starts no goroutine: with as many threads as processors, that would take one from the team in the middle of
// a step, and every barrier would wait for it.
type loader struct {
	images   *data.Images
	prepared hooks.Prepared // what a hook makes of them; nil where no input wants that
	views    []*augment.Chain
	seed     uint64
	size     int // of all batches but the last of an epoch
	epochs   int
	threads  int                   // how many call Fill
	inputs   map[int][]graph.Input // of the program for each batch size

	order  []int       // of the images in the epoch of the next batch
	labels []int       // of the images
	plain  [][]float32 // per thread: images before they are augmented

	batches         [2]*batch // one read, one prepared
	next            int       // which is prepared
	epoch, position int       // of the next batch
	step            int       // steps before it
}

// batch is what one step reads.
type batch struct {
	size    int
	indices []int
	values  [][]float32 // by input: the images, then the noise
	memory  [][]float32 // what values is cut from
}

// Start chooses the first batch: that of the given epoch and place in it, with that many steps before. Every thread must
// call Fill before it is taken.
func (l *loader) Start(epoch, position, step int) {
	l.order, l.labels = make([]int, l.images.Len()), l.images.Labels()
	if l.views != nil {
		for range l.threads {
			l.plain = append(l.plain, make([]float32, noiseRows*l.images.Pixels()))
		}
	}
	for k := range l.batches {
		b := &batch{}
		for i := range l.inputs[l.size] { // all programs have equally many
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

// Take returns the batch that was filled and chooses the next one. It is read until the next Take.
func (l *loader) Take() *batch {
	b := l.batches[l.next]
	l.next = 1 - l.next
	l.step++
	if l.position += l.size; l.position >= len(l.order) {
		l.position = 0
		if l.epoch++; l.epoch < l.epochs {
			l.shuffle()
		}
	}
	l.choose()
	return b
}

// shuffle puts the images into the order of the epoch.
func (l *loader) shuffle() {
	for i := range l.order {
		l.order[i] = i
	}
	random.Stream(l.seed, "shuffle", uint64(l.epoch)).Shuffle(len(l.order), func(i, j int) {
		l.order[i], l.order[j] = l.order[j], l.order[i]
	})
}

// choose says what the next batch is to hold; nothing, after the last epoch.
func (l *loader) choose() {
	b := l.batches[l.next]
	if b.size = 0; l.epoch >= l.epochs {
		return
	}
	b.indices = append(b.indices[:0], l.order[l.position:min(l.position+l.size, len(l.order))]...)
	b.size = len(b.indices)
	for i, in := range l.inputs[b.size] {
		b.values[i] = b.memory[i][:volume.Of(in.Shape)]
	}
}

// noiseRows is how many images share one stream of noise, so that threads can draw it side by side.
const noiseRows = 16

// Fill prepares a thread's part of the next batch.
func (l *loader) Fill(thread int) {
	b := l.batches[l.next]
	parts := (b.size + noiseRows - 1) / noiseRows
	for part := parts * thread / l.threads; part < parts*(thread+1)/l.threads; part++ {
		from, to := part*noiseRows, min((part+1)*noiseRows, b.size)
		for i, in := range l.inputs[b.size] {
			if in.Weight != nil {
				if part == 0 {
					b.values[i][0] = float32(in.Weight.At(l.done()))
				}
				continue
			}
			row := len(b.values[i]) / b.size
			dst := b.values[i][from*row : to*row]
			switch {
			case in.Name == graph.Labels:
				oneHot(dst, row, l.labels, b.indices[from:to])
			case in.Name == graph.Views:
				l.augment(thread, b.values[i], part, b.indices[from:to])
			case in.Preparation != nil:
				l.prepared.Batch(dst, b.indices[from:to])
			case in.Sampler == nil:
				l.images.Batch(dst, b.indices[from:to])
			default:
				in.Sampler.Sample(dst, noise(l.seed, in.Name, part, l.step))
			}
		}
	}
}

// done is how many epochs are complete before the next batch, a fraction of one included.
func (l *loader) done() float64 {
	return float64(l.epoch) + float64(l.position)/float64(len(l.order))
}

// oneHot writes a row for each label: 1 at its class, and 0 where it is unknown.
func oneHot(dst []float32, classes int, labels, indices []int) {
	clear(dst)
	for k, i := range indices {
		if label := labels[i]; label >= 0 {
			dst[k*classes+label] = 1
		}
	}
}

// augment draws both views of a part of the batch: all first views lie before all second ones.
func (l *loader) augment(thread int, views []float32, part int, indices []int) {
	pixels := l.images.Pixels()
	plain := l.plain[thread][:len(indices)*pixels]
	l.images.Batch(plain, indices)
	for v := range 2 { // by one declared view both
		at := (v*len(views)/2/pixels + part*noiseRows) * pixels
		chain := l.views[min(v, len(l.views)-1)]
		chain.Apply(views[at:at+len(plain)], plain, noise(l.seed, "view."+strconv.Itoa(v+1), part, l.step))
	}
}

// noise is the stream of one part of a noise input's batch at a step.
func noise(seed uint64, input string, part, step int) *rand.Rand {
	return random.Stream(seed, input+"/"+strconv.Itoa(part), uint64(step))
}
