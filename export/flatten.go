package export

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"tessera/config"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/train/checkpoint"
)

// flattened returns the images that a flatten has made vectors of, by the paths of the layers that take these vectors:
// the next dense layer of the same stack and the layers before it, which have one value per unit. nn.Flatten orders the
// vectors channels first. Without a dense layer nothing depends on the order, and the code is flattened channels last.
// Other layers are an error.
func flattened(all []config.Placed) (map[string][]int, error) {
	images := map[string][]int{}
	for i, p := range all {
		if p.Kind != "flatten" || len(p.In) != 3 || p.In[2] == 1 {
			continue
		}
		readers, err := readersOf(p, all[i+1:])
		if err != nil {
			return nil, err
		}
		for _, reader := range readers {
			images[reader] = p.In
		}
	}
	return images, nil
}

// readersOf lists the layers from a flatten to the dense layer that reads it; none without a dense layer.
func readersOf(flatten config.Placed, next []config.Placed) (paths []string, err error) {
	for _, p := range next {
		if stackOf(p) != stackOf(flatten) || p.Kind == "reshape" {
			return nil, nil
		}
		paths = append(paths, p.Path)
		if p.Kind == "dense" {
			return paths, nil
		}
		if !unitwise(p, flatten.Out) {
			return nil, fmt.Errorf("safetensors: %s: nn.Flatten orders the values of %s in another way (got %s, want dense or a layer of one value "+
				"per unit after a flatten of channels); put a dense layer between them", p.Path, flatten.Path, p.Kind)
		}
	}
	return nil, nil
}

// stackOf returns the list of layers that a layer is in.
func stackOf(p config.Placed) string { return strings.TrimSuffix(p.Path, path.Ext(p.Path)) }

// unitwise reports whether a layer keeps the units of a vector, and all of its parameters have one value for each.
func unitwise(p config.Placed, units []int) bool {
	_, block := p.Layer.(layers.Block)
	return !block && slices.Equal(p.Out, units) && !slices.ContainsFunc(p.Parameters, func(q layers.Parameter) bool {
		return q.Of != "" || !slices.Equal(q.Shape, units)
	})
}

// channelsFirst orders the values of a vector of units, an image (height, width, channels), as nn.Flatten does.
func channelsFirst(t checkpoint.Tensor, image []int) checkpoint.Tensor {
	t.Shape = image
	t = permuted(t, 2, 0, 1)
	t.Shape = []int{volume.Of(image)}
	return t
}
