package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// Images contains n samples of one shape, images or vectors, with their labels. Pixels are bytes, which represent value/255,
// or floats, which are used unchanged. A subset shares the pixels of its source. Images are immutable, so any number of
// goroutines may read them.
type Images struct {
	// Shape is the shape of one sample: (height, width) or (height, width, channels) for an image, (values) for a vector.
	Shape []int
	// Parts contains the true parts of the images, one image each; nil if unknown.
	Parts [][]float32
	// Downstream computes what follows, for images that are values inside of a network that tells classes: it calls do with the logits of each
	// sample i, which takes the place of the value in row rows[i]. nil for other images.
	Downstream func(rows []int, samples []float32, do func(i int, logits []float32) error) error

	pixels int       // values per image
	bytes  []byte    // rows of pixels; nil if floats is set
	floats []float32 // rows of pixels; nil if bytes is set
	labels []int     // one label per row; nil if there are none
	rows   []int     // row of each image; nil for all rows in order
	n      int

	further []*Values // columns other than images and labels
	drawn   []drawnColumn
	missing bool      // NaN means a missing entry, which is read as 0
	vacant  []float32 // values as which missing and hidden entries are read, one per value of a sample; nil for 0
	hidden  []byte    // 1 for each value of a row that is deliberately hidden and read as 0; nil if there are none

	columns []string  // names of the values; nil for none
	dates   []bool    // which of them are dates, as years
	names   []string  // names of the rows; nil for none, and for rows of a sparse matrix
	lines   *rowLines // line numbers of the rows in a text file; nil for other files
	finite  bool      // floats are known to be finite

	wide []float64 // floats as they are in the file, until they are scaled by an exact scaling; nil if floats will do

	scaling *Scaling // scaling that is applied when values are read; nil for none
	zeros   bool     // entries of a sparse matrix that are not stored are 0, also after the scaling

	entries *Entries // entries of a sparse matrix, in place of bytes and floats; nil for other images
	disk    *disk    // rows of files that do not fit into memory, in place of bytes and floats; nil for other images
}

// NewBytes returns images from their pixels as bytes, image after image: n x shape values. Labels may be nil. The slices are
// not copied.
func NewBytes(shape []int, bytes []byte, labels []int) (*Images, error) {
	return newImages(&Images{Shape: shape, bytes: bytes, labels: labels}, len(bytes))
}

// NewFloats returns images from their pixels as floats, image after image: n x shape values, which are not scaled. Labels may
// be nil. The slices are not copied.
func NewFloats(shape []int, floats []float32, labels []int) (*Images, error) {
	return newImages(&Images{Shape: shape, floats: floats, labels: labels}, len(floats))
}

func newImages(m *Images, values int) (*Images, error) {
	pixels, err := product(m.Shape)
	if err != nil {
		return nil, err
	}
	if pixels == 0 || values%pixels != 0 {
		return nil, fmt.Errorf("%d values are not a whole number of images of shape %v", values, m.Shape)
	}
	m.pixels, m.n = pixels, values/pixels
	if m.labels != nil && len(m.labels) != m.n {
		return nil, fmt.Errorf("%d labels for %d images", len(m.labels), m.n)
	}
	m.Shape = slices.Clone(m.Shape)
	return m, nil
}

// Len returns the number of images.
func (m *Images) Len() int { return m.n }

// Pixels returns the number of values of one image, channels included.
func (m *Images) Pixels() int { return m.pixels }

// Batch writes the images with these indices to dst, one after the other; bytes are scaled by 1/255. It panics, like
// indexing, if an index is out of range or dst is shorter than len(indices) x Pixels values.
func (m *Images) Batch(dst []float32, indices []int) {
	for k, i := range indices {
		if soon := k + ahead; m.bytes != nil && soon < len(indices) {
			kernel.Prefetch(m.stored(indices[soon]))
		}
		m.copyRow(dst[k*m.pixels:(k+1)*m.pixels], i)
	}
}

// ahead is the prefetch distance in images, which helps because shuffled images are scattered in memory.
const ahead = 4

// Float32 returns all images, one after the other, like [Images.Batch]. The slice is read-only, because unscaled floats are
// not copied.
func (m *Images) Float32() []float32 {
	if m.floats != nil && m.rows == nil && m.scaling == nil && !m.Holed() {
		return slices.Clip(m.floats[:m.n*m.pixels])
	}
	all := make([]float32, m.n*m.pixels)
	for i := range m.n {
		m.copyRow(all[i*m.pixels:(i+1)*m.pixels], i)
	}
	return all
}

// Range returns the smallest and the largest value of images: 0 and 1 for bytes, the actual values for floats and for scaled
// bytes.
func (m *Images) Range() (low, high float32) {
	if m.n == 0 || m.isBytes() && m.scaling == nil {
		return 0, 1
	}
	if m.disk != nil && (m.scaling == nil || m.scaling.isAffine()) {
		return m.diskRange()
	}
	if m.entries != nil && (m.scaling == nil || m.Zeros()) {
		return m.sparseRange()
	}
	if m.scaling != nil || m.Holed() {
		low, high = float32(math.Inf(1)), float32(math.Inf(-1))
		m.eachValue(func(_ int, v float64) { low, high = min(low, float32(v)), max(high, float32(v)) })
		return low, high
	}
	lows := slices.Clone(m.floats[m.row(0)*m.pixels : (m.row(0)+1)*m.pixels])
	highs, k := slices.Clone(lows), kernel.Float32()
	for i := range m.n {
		row := m.floats[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels]
		k.Min(lows, lows, row)
		k.Max(highs, highs, row)
	}
	return slices.Min(lows), slices.Max(highs)
}

// Bytes returns the bytes of image i, which are read-only; nil if the images are floats, are scaled or have hidden entries.
// It panics, like indexing, if i is out of range.
func (m *Images) Bytes(i int) []byte {
	if m.bytes == nil || m.scaling != nil || m.hidden != nil {
		return nil
	}
	return m.stored(i)
}

// stored returns the bytes of image i before they are scaled.
func (m *Images) stored(i int) []byte {
	row := m.row(i)
	return m.bytes[row*m.pixels : (row+1)*m.pixels]
}

// Labels returns the label of each image in a new slice, or nil if all are unknown. A negative label means that the class of
// the image is unknown.
func (m *Images) Labels() []int {
	if m.labels == nil {
		return nil
	}
	return ofRows(m, m.labels)
}

// Subset returns the images with these indices, in this order, without copying pixels. It panics, like indexing, if an index
// is out of range.
func (m *Images) Subset(indices []int) *Images {
	subset := *m
	subset.rows, subset.n = lists.Map(indices, m.row), len(indices)
	return &subset
}

// First returns the first n images, or all if there are fewer, without copying pixels. A negative n counts as 0.
func (m *Images) First(n int) *Images {
	n = min(max(n, 0), m.n)
	subset := *m
	subset.n = n
	if m.rows != nil {
		subset.rows = m.rows[:n]
		return &subset
	}
	switch {
	case m.entries != nil:
		e := *m.entries
		e.starts = e.starts[:n+1]
		subset.entries = &e
	case m.disk != nil:
		d := *m.disk
		d.n = n
		subset.disk = &d
	case m.bytes != nil:
		subset.bytes = m.bytes[:n*m.pixels]
	default:
		subset.floats = m.floats[:n*m.pixels]
		subset.wide = m.wide[:min(len(m.wide), n*m.pixels)]
	}
	if m.labels != nil {
		subset.labels = m.labels[:n]
	}
	return &subset
}

// WithShape returns the same images with another shape of equal size, for example (28, 28) instead of (784).
func (m *Images) WithShape(shape []int) (*Images, error) {
	pixels, err := product(shape)
	if err != nil {
		return nil, err
	}
	if pixels != m.pixels {
		return nil, fmt.Errorf("images of shape %v have %d values, shape %v has %d", m.Shape, m.pixels, shape, pixels)
	}
	other := *m
	other.Shape = slices.Clone(shape)
	return &other, nil
}

// WithValues returns samples with other values of this shape, row by row, and with the labels and columns of m. The slice is not copied.
func (m *Images) WithValues(shape []int, values []float32) (*Images, error) {
	given, err := NewFloats(shape, values, nil)
	if err == nil && given.n != m.n {
		err = fmt.Errorf("values of %d samples of shape %v for %d samples", given.n, shape, m.n)
	}
	if err != nil {
		return nil, err
	}
	return &Images{Shape: given.Shape, pixels: given.pixels, n: m.n, rows: m.rows, floats: scattered(m, values, given.pixels, 0),
		labels: m.labels, further: m.further, lines: m.lines}, nil
}

// Following returns [Images.Downstream] for samples in place of all images, nil if there is none.
func (m *Images) Following() func(samples []float32, do func(i int, logits []float32) error) error {
	if m.Downstream == nil {
		return nil
	}
	return func(samples []float32, do func(i int, logits []float32) error) error {
		return m.Downstream(lists.Of(m.n, m.row), samples, do)
	}
}

// WithSampleNames returns images of which all rows are samples, with names.
func (m *Images) WithSampleNames(names []string) *Images {
	other := *m
	other.names = names
	return &other
}

// SampleNames returns the names of the samples in their file, nil if they have none.
func (m *Images) SampleNames() []string {
	if m.names == nil {
		return m.RowNames()
	}
	return ofRows(m, m.names)
}

// Joined returns the samples of several sets, one after the other, with the labels and columns that all of them have.
func Joined(shape []int, all ...*Images) (*Images, error) {
	if len(all) == 1 {
		return all[0], nil
	}
	var values []float32
	var labels []int
	missing, labelled := false, true
	for _, m := range all {
		values, labels = append(values, m.Raw()...), append(labels, m.Labels()...)
		missing, labelled = missing || m.Holed(), labelled && m.labels != nil
	}
	if !labelled {
		labels = nil
	}
	joined, err := NewFloats(shape, values, labels)
	if err != nil {
		return nil, err
	}
	joined.missing = missing
	for _, c := range all[0].Columns() {
		v := &Values{Column: c}
		for _, m := range all {
			of := m.column(c.Name)
			if of == nil || of.Type != c.Type || !slices.Equal(of.Shape, c.Shape) {
				v = nil
				break
			}
			v.appendRows(of, m)
		}
		if v != nil {
			joined.further = append(joined.further, v)
		}
	}
	return joined, nil
}

// ofRows returns the elements of a list of all rows in memory that belong to the images.
func ofRows[T any](m *Images, all []T) []T {
	return lists.Of(m.n, func(i int) T { return all[m.row(i)] })
}

// row returns the offset of image i in memory. It panics, like indexing, even if the memory extends beyond a subset.
func (m *Images) row(i int) int {
	if m.rows != nil {
		return m.rows[i]
	}
	if i < 0 || i >= m.n {
		panic(fmt.Sprintf("data: image %d of %d", i, m.n))
	}
	return i
}

func (m *Images) copyRow(dst []float32, i int) {
	row := m.row(i)
	if m.entries != nil {
		m.copySparse(dst, row)
		return
	}
	switch {
	case m.isWide() && m.scaling.IsExact():
		m.scaling.Centre(dst, m.wideOf(row))
		m.scaling.ApplyCentred(dst)
		m.fillRow(dst, row)
		return
	case m.disk != nil:
		m.disk.copyRow(dst, row)
	case m.floats != nil:
		copy(dst, m.floats[row*m.pixels:(row+1)*m.pixels])
	default:
		kernel.Float32().FromBytes(dst, m.bytes[row*m.pixels:(row+1)*m.pixels])
	}
	m.scaling.Apply(dst)
	m.fillRow(dst, row)
}

// arrayBytes returns the number of values of an array and their size in bytes; size is the number of bytes of one value. It
// returns an error for sizes that no file can have.
func arrayBytes(dims []int, size int) (n int, length int64, err error) {
	if n, err = product(dims); err != nil {
		return 0, 0, err
	}
	if size > 0 && n > math.MaxInt/16/size {
		return 0, 0, fmt.Errorf("shape %v of values of %d bytes is not possible", dims, size)
	}
	return n, int64(n) * int64(size), nil
}

// product returns the number of values of a shape, or an error if no memory could contain them.
func product(shape []int) (int, error) {
	n, ok := volume.Within(shape, math.MaxInt/16)
	if !ok {
		return 0, fmt.Errorf("shape %v is not possible", shape)
	}
	return n, nil
}

// mostGenerated is the largest number of values of a generated split: 4 GB of float32.
const mostGenerated = 1 << 30

// generatedSize returns the number of values of n generated samples, or an error if there are too many.
func generatedSize(dataset string, n int, shape ...int) (int, error) {
	size, ok := volume.Within(append([]int{n}, shape...), mostGenerated)
	if !ok {
		return 0, &Error{Dataset: dataset, Problem: fmt.Sprintf("got %d samples of %d values, want at most %d values (4 GB of float32) in all",
			n, volume.Of(shape), mostGenerated), Hint: "lower the number of samples"}
	}
	return size, nil
}

// Place returns a description of the location of value v of image i for a message: `line 7, column "mass"` for a .csv file;
// otherwise by numbers from 0, as `sample 5, value 3` or `image 5, row 2, column 7`.
func (m *Images) Place(i, v int) string {
	place := m.placeOf(i)
	switch {
	case m.columns != nil && len(m.Shape) == 1:
		return fmt.Sprintf("%s, column %.60q", place, m.columns[v])
	case len(m.Shape) < 2:
		return fmt.Sprintf("%s, value %d", place, v)
	}
	channels := m.pixels / m.Shape[0] / m.Shape[1]
	place = fmt.Sprintf("image %d, row %d, column %d", m.row(i), v/channels/m.Shape[1], v/channels%m.Shape[1])
	if channels > 1 {
		place += fmt.Sprintf(", channel %d", v%channels)
	}
	return place
}

// placeOf returns the place of sample i as text, by its name or its line if it has one.
func (m *Images) placeOf(i int) string {
	row := m.row(i)
	switch {
	case m.lines != nil:
		return fmt.Sprintf("line %d", m.lines.of(row))
	case m.entries != nil && m.entries.rowNames != nil:
		return fmt.Sprintf("row %.60q", m.entries.rowNames[row])
	}
	return fmt.Sprintf("sample %d", row)
}

// FirstBelow returns the first value of the scaled images that is less than least, and its location as text; "" if there is
// none.
func (m *Images) FirstBelow(least float32) (place string, value float32) {
	if least <= 0 && m.isBytes() && m.scaling == nil {
		return "", 0
	}
	if m.disk != nil {
		if low, _ := m.Range(); low >= least {
			return "", 0
		}
	}
	if m.entries != nil && (m.scaling == nil || m.Zeros()) && least <= 0 {
		for i := range m.n {
			columns, values := m.Entries(i)
			for k, v := range values {
				if v < least {
					return m.Place(i, int(columns[k])), v
				}
			}
		}
		return "", 0
	}
	return m.FirstOutside(ImagesColumn, func(v float32) bool { return v >= least })
}

// notFinite returns the first value that is NaN or infinite, and its location as text; "" if there is none.
func (m *Images) notFinite() (place string, value float32) {
	if m == nil || m.floats == nil || m.finite {
		return "", 0
	}
	k := kernel.Float32()
	for i := range m.n {
		row := m.floats[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels]
		if firstInfinite(k, row) < 0 {
			continue
		}
		for j, v := range row {
			if v-v != 0 && !(m.missing && v != v) {
				return m.Place(i, j), v
			}
		}
	}
	return "", 0
}

// firstInfinite returns the index of the first value that is NaN or infinite, -1 if there is none.
func firstInfinite(k *kernel.Set[float32], values []float32) int {
	if sum := k.SumAbs(values); sum-sum == 0 {
		return -1
	}
	return slices.IndexFunc(values, func(v float32) bool { return v-v != 0 }) // -1 if only the sum is infinite
}

// Checksum identifies images by their content: the SHA-256 of their shape, their values as float32 and their labels, in
// order. Images stored as bytes and as floats have equal checksums if their values are equal.
func (m *Images) Checksum() string {
	h := sha256.New()
	labels := m.Labels()
	fmt.Fprintf(h, "%v %d %d\n", m.Shape, m.n, len(labels))
	row, b := make([]float32, m.pixels), make([]byte, 0, 4*m.pixels)
	for i := range m.n {
		m.copyRow(row, i)
		b = b[:0]
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
	}
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(l))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
