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

// packMagic begins a packed set.
const packMagic = "tessera set 1\n"

// mostPackedHeader bounds the header of a packed set.
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
	AreTheSame   bool   `json:",omitempty"` // the test images are those of Train
	DoubtedPlace string `json:",omitempty"`
}

// packedImages describe images.
type packedImages struct {
	Shape   []int
	N       int
	Floats  bool        // four bytes per value, little-endian; else one
	Parts   [][]float32 `json:",omitempty"`
	Labels  []int       `json:",omitempty"`
	Scaling *Scaling    `json:",omitempty"`
}

// Pack writes a loaded set so that [Unpack] gives an equal one on another machine: a header in JSON, then the values of the
// images, little-endian.
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

// header describes the images, nil for none.
func (m *Images) header() *packedImages {
	if m == nil {
		return nil
	}
	return &packedImages{Shape: m.Shape, N: m.n, Floats: m.bytes == nil, Parts: m.Parts, Labels: m.Labels(), Scaling: m.scaling}
}

// pack writes the values; an error is kept by w.
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
		for _, v := range m.floats[m.row(i)*m.pixels : (m.row(i)+1)*m.pixels] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		w.Write(b)
	}
}

// errPacked is for bytes that [Set.Pack] did not write.
var errPacked = errors.New("data: not a packed data set of this version, or damaged")

// Unpack reads what [Set.Pack] wrote. Bytes that Pack did not write are an error.
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

// unpack reads the values and returns what follows them. Bytes are not copied.
func (p *packedImages) unpack(b []byte) (*Images, []byte, error) {
	if p == nil {
		return nil, b, nil
	}
	width := 1
	if p.Floats {
		width = 4
	}
	pixels, err := product(p.Shape)
	if err != nil || p.N < 0 || pixels < 1 || p.N > len(b)/width/pixels {
		return nil, nil, errPacked
	}
	values := p.N * pixels
	m := &Images{Shape: p.Shape, Parts: p.Parts, labels: p.Labels}
	if p.Floats {
		m.floats = make([]float32, values)
		for i := range m.floats {
			m.floats[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	} else {
		m.bytes = slices.Clip(b[:values])
	}
	if m, err = newImages(m, values); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errPacked, err)
	}
	if s := p.Scaling; s != nil {
		if len(s.Shift) != pixels || len(s.Factor) != pixels {
			return nil, nil, errPacked
		}
		m.scaling = s
	}
	return m, b[values*width:], nil
}
