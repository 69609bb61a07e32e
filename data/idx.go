package data

import "context"

func init() {
	Registry.Register("idx", "your own images in IDX files, the layout of MNIST: images, labels, test images, test labels",
		func() Source { return &IDX{} })
}

// IDX is the user's data set in IDX files, as MNIST's are: unsigned bytes or floats of 3 or 4 axes, gzipped or not.
type IDX struct{ Arrays }

// Load implements [Source].
func (s *IDX) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "idx", need)
}
