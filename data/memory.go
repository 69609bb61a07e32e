package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
)

// MemoryName is the name of the data set whose images are supplied by a Go program.
const MemoryName = "memory"

func init() {
	Registry.Register(MemoryName, "images from a Go program (data.FromFloats); a run identifies them by their checksum",
		func() Source { return &Memory{} })
}

// Memory is a data set in memory: training images, and test images if [Memory.WithTest] adds them. [FromFloats] creates it.
// The config.toml of a run contains only the checksum of the images. To resume or evaluate such a run, supply the images
// again.
type Memory struct {
	SHA256 string `toml:"sha256" doc:"checksum of the images and labels, set by the Go program"`
	Tests  bool   `toml:"tests" doc:"whether there are test images"`
	// Further lists the names of the columns other than images and labels.
	Further []string `toml:"columns" optional:"true" doc:"names of further columns, set by the Go program"`

	train, test *Images // images; nil in a declaration read from a file
}

// FromFloats returns a data set of training images or vectors. values contains n samples, row by row, of shape (height,
// width), (height, width, channels), or (values) for vectors. labels has one class per image, negative if the class is
// unknown, or is nil. The slices are not copied and must not change afterwards. It returns an [*Error] for non-finite values
// and inconsistent lengths.
func FromFloats(values []float32, shape []int, labels []int) (*Memory, error) {
	return newMemory(memoryImages("training images", values, shape, labels))
}

func newMemory(train *Images, err error) (*Memory, error) {
	if err != nil {
		return nil, err
	}
	m := &Memory{SHA256: checksumOf(train, nil), train: train}
	for _, c := range train.Columns() {
		m.Further = append(m.Further, c.Name)
	}
	return m, nil
}

// WithTest returns the data set with test images of the same shape; the arguments are as for [FromFloats].
func (m *Memory) WithTest(values []float32, labels []int) (*Memory, error) {
	if m == nil || m.train == nil {
		return nil, m.missing()
	}
	return m.withTest(memoryImages("test images", values, m.train.Shape, labels))
}

// FromColumns returns a data set of training samples from columns: `images`, which is required, `labels`, of whole numbers,
// and any other columns, such as targets, masks, weights and groups:
//
//	data.FromColumns(data.FloatColumn("images", []int{28, 28}, pixels), data.FloatColumn("weight", nil, weights))
//
// The slices are not copied and must not change afterwards. It returns an [*Error] for non-finite values and inconsistent
// lengths.
func FromColumns(columns ...*Values) (*Memory, error) {
	return newMemory(columnImages("training samples", columns))
}

// WithTestColumns returns the data set with test samples with the same columns; the arguments are as for [FromColumns].
func (m *Memory) WithTestColumns(columns ...*Values) (*Memory, error) {
	if m == nil || m.train == nil {
		return nil, m.missing()
	}
	return m.withTest(columnImages("test samples", columns))
}

func (m *Memory) withTest(test *Images, err error) (*Memory, error) {
	if err != nil {
		return nil, err
	}
	if !slices.Equal(test.Shape, m.train.Shape) {
		return nil, &Error{Dataset: MemoryName, Problem: fmt.Sprintf("test samples have shape %v, want %v", test.Shape, m.train.Shape)}
	}
	for _, c := range m.train.Columns() {
		if other, ok := test.Column(c.Name); !ok || other.Type != c.Type || !slices.Equal(other.Shape, c.Shape) {
			return nil, &Error{Dataset: MemoryName, Problem: fmt.Sprintf("test samples need a column %q of %s and shape %v, as the training samples have", c.Name, c.Type, c.Shape)}
		}
	}
	return &Memory{SHA256: checksumOf(m.train, test), Tests: true, Further: m.Further, train: m.train, test: test}, nil
}

func columnImages(what string, columns []*Values) (*Images, error) {
	wrong := wrongMemory(what)
	var own, labels *Values
	var further []*Values
	for _, v := range columns {
		switch {
		case v == nil:
			return nil, wrong("a column is nil")
		case v.Name == ImagesColumn:
			own = v
		case v.Name == LabelsColumn:
			labels = v
		default:
			further = append(further, v)
		}
	}
	if own == nil || own.Type == Whole {
		return nil, wrong("want a column %q of floats or bytes", ImagesColumn)
	}
	var classes []int
	if labels != nil {
		if labels.Type != Whole || len(labels.Shape) > 0 {
			return nil, wrong("want labels of one whole number for each sample (got %s of shape %v)", labels.Type, labels.Shape)
		}
		for _, n := range labels.whole {
			classes = append(classes, int(n))
		}
	}
	images, err := memoryImages(what, own.floats, own.Shape, classes)
	if own.Type == Bytes {
		images, err = NewBytes(own.Shape, own.bytes, classes)
	}
	if err == nil {
		images, err = images.WithColumns(further...)
	}
	if err == nil {
		err = images.checkColumns()
	}
	if _, ok := errors.AsType[*Error](err); err != nil && !ok {
		err = wrong("%v", err)
	}
	return images, err
}

// DescribeColumns implements [Columned]. If the samples are not in this process, it returns only names.
func (m *Memory) DescribeColumns(Dirs) (list []Column) {
	if m == nil {
		return nil
	}
	if m.train != nil {
		return m.train.Columns()
	}
	for _, name := range m.Further {
		list = append(list, Column{Name: name})
	}
	return list
}

// wrongMemory returns a function that makes errors about samples.
func wrongMemory(what string) func(format string, args ...any) error {
	return func(format string, args ...any) error {
		return &Error{Dataset: MemoryName, Problem: what + ": " + fmt.Sprintf(format, args...)}
	}
}

func memoryImages(what string, values []float32, shape []int, labels []int) (*Images, error) {
	wrong := wrongMemory(what)
	if len(shape) < 1 || len(shape) > 3 {
		return nil, wrong("shape: got %v, want (values), (height, width) or (height, width, channels)", shape)
	}
	if len(values) == 0 {
		return nil, wrong("no values are given")
	}
	images, err := NewFloats(shape, values, labels)
	if err != nil {
		return nil, wrong("%v", err)
	}
	if place, v := images.notFinite(); place != "" {
		return nil, wrong("%s: got %v, want a finite number", place, v)
	}
	images.finite = true
	return images, nil
}

func checksumOf(all ...*Images) string {
	h := sha256.New()
	var b []byte
	for _, m := range all {
		if m == nil {
			continue
		}
		b = fmt.Appendf(b[:0], "%v %d %d\n", m.Shape, m.n, len(m.labels))
		for _, v := range m.floats {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			if len(b) > 1<<16 {
				h.Write(b)
				b = b[:0]
			}
		}
		for _, l := range m.labels {
			b = binary.LittleEndian.AppendUint64(b, uint64(l))
		}
		h.Write(b)
		h.Write(m.bytes)
		for _, v := range m.further {
			fmt.Fprintf(h, "%s %v %s\n", v.Name, v.Shape, v.Type)
			for i := range v.length() {
				h.Write(binary.LittleEndian.AppendUint32(b[:0], math.Float32bits(v.at(i))))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (m *Memory) HasTest() bool { return m != nil && m.Tests }

func (*Memory) Origin() Origin { return OwnFiles }

func (m *Memory) Shape(Dirs) ([]int, bool) {
	if m == nil || m.train == nil {
		return nil, false
	}
	return slices.Clone(m.train.Shape), true
}

// Load implements [Source]. It returns all images, regardless of need.
func (m *Memory) Load(context.Context, Dirs, Need) (*Set, error) {
	if m == nil || m.train == nil {
		return nil, m.missing()
	}
	return &Set{Name: MemoryName, Shape: slices.Clone(m.train.Shape), Train: m.train, Test: m.test, HasTest: m.test != nil,
		Files: []File{{Path: MemoryName, SHA256: m.SHA256}}}, nil
}

// For returns this data set for a declared data set in memory, or an error if the declaration contains another checksum.
func (m *Memory) For(declared Source) (Source, error) {
	want, ok := declared.(*Memory)
	switch {
	case m == nil:
		return declared, nil
	case !ok:
		return nil, &Error{Dataset: MemoryName, Problem: "images are given, but the model declares a data set of another kind"}
	case want.SHA256 != m.SHA256:
		return nil, &Error{Dataset: MemoryName, Problem: fmt.Sprintf("these are not the images that the run was trained on (SHA-256: got %.12s..., want %.12s...)", m.SHA256, want.SHA256)}
	}
	return m, nil
}

func (m *Memory) missing() error {
	return &Error{Dataset: MemoryName, Problem: "its images are not in this process",
		Hint: "pass the images that the run was trained on, from Go: tessera.Options{Images: ...}"}
}
