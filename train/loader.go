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

// loader prepares batches ahead of the steps: while the team updates the parameters of one step, it gathers and scales the
// images of the next batch and adds noise. The contents of a batch depend only on the seed, the epoch and the step.
//
// It starts no goroutine. With as many threads as processors, a further goroutine would displace a member of the team in
// the middle of a step and delay every barrier.
type loader struct {
	images   *data.Images
	prepared hooks.Prepared // the images as prepared by a hook; nil if no input reads that
	views    []*augment.Chain
	seed     uint64
	size     int // of all batches but the last of an epoch
	epochs   int
	threads  int                   // number of threads that call Fill
	inputs   map[int][]graph.Input // of the program for each batch size

	order  []int       // of the images in the epoch of the next batch
	labels []int       // of the images
	plain  [][]float32 // per thread: images before they are augmented

	batches         [2]*batch // one being read, one being prepared
	next            int       // index of the one being prepared
	epoch, position int       // of the next batch
	step            int       // steps before it
}

// batch is the input of one step.
type batch struct {
	size    int
	indices []int
	values  [][]float32 // by input: the images, then the noise
	memory  [][]float32 // memory of values
}

// Start selects the first batch: the one at that position of that epoch, after step steps. Every thread must call Fill
// before Take.
func (l *loader) Start(epoch, position, step int) {
	l.order, l.labels = make([]int, l.images.Len()), l.images.Labels()
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

// shuffle sets the order of the images in the epoch.
func (l *loader) shuffle() {
	for i := range l.order {
		l.order[i] = i
	}
	random.Stream(l.seed, "shuffle", uint64(l.epoch)).Shuffle(len(l.order), func(i, j int) {
		l.order[i], l.order[j] = l.order[j], l.order[i]
	})
}

// choose selects the images of the next batch; none after the last epoch.
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

// noiseRows is the number of images per noise stream: threads draw different streams concurrently.
const noiseRows = 16

// Fill prepares a thread's share of the next batch.
func (l *loader) Fill(thread int) {
	b := l.batches[l.next]
	blocks := (b.size + noiseRows - 1) / noiseRows
	for block := blocks * thread / l.threads; block < blocks*(thread+1)/l.threads; block++ {
		from, to := block*noiseRows, min((block+1)*noiseRows, b.size)
		for i, in := range l.inputs[b.size] {
			if in.Weight != nil {
				if block == 0 {
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
				l.augment(thread, b.values[i], block, b.indices[from:to])
			case in.Preparation != nil:
				l.prepared.Batch(dst, b.indices[from:to])
			case in.Sampler == nil:
				l.images.Batch(dst, b.indices[from:to])
			default:
				in.Sampler.Sample(dst, noise(l.seed, in.Name, block, l.step))
			}
		}
	}
}

// done is the number of epochs before the next batch, including a fraction.
func (l *loader) done() float64 {
	return float64(l.epoch) + float64(l.position)/float64(len(l.order))
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

// augment draws both views of a block of the batch: all first views precede all second views.
func (l *loader) augment(thread int, views []float32, block int, indices []int) {
	pixels := l.images.Pixels()
	plain := l.plain[thread][:len(indices)*pixels]
	l.images.Batch(plain, indices)
	for v := range 2 { // one declared view serves for both
		at := (v*len(views)/2/pixels + block*noiseRows) * pixels
		chain := l.views[min(v, len(l.views)-1)]
		chain.Apply(views[at:at+len(plain)], plain, noise(l.seed, "view."+strconv.Itoa(v+1), block, l.step))
	}
}

// noise is the random stream of one block of a noise input at a step.
func noise(seed uint64, input string, block, step int) *rand.Rand {
	return random.Stream(seed, input+"/"+strconv.Itoa(block), uint64(step))
}
