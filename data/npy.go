package data

import "context"

func init() {
	Registry.Register("npy", "your own vectors or images in NumPy's .npy files: uint8 or floats; (n,p), (n,h,w) or (n,h,w,c)",
		func() Source { return &NPY{} })
}

// NPY is the user's data set in NumPy's .npy files: uint8, float16, float32 or float64 of (n, p), (n, h, w) or (n, h, w, c).
type NPY struct{ Arrays }

// Load implements [Source].
func (s *NPY) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "npy", need)
}
