package data

// Bytes255 divides the numbers of a file by 255, when it is read: for files that store bytes as floats or integers.
type Bytes255 struct{ ofFile }

// Bytes65535 divides the numbers of a file by 65535, when it is read: for files that store the pixels of 16-bit images.
type Bytes65535 struct{ ofFile }

func init() {
	Scalings.Register("bytes", "x / 255, when a file is read: bytes that are stored as floats or integers", func() Scaler { return &Bytes255{} })
	Scalings.Register("uint16", "x / 65535, when a file is read: pixels of 16-bit images", func() Scaler { return &Bytes65535{} })
}

func (*Bytes255) divisor() float32   { return 255 }
func (*Bytes65535) divisor() float32 { return 65535 }

// ofFile is a scaling that is complete when a file has been read.
type ofFile struct{}

func (ofFile) Fits() bool                      { return false }
func (ofFile) Fit(m *Images) (*Scaling, error) { return NewSteps(m.pixels), nil }
