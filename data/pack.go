package data

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// packMagic is the first line of a packed set.
const packMagic = "tessera set 1\n"

// mostPackedHeader is the maximum size in bytes of the header of a packed set.
const mostPackedHeader = 64 << 20

// packedHeader is the JSON header of a packed set. The values of its images follow it.
type packedHeader struct {
	Name         string
	Shape        []int
	HasTest      bool
	Parts        [][]float32 `json:",omitempty"`
	Kinds        []string    `json:",omitempty"`
	Classes      []string    `json:",omitempty"`
	Files        []File      `json:",omitempty"`
	Scale        Scale
	Notes        []string `json:",omitempty"`
	Doubt, Hint  string   `json:",omitempty"`
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
	h := packedHeader{Name: s.Name, Shape: s.Shape, HasTest: s.HasTest, Parts: s.Parts, Kinds: s.Kinds, Classes: s.Classes, Files: s.Files,
		Scale: s.Scale, Notes: s.Notes, Train: s.Train.header(), Test: s.Test.header(), AreTheSame: s.Train != nil && s.Train == s.Test}
	if s.doubt != nil {
		h.Doubt, h.Hint, h.DoubtedPlace = s.doubt.Problem, s.doubt.Hint, s.doubt.Path
	}
	text, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("data: %s: %w", s.Name, err)
	}
	if len(text) > mostPackedHeader {
		return fmt.Errorf("data: %s: its labels, parts and names take %d MiB, more than the %d MiB that are sent to workers: give the workers the files (--data)", s.Name, len(text)>>20, mostPackedHeader>>20)
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

// header returns a description of the images; nil if there are none.
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
	var b []byte
	for i := range m.n {
		if m.bytes != nil {
			w.Write(m.stored(i))
			continue
		}
		b = b[:0]
		if m.Sparse() {
			columns, values := m.Entries(i)
			w.Write(packedRow(b, columns, values))
			continue
		}
		if m.wide != nil {
			for _, v := range m.wide[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels] {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
			w.Write(b)
			continue
		}
		for _, v := range m.floats[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		w.Write(b)
	}
	for _, v := range m.further {
		v.pack(w, m)
	}
}

// packedRow appends the entries of a row of a sparse matrix: their number, their columns and their values, four bytes each.
func packedRow(b []byte, columns []int32, values []float32) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(columns)))
	for _, c := range columns {
		b = binary.LittleEndian.AppendUint32(b, uint32(c))
	}
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// unpackEntries reads the rows of a sparse matrix from b, and returns the rest of b.
func (p *packedImages) unpackEntries(b []byte) (*Images, []byte, error) {
	if len(p.Shape) != 1 || p.N < 1 || p.N > len(b)/4 || p.RowNames != nil && len(p.RowNames) != p.N || p.Labels != nil && len(p.Labels) != p.N {
		return nil, nil, errPacked
	}
	starts, columns, values := []int{0}, []int32{}, []float32{}
	for range p.N {
		if len(b) < 4 || int(binary.LittleEndian.Uint32(b)) > len(b[4:])/8 {
			return nil, nil, errPacked
		}
		size := int(binary.LittleEndian.Uint32(b))
		b = b[4:]
		for k := range size {
			columns = append(columns, int32(binary.LittleEndian.Uint32(b[4*k:])))
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(b[4*(size+k):])))
		}
		b = b[8*size:]
		starts = append(starts, len(columns))
	}
	m, err := NewEntries(starts, columns, values, p.Shape[0])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	if p.Zeros {
		m = m.WithZeros()
	}
	m.entries.rowNames, m.labels = p.RowNames, p.Labels
	return m, b, nil
}

// pack writes the values of the rows of the images, four bytes each.
func (v *Values) pack(w *bufio.Writer, m *Images) {
	size := v.Size()
	var b []byte
	for i := range m.n {
		b = b[:0]
		for k := m.row(i) * size; k < (m.row(i)+1)*size; k++ {
			switch v.Type {
			case Bytes:
				b = binary.LittleEndian.AppendUint32(b, uint32(v.bytes[k]))
			case Whole:
				b = binary.LittleEndian.AppendUint32(b, uint32(v.whole[k]))
			default:
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.floats[k]))
			}
		}
		w.Write(b)
	}
}

// unpackColumn reads the values of n rows from b, and returns the rest of b.
func unpackColumn(c Column, n int, b []byte) (*Values, []byte, error) {
	size, err := product(c.Shape)
	if err != nil || size < 1 || n > len(b)/4/size {
		return nil, nil, errPacked
	}
	v := &Values{Column: c}
	for i := range n * size {
		word := binary.LittleEndian.Uint32(b[4*i:])
		switch c.Type {
		case Bytes:
			v.bytes = append(v.bytes, byte(word))
		case Whole:
			v.whole = append(v.whole, int32(word))
		case Float32:
			v.floats = append(v.floats, math.Float32frombits(word))
		default:
			return nil, nil, errPacked
		}
	}
	return v, b[4*n*size:], nil
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
	s := &Set{Name: h.Name, Shape: h.Shape, HasTest: h.HasTest, Parts: h.Parts, Kinds: h.Kinds, Classes: h.Classes, Files: h.Files, Scale: h.Scale, Notes: h.Notes}
	if h.Doubt != "" {
		s.doubt = &Error{Dataset: h.Name, Path: h.DoubtedPlace, Problem: h.Doubt, Hint: h.Hint}
	}
	rest = rest[size:]
	var err error
	if s.Train, rest, err = h.Train.unpack(rest); err != nil {
		return nil, err
	}
	if h.AreTheSame {
		s.Test = s.Train
	} else if s.Test, rest, err = h.Test.unpack(rest); err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, errPacked
	}
	return s, s.check()
}

// unpack reads the values from b and returns the rest of b. Values that are bytes are not copied.
func (p *packedImages) unpack(b []byte) (*Images, []byte, error) {
	if p == nil {
		return nil, b, nil
	}
	pixels, err := product(p.Shape)
	if err != nil || pixels < 1 || p.ValueNames != nil && len(p.ValueNames) != pixels {
		return nil, nil, errPacked
	}
	read := p.unpackValues
	if p.Sparse {
		read = p.unpackEntries
	}
	m, b, err := read(b)
	if err != nil {
		return nil, nil, err
	}
	m.Parts, m.columns = p.Parts, p.ValueNames
	if s := p.Scaling; s != nil {
		if len(s.Shift) != pixels || len(s.Factor) != pixels || s.Rest != nil && len(s.Rest) != pixels || len(s.Mix) != len(s.Unmix) || s.Mix != nil && len(s.Mix) != pixels*pixels {
			return nil, nil, errPacked
		}
		m.scaling = s
	}
	m.missing = p.Missing
	for _, c := range p.Columns {
		var v *Values
		if v, b, err = unpackColumn(c, p.N, b); err != nil {
			return nil, nil, err
		}
		m.further = append(m.further, v)
	}
	return m, b, nil
}

// unpackValues reads the values of images that are not sparse from b, and returns the rest of b.
func (p *packedImages) unpackValues(b []byte) (*Images, []byte, error) {
	width := 1
	switch {
	case p.Wide:
		width = 8
	case p.Floats:
		width = 4
	}
	pixels, err := product(p.Shape)
	if err != nil || p.N < 0 || pixels < 1 || p.N > len(b)/width/pixels {
		return nil, nil, errPacked
	}
	values := p.N * pixels
	m := &Images{Shape: p.Shape, labels: p.Labels}
	switch {
	case p.Wide:
		m.floats, m.wide = make([]float32, values), make([]float64, values)
		for i := range m.wide {
			m.wide[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
			m.floats[i] = float32(m.wide[i])
		}
	case p.Floats:
		m.floats = make([]float32, values)
		for i := range m.floats {
			m.floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	default:
		m.bytes = slices.Clip(b[:values])
	}
	if m, err = newImages(m, values); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	return m, b[values*width:], nil
}
