package data

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
)

// extent is the place of the values of an array in a file that is not compressed.
type extent struct {
	path string
	at   int64    // offset of the first value
	last bool     // they end with the file
	file *os.File // the file, if it has no name
	arrayHeader
}

// disk contains the rows of arrays that do not fit into the budget of a data set, one array after the other. It reads blocks of
// successive rows, of which it keeps those that were used last. A row has the values that it would have in memory.
type disk struct {
	extents  []extent
	files    []*os.File
	opened   []os.FileInfo
	blocks   []block
	n        int // number of rows, fewer than there are after [Images.First]
	pixels   int
	size     int     // bytes of a row
	rows     int     // rows of a block
	divisor  float32 // which values are divided by; 0 for none
	channels int     // of images whose channels come first; otherwise 0
	exact    bool    // numbers are also read in float64
	whole    bool    // all are whole numbers, of whose range low and high are the ends

	low, high []float64 // smallest and largest number of each value of a row, before an exact scaling in float64
	held      *heldBlocks
}

// block is a number of successive rows of an extent.
type block struct {
	extent, from int // its first row in the extent
	first        int // its first row of all
}

// heldBlocks contains the blocks that are in memory.
type heldBlocks struct {
	mu        sync.Mutex
	most      int // number of blocks that may be held for a training
	trainings int // that read at once; 0 as 1
	clock     uint64
	all       map[int]*heldBlock
	spare     [][]byte
}

type heldBlock struct {
	read  sync.Once
	bytes []byte
	err   error
	users int    // goroutines that read it now
	used  uint64 // time of the last use
}

const (
	mostBlock  = 1 << 20 // bytes of a block, if the budget has room for leastHeld
	leastHeld  = 64      // blocks
	listed     = 3 * 8   // bytes of a sample in its order and the list of those that are fitted
	blockSpare = 8       // one block more for this many blocks in the buffer, so that a block is dropped only after its last row
)

// newDisk returns the rows of extents of equal type and shape for a budget. r contains the keys that change values.
func (r reading) newDisk(extents []extent, budget int64) (*disk, error) {
	width, err := extents[0].valueSize()
	if err != nil {
		return nil, err
	}
	d := &disk{extents: extents, divisor: r.Scale.divisor()}
	if d.pixels, err = product(extents[0].dims[1:]); err != nil {
		return nil, err
	}
	if len(extents[0].dims) == 4 && r.Axes == channelsFirst {
		d.channels = extents[0].dims[1]
	}
	if kind := extents[0].kind; kind == "u1" {
		d.divisor = 0 // bytes are value / 255 anyway
	} else {
		d.exact = r.Scale.subtracts() && (kind == "f8" || d.isWhole())
	}
	d.size = width * d.pixels
	for _, e := range extents {
		d.n += e.dims[0]
	}
	order, row := listed*int64(d.n), int64(d.size)
	if r.recorded {
		order, row = 0, row+8 // the order of those in memory
	}
	least := 2 * (order + (blockSpare+1)*row)
	switch {
	case budget >= least:
	case r.loose: // no key can be changed for it
		budget = least
	default:
		least *= max(1, int64(r.Memory)/budget) // test samples have half of it
		digits := int64(math.Pow10(max(0, len(fmt.Sprint(least))-3)))
		least = (least + digits - 1) / digits * digits // so that the three digits of the hint are enough
		return nil, &Error{Path: r.File, Problem: fmt.Sprintf("memory = %q is too little for %d samples of %d bytes", r.Memory, d.n, d.size), Hint: "want at least " + numeral.Bytes(least)}
	}
	room := budget/2 - order // the other half is the garbage collector's
	d.rows = int(max(row, min(mostBlock, room/leastHeld)) / row)
	d.held = &heldBlocks{most: int(room / (int64(d.rows) * row)), all: map[int]*heldBlock{}}
	first := 0
	for k, e := range extents {
		f := e.file
		if f == nil {
			if f, err = os.Open(e.path); err != nil {
				return nil, FileError("", e.path, err)
			}
		}
		info, err := f.Stat()
		if err != nil {
			return nil, FileError("", e.path, err)
		}
		if want, got := int64(e.dims[0])*int64(d.size), info.Size()-e.at; got < want || e.last && got != want {
			return nil, FileError("", e.path, errSize(want, got))
		}
		d.files, d.opened = append(d.files, f), append(d.opened, info)
		for from := 0; from < e.dims[0]; from += d.rows {
			d.blocks = append(d.blocks, block{k, from, first + from})
		}
		first += e.dims[0]
	}
	return d, nil
}

// describeMemory says whether the training samples fit into the budget, and else how they are read.
func (r reading) describeMemory(ctx context.Context) (string, error) {
	o, err := r.open(ctx)
	defer o.close()
	if err != nil {
		return "", FileError(r.Kind, r.File, err)
	}
	samples, err := samplesOf(o.parts, r)
	if err != nil || len(samples.dims) < 2 {
		return "", FileError(r.Kind, r.File, err)
	}
	budget := r.exceeded(samples)
	text := numeral.Of(max(1, len(samples.extents)), "array")
	if budget == 0 {
		return text + fmt.Sprintf(" of values that fit into memory = %q", r.Memory), nil
	}
	if !r.readsInParts(samples) {
		return text, r.notInParts()
	}
	d, err := r.newDisk(samples.extents, budget)
	if err != nil {
		return text, err
	}
	blocks := len(d.blocks)
	return text + fmt.Sprintf(" of values that do not fit into memory = %q: read in %s of %s, of which %s are in memory; samples are shuffled among these", r.Memory,
		numeral.Of(blocks, "block"), numeral.Bytes(int64(d.rows*d.size)), numeral.Count(min(blocks, d.held.most))), nil
}

func (r reading) notInParts() error {
	return &Error{Path: r.File, Problem: fmt.Sprintf("its values do not fit into memory = %q, and cannot be read in parts", r.Memory),
		Hint: "want a larger budget; values without missing entries are read in parts from tables, .npy (row-major, not compressed) and .safetensors"}
}

// ReadAtOnce says how many trainings will read the samples at once. Each reads other blocks: in the budget of one they would drop each
// other's blocks before these are used up.
func (s *Set) ReadAtOnce(trainings int) {
	for _, m := range []*Images{s.Train, s.Test} {
		if m.OnDisk() {
			m.disk.held.readAtOnce(trainings)
		}
	}
}

func (h *heldBlocks) readAtOnce(trainings int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trainings = trainings
}

// block returns the number of the block of a row.
func (d *disk) block(row int) int {
	i, _ := slices.BinarySearchFunc(d.blocks, row+1, func(b block, row int) int { return cmp.Compare(b.first, row) })
	return i - 1
}

// Unread is deferred by functions that read samples. It turns the panic of samples on disk that cannot be read any more into their
// [*Error], and leaves other panics.
func Unread(err *error) {
	cause := recover()
	if cause == nil {
		return
	}
	if failed, ok := cause.(error); ok {
		if unread, ok := errors.AsType[*Error](failed); ok {
			*err = unread
			return
		}
	}
	panic(cause)
}

// acquire returns the bytes of a row, which the caller releases, and their type.
func (d *disk) acquire(row int) (held *heldBlock, b []byte, header arrayHeader) {
	held, b, header = d.acquireRest(row)
	return held, b[:d.size], header
}

// acquireRest is acquire for all rows of a block from this one on. A file that cannot be read any more panics with an
// [*Error]: see [Unread].
func (d *disk) acquireRest(row int) (held *heldBlock, b []byte, header arrayHeader) {
	h, number := d.held, d.block(row)
	of := d.blocks[number]
	e := d.extents[of.extent]
	h.mu.Lock()
	held = h.all[number]
	if held == nil {
		held = &heldBlock{}
		h.makeRoom()
		if last := len(h.spare) - 1; last >= 0 {
			held.bytes, h.spare = h.spare[last], h.spare[:last]
		}
		h.all[number] = held
	}
	h.clock++
	held.users++
	held.used = h.clock
	h.mu.Unlock()
	held.read.Do(func() { held.bytes, held.err = d.read(held.bytes, of) })
	if held.err != nil {
		panic(FileError("", e.path, held.err))
	}
	return held, held.bytes[(row-of.first)*d.size:], e.arrayHeader
}

func (d *disk) release(held *heldBlock) {
	d.held.mu.Lock()
	held.users--
	d.held.mu.Unlock()
}

// makeRoom drops the block that was not used for the longest time if there are too many.
func (h *heldBlocks) makeRoom() {
	for len(h.all) >= h.most*max(1, h.trainings) {
		oldest := -1
		for k, b := range h.all {
			if b.users == 0 && (oldest < 0 || b.used < h.all[oldest].used) {
				oldest = k
			}
		}
		if oldest < 0 {
			return
		}
		if b := h.all[oldest].bytes; b != nil {
			h.spare = append(h.spare, b)
		}
		delete(h.all, oldest)
	}
}

// read reads a block into memory that may be nil.
func (d *disk) read(b []byte, of block) ([]byte, error) {
	e, file, opened := d.extents[of.extent], d.files[of.extent], d.opened[of.extent]
	if info, err := file.Stat(); err != nil || info.Size() != opened.Size() || !info.ModTime().Equal(opened.ModTime()) {
		return nil, errors.Join(err, errChanged)
	}
	if b == nil {
		b = make([]byte, d.rows*d.size)
	}
	b = b[:min(d.rows, e.dims[0]-of.from)*d.size]
	_, err := file.ReadAt(b, e.at+int64(of.from)*int64(d.size))
	return b[:len(b):cap(b)], err
}

func (d *disk) copyRow(dst []float32, row int) {
	held, b, of := d.acquire(row)
	d.decode(dst, b, of)
	d.release(held)
}

// decode converts the bytes of rows as an array in memory is converted.
func (d *disk) decode(dst []float32, b []byte, of arrayHeader) {
	if of.kind == "u1" {
		kernel.Float32().FromBytes(dst, b)
	} else {
		decode(dst, b, of)
	}
	if d.divisor != 0 {
		for i := range dst {
			dst[i] /= d.divisor
		}
	}
	if d.channels > 0 {
		for from := 0; from < len(dst); from += d.pixels {
			copy(dst[from:], moveChannels(dst[from:from+d.pixels], 1, d.channels, d.pixels/d.channels))
		}
	}
}

func (d *disk) wide(b []byte, of arrayHeader) (values []float64) {
	values = make([]float64, d.pixels)
	decode(values, b, of)
	if d.channels > 0 {
		values = moveChannels(values, 1, d.channels, d.pixels/d.channels)
	}
	return values
}

// scan reads all files once, for their checksums, the ranges of the values and the first number that is not finite, whose place it
// names by m.
func (d *disk) scan(ctx context.Context, m *Images) (files []File, s *spans, err error) {
	low, high := slices.Repeat([]float32{float32(math.Inf(1))}, d.pixels), slices.Repeat([]float32{float32(math.Inf(-1))}, d.pixels)
	kind := d.extents[0].kind
	if kind == "f8" || d.isWhole() {
		s = newSpans(d.pixels)
	}
	row, values := 0, make([]float32, d.pixels)
	var problem error
	k := kernel.Float32()
	see := func(b []byte, of arrayHeader) {
		d.decode(values, b, of)
		k.Min(low, low, values)
		k.Max(high, high, values)
		if s != nil {
			for i, v := range d.wide(b, of) {
				s.add(i, v)
			}
		}
		if i := firstInfinite(k, values); i >= 0 && problem == nil {
			if problem = s.overflow(); problem == nil {
				problem = fmt.Errorf("%s: got %v, want a finite number%s", m.Place(row, i), values[i], hintOf(values[i]))
			}
		}
		row++
	}
	for _, e := range d.extents {
		file, err := e.eachRow(ctx, d.size, see)
		if err = errors.Join(err, problem); err != nil {
			return nil, nil, FileError("", e.path, err)
		}
		files = append(files, file)
	}
	if d.low, d.high = vectors.Wide(low), vectors.Wide(high); d.exact {
		d.low, d.high = s.low, s.high
	}
	return files, s, nil
}

// eachRow calls do for the bytes of every row. A file without a name has no checksum.
func (e extent) eachRow(ctx context.Context, size int, do func(b []byte, of arrayHeader)) (File, error) {
	from, checksum := io.Reader(io.NewSectionReader(e.file, 0, math.MaxInt64)), func() (File, error) { return File{}, nil }
	if e.file == nil {
		s, err := openStream(ctx, e.path)
		if err != nil {
			return File{}, err
		}
		defer s.Close()
		from, checksum = s, s.file
	}
	r, row := bufio.NewReaderSize(from, 1<<18), make([]byte, size)
	_, err := io.CopyN(io.Discard, r, e.at)
	for i := 0; i < e.dims[0] && err == nil; i++ {
		if _, err = io.ReadFull(r, row); err == nil {
			do(row, e.arrayHeader)
			err = ctx.Err()
		}
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return File{}, err
	}
	return checksum()
}

// isWhole reports whether the values are whole numbers, but not bytes.
func (d *disk) isWhole() bool {
	kind := d.extents[0].kind
	return kind == "b1" || kind[0] == 'i' || kind[0] == 'u' && kind != "u1"
}

func (a array) onDisk(shape []int) (*Images, error) {
	pixels, err := product(shape)
	return &Images{Shape: slices.Clone(shape), pixels: pixels, n: a.dims[0], disk: a.disk}, err
}

// isWide reports whether values can be read in float64 as they are in the file.
func (m *Images) isWide() bool { return m.wide != nil || m.disk != nil && m.disk.exact }

func (m *Images) wideOf(row int) []float64 {
	if m.disk != nil {
		held, b, of := m.disk.acquire(row)
		defer m.disk.release(held)
		return m.disk.wide(b, of)
	}
	return m.wide[row*m.pixels : (row+1)*m.pixels]
}

func (m *Images) isBytes() bool {
	return m.bytes != nil || m.disk != nil && m.disk.extents[0].kind == "u1"
}

// OnDisk reports whether the values are read from files when they are needed, because they do not fit into the budget.
func (m *Images) OnDisk() bool { return m != nil && m.disk != nil }

// isAffine reports whether every value is multiplied by a factor, after a number is subtracted.
func (s *Scaling) isAffine() bool { return len(s.Steps) == 0 && s.Mix == nil }

// diskRange returns the range of all values of the files, scaled. It may exceed that of the samples of a subset.
func (m *Images) diskRange() (low, high float32) {
	ends := make([]float32, 0, 2*m.pixels)
	for _, end := range [][]float64{m.disk.low, m.disk.high} {
		row := vectors.Narrow(end)
		if m.scaling.IsExact() {
			m.scaling.Centre(row, end)
			m.scaling.ApplyCentred(row)
		} else {
			m.scaling.Apply(row)
		}
		ends = append(ends, row...)
	}
	return slices.Min(ends), slices.Max(ends)
}

// Shuffle draws an order of the samples, see [Images.Order].
func (m *Images) Shuffle(order []int, r *rand.Rand) {
	o := m.Order(r)
	for i := range order {
		order[i] = o.Next()
	}
}

// Order is a random order of samples, of which every one occurs once. It takes memory for each sample only if they are in memory.
type Order struct {
	all    []int // those of samples in memory that follow
	r      *rand.Rand
	starts []int   // of the samples that lie in one block, and their number
	blocks []int   // blocks to be read
	buffer [][]int // samples of the blocks that are read
}

// Order draws an order of the samples: any order of samples in memory. Samples on disk are read in blocks in a random order. A
// buffer holds as many blocks as the budget allows; each next sample is a random one of a random block in the buffer, and a block
// without further samples is replaced by the next.
func (m *Images) Order(r *rand.Rand) *Order {
	o := &Order{r: r}
	if m.disk == nil {
		o.all = lists.Range(0, m.n)
		r.Shuffle(m.n, func(i, j int) { o.all[i], o.all[j] = o.all[j], o.all[i] })
		return o
	}
	if m.rows == nil {
		for _, b := range m.disk.blocks {
			if b.first < m.n {
				o.starts = append(o.starts, b.first)
			}
		}
	}
	for i, last := 0, -1; m.rows != nil && i < m.n; i++ {
		if block := m.disk.block(m.row(i)); block != last {
			o.starts, last = append(o.starts, i), block
		}
	}
	o.blocks = r.Perm(len(o.starts))
	o.starts = append(o.starts, m.n)
	o.buffer = make([][]int, min(len(o.blocks), max(1, m.disk.held.most*blockSpare/(blockSpare+1))))
	for k := range o.buffer {
		o.buffer[k] = o.block(nil)
	}
	return o
}

// block returns the samples of the next block in random order, in the place of a list that is used up.
func (o *Order) block(list []int) []int {
	list = list[:0]
	if len(o.blocks) > 0 {
		for i := o.starts[o.blocks[0]]; i < o.starts[o.blocks[0]+1]; i++ {
			list = append(list, i)
		}
		o.blocks = o.blocks[1:]
	}
	o.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// Next returns the next sample. It panics, like indexing, after the last one.
func (o *Order) Next() int {
	if o.all != nil {
		next := o.all[0]
		o.all = o.all[1:]
		return next
	}
	k := o.r.IntN(len(o.buffer))
	last := len(o.buffer[k]) - 1
	next := o.buffer[k][last]
	if o.buffer[k] = o.buffer[k][:last]; last > 0 {
		return next
	}
	if o.buffer[k] = o.block(o.buffer[k]); len(o.buffer[k]) == 0 {
		o.buffer[k] = o.buffer[len(o.buffer)-1]
		o.buffer = o.buffer[:len(o.buffer)-1]
	}
	return next
}
