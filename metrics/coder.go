// Package metrics measures coders: reconstruction, sparsity, max-approximation, classification by codes, disjointness.
// It knows nothing of how a coder was trained; one file per metric, with its formula and source.
package metrics

// Coder encodes images and decodes codes with a dictionary of atoms. Auto-encoders, NMF, PCA and k-means are coders.
// All slices are row-major: n images of as many values as the shape says, n codes of Units() values each. What a method
// returns belongs to the caller: a later call, of this coder or of one made by WithAtoms, must not change it. Metrics
// call a coder from one goroutine at a time.
type Coder interface {
	// Shape is the shape of one image, (height, width) or (height, width, channels).
	Shape() []int
	// Units is the length of a code.
	Units() int
	// Encode returns the codes of n = len(images)/pixels images.
	Encode(images []float32) (codes []float32, err error)
	// Decode returns the images of n = len(codes)/Units() codes.
	Decode(codes []float32) (images []float32, err error)
	// Atoms returns a copy of the dictionary, or nil where the decoder has none (its last layer with weights is not dense).
	Atoms() *Atoms
	// WithAtoms returns the same coder with another dictionary of the same shape: what max-approximation asks of it,
	// with everything else of the decoder (its last activation included) kept. Where the new coder is an io.Closer, who
	// asked for it closes it.
	WithAtoms(*Atoms) (Coder, error)
}

// Atoms is the dictionary of a decoder's last linear map.
type Atoms struct {
	Shape  []int     // of one image
	Count  int       // how many atoms: rows of Values
	Values []float32 // Count x pixels, row-major
	Bias   []float32 // pixels; nil where the map has none

	// Indirect says why the values of a code are not the weights of a sum of these atoms, "" where they are.
	Indirect string
}
