package data

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
)

// MemoryName is the name of the data set whose images a Go program gives.
const MemoryName = "memory"

func init() {
	Registry.Register(MemoryName, "images from a Go program (data.FromFloats); a run identifies them by their checksum",
		func() Source { return &Memory{} })
}

// Memory is a data set in memory: training images, and test images where [Memory.WithTest] adds them. Make one with
// [FromFloats]. The config.toml of a run has only the checksum. To resume or evaluate such a run, pass the images again.
type Memory struct {
	SHA256 string `toml:"sha256" doc:"checksum of the images and labels, set by the Go program"`
	Tests  bool   `toml:"tests" doc:"whether there are test images"`

	train, test *Images // nil in a declaration that was read
}

// FromFloats returns a data set of training images or vectors. values has n samples, row by row, of shape (height, width),
// (height, width, channels), or (values) of a vector. labels has one class per image, negative if the class is unknown, or is nil. The slices are kept and
// must not change afterwards. Non-finite values and lengths that do not fit are an [*Error].
func FromFloats(values []float32, shape []int, labels []int) (*Memory, error) {
	images, err := memoryImages("training images", values, shape, labels)
	if err != nil {
		return nil, err
	}
	return &Memory{SHA256: checksumOf(images, nil), train: images}, nil
}

// WithTest returns the data set with test images of the same shape, in the form of [FromFloats].
func (m *Memory) WithTest(values []float32, labels []int) (*Memory, error) {
	if m == nil || m.train == nil {
		return nil, m.missing()
	}
	images, err := memoryImages("test images", values, m.train.Shape, labels)
	if err != nil {
		return nil, err
	}
	return &Memory{SHA256: checksumOf(m.train, images), Tests: true, train: m.train, test: images}, nil
}

func memoryImages(what string, values []float32, shape []int, labels []int) (*Images, error) {
	wrong := func(format string, args ...any) error {
		return &Error{Dataset: MemoryName, Problem: what + ": " + fmt.Sprintf(format, args...)}
	}
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

// checksumOf identifies images with their shape and labels.
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
	}
	return hex.EncodeToString(h.Sum(nil))
}

// HasTest implements [Tester].
func (m *Memory) HasTest() bool { return m != nil && m.Tests }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*Memory) Origin() Origin { return OwnFiles }

// Shape implements [Source].
func (m *Memory) Shape(Dirs) ([]int, bool) {
	if m == nil || m.train == nil {
		return nil, false
	}
	return slices.Clone(m.train.Shape), true
}

// Load implements [Source]: the images themselves, whatever the need.
func (m *Memory) Load(context.Context, Dirs, Need) (*Set, error) {
	if m == nil || m.train == nil {
		return nil, m.missing()
	}
	return &Set{Name: MemoryName, Shape: slices.Clone(m.train.Shape), Train: m.train, Test: m.test, HasTest: m.test != nil,
		Files: []File{{Path: MemoryName, SHA256: m.SHA256}}}, nil
}

// For returns the images for a declaration of a data set in memory, which must name their checksum.
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
