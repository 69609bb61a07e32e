package data

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"tessera/internal/vectors"
)

const packMagic = "tessera set 3\n"

// mostPackedHeader is the maximum size in bytes of the header of a packed set.
const mostPackedHeader = 64 << 20

// packedHeader is the JSON header of a packed set. The values of its images, which Train and Test describe, follow it.
type packedHeader struct {
	Set
	Doubt, Hint  string `json:",omitempty"`
	Train, Test  *packedImages
	AreTheSame   bool   `json:",omitempty"` // the test images are the same as Train
	DoubtedPlace string `json:",omitempty"`
}

// packedImages describes images in the header.
type packedImages struct {
	Shape   []int
	N       int
	Floats  bool        // four bytes per value, little-endian; otherwise one byte
	Wide    bool        `json:",omitempty"` // eight bytes per value
	Sparse  bool        `json:",omitempty"` // entries of a sparse matrix in place of values, as packedRow writes them
	Parts   [][]float32 `json:",omitempty"`
	Labels  []int       `json:",omitempty"`
	Scaling *Scaling    `json:",omitempty"`
	Missing bool        `json:",omitempty"`
	Zeros   bool        `json:",omitempty"` // entries that a sparse matrix does not have are 0
	Columns []Column    `json:",omitempty"` // columns other than images and labels, whose values follow the images

	RowNames   []string `json:",omitempty"`
	ValueNames []string `json:",omitempty"`
}

// Pack writes a loaded set, from which [Unpack] restores an equal set on another machine: a header in JSON, then the values of
// the images, little-endian.
func (s *Set) Pack(to io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	if s.Train.OnDisk() || s.Test.OnDisk() {
		return fmt.Errorf("data: %s: samples that do not fit into its memory are not sent to workers: give the workers the files (the option data)", s.Name)
	}
	h := packedHeader{Set: *s, Train: s.Train.header(), Test: s.Test.header(), AreTheSame: s.Train != nil && s.Train == s.Test}
	if s.doubt != nil {
		h.Doubt, h.Hint, h.DoubtedPlace = s.doubt.Problem, s.doubt.Hint, s.doubt.Path
	}
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("data: %s: %w", s.Name, err)
	}
	if len(text) > mostPackedHeader {
		return fmt.Errorf("data: %s: its labels, parts and names take %d MiB, more than the %d MiB that are sent to workers: give the workers the files (the option data)", s.Name, len(text)>>20, mostPackedHeader>>20)
	}
	w := bufio.NewWriter(to)
	w.WriteString(packMagic)
	w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	w.Write(text)
	s.Train.pack(w)
	if !h.AreTheSame {
		s.Test.pack(w)
	}
	return w.Flush() // the error of the first write that failed
}

func (m *Images) header() *packedImages {
	if m == nil {
		return nil
	}
	return &packedImages{Shape: m.Shape, N: m.n, Floats: m.bytes == nil && !m.Sparse(), Wide: m.wide != nil, Sparse: m.Sparse(), Parts: m.Parts, Labels: m.Labels(), Scaling: m.scaling,
		Missing: m.missing, Zeros: m.entries != nil && m.entries.zeros, Columns: m.Columns(), RowNames: m.RowNames(), ValueNames: m.ValueNames()}
}

// pack writes the values; w stores an error.
func (m *Images) pack(w *bufio.Writer) {
	if m == nil {
		return
	}
	switch {
	case m.Sparse(): // the number of entries of a row, their columns and their values
		for i := range m.n {
			columns, values := m.entries.row(m.row(i))
			writeNumbers(w, uint32(len(columns)), columns, values)
		}
	case m.wide != nil:
		for i := range m.n {
			writeNumbers(w, m.wideOf(m.row(i)))
		}
	default:
		m.own().pack(w, m)
	}
	for _, v := range m.further {
		v.pack(w, m)
	}
}

// own returns the values of the samples themselves as a column.
func (m *Images) own() *Values {
	v := &Values{Column: Column{Name: ImagesColumn, Shape: m.Shape, Type: Float32}, bytes: m.bytes, floats: m.floats}
	if m.bytes != nil {
		v.Type = Bytes
	}
	return v
}

// pack writes the values of the samples.
func (v *Values) pack(w *bufio.Writer, of *Images) {
	size, v := v.Size(), v.stored()
	for i := range of.n {
		from, to := of.row(i)*size, (of.row(i)+1)*size
		switch v.Type {
		case Bytes:
			w.Write(v.bytes[from:to])
		case Whole:
			writeNumbers(w, v.whole[from:to])
		default:
			writeNumbers(w, v.floats[from:to])
		}
	}
}

func writeNumbers(w *bufio.Writer, all ...any) {
	for _, one := range all {
		_ = binary.Write(w, binary.LittleEndian, one) // which w stores
	}
}

// unpacker is what is left of a packed set.
type unpacker struct {
	b   []byte
	err error // errPacked after too few bytes
}

// taken removes n numbers; of too few bytes it removes none.
func taken[T byte | int32 | uint32 | float32 | float64](u *unpacker, n int) []T {
	size := binary.Size(T(0))
	if n < 0 || n > len(u.b)/size {
		u.err, n = errPacked, 0
	}
	all := make([]T, n)
	_, _ = binary.Decode(u.b, binary.LittleEndian, all) // there are enough bytes
	u.b = u.b[n*size:]
	return all
}

func (p *packedImages) unpackEntries(u *unpacker) (*Images, error) {
	if len(p.Shape) != 1 || p.N < 1 || p.N > len(u.b)/4 || p.RowNames != nil && len(p.RowNames) != p.N || p.Labels != nil && len(p.Labels) != p.N {
		return nil, errPacked
	}
	starts, columns, values := []int{0}, []int32{}, []float32{}
	for i := 0; i < p.N && u.err == nil; i++ {
		size := append(taken[uint32](u, 1), 0)[0]
		columns, values = append(columns, taken[int32](u, int(size))...), append(values, taken[float32](u, int(size))...)
		starts = append(starts, len(columns))
	}
	if u.err != nil {
		return nil, u.err
	}
	m, err := NewEntries(starts, columns, values, p.Shape[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	if p.Zeros {
		m = m.WithZeros()
	}
	m.entries.rowNames, m.labels = p.RowNames, p.Labels
	return m, nil
}

func unpackColumn(c Column, n int, u *unpacker) (*Values, error) {
	size, err := product(c.Shape)
	if err != nil || size < 1 || n > len(u.b)/size {
		return nil, errPacked
	}
	v := &Values{Column: c}
	switch c.Type {
	case Bytes:
		v.bytes, u.b = slices.Clip(u.b[:n*size]), u.b[n*size:]
	case Whole:
		v.whole = taken[int32](u, n*size)
	case Float32:
		v.floats = taken[float32](u, n*size)
	default:
		u.err = errPacked
	}
	return v, u.err
}

// errPacked is the error for bytes that [Set.Pack] of this version did not write.
var errPacked = errors.New("data: not a packed data set of this version, or damaged")

// Unpack reads the output of [Set.Pack]. Other bytes are an error.
func Unpack(b []byte) (*Set, error) {
	rest, ok := bytes.CutPrefix(b, []byte(packMagic))
	if !ok || len(rest) < 8 {
		return nil, errPacked
	}
	size := binary.LittleEndian.Uint64(rest)
	if rest = rest[8:]; size > mostPackedHeader || size > uint64(len(rest)) {
		return nil, errPacked
	}
	var h packedHeader
	d := json.NewDecoder(bytes.NewReader(rest[:size]))
	d.DisallowUnknownFields()
	if err := d.Decode(&h); err != nil {
		return nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	s := &h.Set
	if h.Doubt != "" {
		s.doubt = &Error{Dataset: h.Name, Path: h.DoubtedPlace, Problem: h.Doubt, Hint: h.Hint}
	}
	u, err := &unpacker{b: rest[size:]}, error(nil)
	if s.Train, err = h.Train.unpack(u); err != nil {
		return nil, err
	}
	if h.AreTheSame {
		s.Test = s.Train
	} else if s.Test, err = h.Test.unpack(u); err != nil {
		return nil, err
	}
	if len(u.b) != 0 {
		return nil, errPacked
	}
	return s, s.check()
}

// unpack removes the values. Values that are bytes are not copied.
func (p *packedImages) unpack(u *unpacker) (m *Images, err error) {
	if p == nil {
		return nil, nil
	}
	pixels, err := product(p.Shape)
	if err != nil || pixels < 1 || p.ValueNames != nil && len(p.ValueNames) != pixels {
		return nil, errPacked
	}
	if p.Sparse {
		m, err = p.unpackEntries(u)
	} else {
		m, err = p.unpackValues(u, pixels)
	}
	if err != nil {
		return nil, err
	}
	m.Parts, m.columns, m.missing = p.Parts, p.ValueNames, p.Missing
	if s := p.Scaling; s != nil {
		if err := s.Valid(pixels); err != nil {
			return nil, fmt.Errorf("%w: %w", errPacked, err)
		}
		m = m.Scaled(s)
	}
	for _, c := range p.Columns {
		v, err := unpackColumn(c, p.N, u)
		if err != nil {
			return nil, err
		}
		m.further = append(m.further, v)
	}
	return m, nil
}

// unpackValues removes the values of images that are not sparse.
func (p *packedImages) unpackValues(u *unpacker, pixels int) (m *Images, err error) {
	if p.N < 0 || p.N > len(u.b)/pixels {
		return nil, errPacked
	}
	m = &Images{Shape: p.Shape, labels: p.Labels}
	if p.Wide {
		m.wide = taken[float64](u, p.N*pixels)
		m.floats = vectors.Narrow(m.wide)
	} else {
		v, err := unpackColumn(Column{Shape: p.Shape, Type: map[bool]Type{true: Float32, false: Bytes}[p.Floats]}, p.N, u)
		if err != nil {
			return nil, err
		}
		m.bytes, m.floats = v.bytes, v.floats
	}
	if m, err = newImages(m, p.N*pixels); err != nil {
		err = fmt.Errorf("%w: %w", errPacked, err)
	}
	return m, cmp.Or(u.err, err)
}
