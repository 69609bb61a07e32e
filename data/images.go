package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"tessera/internal/volume"
	"tessera/kernel"
)

// Images are n samples of one shape, images or vectors, with their labels. Pixels are bytes, which mean value/255, or floats, which are used as
// they are. A subset shares the pixels of its source. Images are immutable, so any number of goroutines may read them.
type Images struct {
	// Shape is the shape of one sample: (height, width) or (height, width, channels) of an image, (values) of a vector.
	Shape []int
	// Parts are the true parts of the images, one image each; nil if they are not known.
	Parts [][]float32

	pixels int       // values per image
	bytes  []byte    // rows of pixels, or nil
	floats []float32 // rows of pixels, or nil
	labels []int     // one per row, or nil
	rows   []int     // the row of each image, nil for all rows in order
	n      int

	further []*Values // columns besides images and labels

	columns []string // the names of the values, nil for none
	lines   []int    // of the rows in a file of text, nil for none
	finite  bool     // floats were checked

	scaling *Scaling // applied when values are read, nil for none
}

// NewBytes returns the images whose pixels, image after image, are bytes: n x shape values. Labels may be nil. The
// slices are not copied.
func NewBytes(shape []int, bytes []byte, labels []int) (*Images, error) {
	return newImages(&Images{Shape: shape, bytes: bytes, labels: labels}, len(bytes))
}

// NewFloats returns the images whose pixels, image after image, are floats: n x shape values, which are not scaled. Labels may be nil.
// The slices are not copied.
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

// Batch writes the images of those indices into dst, one after the other, bytes scaled by 1/255. It panics, as
// indexing does, when an index is out of range or dst is shorter than len(indices) x Pixels values.
func (m *Images) Batch(dst []float32, indices []int) {
	for k, i := range indices {
		if soon := k + ahead; m.bytes != nil && soon < len(indices) {
			kernel.Prefetch(m.stored(indices[soon]))
		}
		m.copyRow(dst[k*m.pixels:(k+1)*m.pixels], i)
	}
}

// ahead is the prefetch distance of a batch in images, because shuffled images are scattered in memory.
const ahead = 4

// Float32 returns all images, one after the other, as [Images.Batch] gives them. The slice must not be changed: unscaled floats are
// not copied.
func (m *Images) Float32() []float32 {
	if m.floats != nil && m.rows == nil && m.scaling == nil {
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
	if m.n == 0 || m.bytes != nil && m.scaling == nil {
		return 0, 1
	}
	if m.scaling != nil {
		low, high = float32(math.Inf(1)), float32(math.Inf(-1))
		m.eachValue(func(_ int, v float64) { low, high = min(low, float32(v)), max(high, float32(v)) })
		return low, high
	}
	low, high = m.floats[m.row(0)*m.pixels], m.floats[m.row(0)*m.pixels]
	for i := range m.n {
		row := m.floats[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels]
		low, high = min(low, slices.Min(row)), max(high, slices.Max(row))
	}
	return low, high
}

// Bytes returns the bytes of image i, not to be changed, or nil where the images are floats or are scaled. It panics, as
// indexing does, when i is out of range.
func (m *Images) Bytes(i int) []byte {
	if m.bytes == nil || m.scaling != nil {
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
	labels := make([]int, m.n)
	for i := range labels {
		labels[i] = m.labels[m.row(i)]
	}
	return labels
}

// Subset returns the images of those indices, in that order, without copying pixels. It panics, as indexing does, when an
// index is out of range.
func (m *Images) Subset(indices []int) *Images {
	rows := make([]int, len(indices))
	for k, i := range indices {
		rows[k] = m.row(i)
	}
	subset := *m
	subset.rows, subset.n = rows, len(rows)
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
	if m.bytes != nil {
		subset.bytes = m.bytes[:n*m.pixels]
	} else {
		subset.floats = m.floats[:n*m.pixels]
	}
	if m.labels != nil {
		subset.labels = m.labels[:n]
	}
	return &subset
}

// WithShape returns the same images under another shape of as many values: (784) as (28, 28).
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

// row returns the offset of image i in memory. It panics, as indexing does: a subset ends before its memory does.
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
	if m.floats != nil {
		copy(dst, m.floats[row*m.pixels:(row+1)*m.pixels])
	} else {
		kernel.Float32().FromBytes(dst, m.bytes[row*m.pixels:(row+1)*m.pixels])
	}
	m.scaling.Apply(dst)
}

// arrayBytes returns the number of values of an array and of their bytes, size bytes each. Sizes that no file has are an error.
func arrayBytes(dims []int, size int) (n int, length int64, err error) {
	if n, err = product(dims); err != nil {
		return 0, 0, err
	}
	if size > 0 && n > math.MaxInt/16/size {
		return 0, 0, fmt.Errorf("shape %v of values of %d bytes is not possible", dims, size)
	}
	return n, int64(n) * int64(size), nil
}

// product returns the number of values of a shape, refusing sizes that no memory holds.
func product(shape []int) (int, error) {
	n, ok := volume.Within(shape, math.MaxInt/16)
	if !ok {
		return 0, fmt.Errorf("shape %v is not possible", shape)
	}
	return n, nil
}

// Place names value v of image i for a message: `line 7, column "mass"` of a .csv file; otherwise by numbers from 0, as
// `sample 5, value 3` or `image 5, row 2, column 7`.
func (m *Images) Place(i, v int) string {
	row := m.row(i)
	place := fmt.Sprintf("sample %d", row)
	if m.lines != nil {
		place = fmt.Sprintf("line %d", m.lines[row])
	}
	switch {
	case m.columns != nil && len(m.Shape) == 1:
		return fmt.Sprintf("%s, column %.60q", place, m.columns[v])
	case len(m.Shape) < 2:
		return fmt.Sprintf("%s, value %d", place, v)
	}
	channels := m.pixels / m.Shape[0] / m.Shape[1]
	place = fmt.Sprintf("image %d, row %d, column %d", row, v/channels/m.Shape[1], v/channels%m.Shape[1])
	if channels > 1 {
		place += fmt.Sprintf(", channel %d", v%channels)
	}
	return place
}

// FirstBelow returns the place of the first value that is less than least, as the images are scaled, and the value; "" if there is none.
func (m *Images) FirstBelow(least float32) (place string, value float32) {
	if least <= 0 && m.bytes != nil && m.scaling == nil {
		return "", 0
	}
	row := make([]float32, m.pixels)
	for i := range m.n {
		m.copyRow(row, i)
		for j, v := range row {
			if v < least {
				return m.Place(i, j), v
			}
		}
	}
	return "", 0
}

// notFinite returns the place of the first value that is NaN or infinite, and the value; "" if there is none.
func (m *Images) notFinite() (place string, value float32) {
	if m == nil || m.floats == nil || m.finite {
		return "", 0
	}
	for i := range m.n {
		row := m.row(i) * m.pixels
		for j, v := range m.floats[row : row+m.pixels] {
			if v-v != 0 {
				return m.Place(i, j), v
			}
		}
	}
	return "", 0
}

// Checksum identifies images by their content: the SHA-256 of their shape, their values as float32 and their labels, in
// order. Bytes and floats of equal values are equal images.
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
