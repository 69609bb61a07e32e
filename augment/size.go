package augment

// size is the size of an image; one without a channel axis has one channel.
type size struct{ height, width, channels int }

func sizeOf(shape []int) size {
	if len(shape) == 2 {
		return size{shape[0], shape[1], 1}
	}
	return size{shape[0], shape[1], shape[2]}
}

// stride is the number of values of one row.
func (s size) stride() int { return s.width * s.channels }
