package torch

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"tessera/config"
	"tessera/internal/train/checkpoint"
	"tessera/internal/volume"
	"tessera/layers"
)

// flattened maps the paths of layers to the shape of the image whose flattened values they read in PyTorch's order.
// These layers are the next dense layer after a flatten in the same stack, and the layers in between, which must have
// one value per unit. nn.Flatten orders the values channels first. If no dense layer follows, no parameters depend on
// the order, and the code is flattened channels last. flattened returns an error if another layer lies in between.
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

// readersOf returns the paths of the layers after a flatten up to the dense layer that reads it. It returns none if
// there is no dense layer.
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
			return nil, fmt.Errorf("%s: nn.Flatten orders the values of %s in another way (got %s, want dense or a layer of one value "+
				"per unit after a flatten of channels); put a dense layer between them", p.Path, flatten.Path, p.Kind)
		}
	}
	return nil, nil
}

// stackOf returns the path of the list of layers that contains a layer.
func stackOf(p config.Placed) string { return strings.TrimSuffix(p.Path, path.Ext(p.Path)) }

// unitwise reports whether a layer keeps the units of a vector and all its parameters have one value per unit.
func unitwise(p config.Placed, units []int) bool {
	_, block := p.Layer.(layers.Block)
	return !block && slices.Equal(p.Out, units) && !slices.ContainsFunc(p.Parameters, func(q layers.Parameter) bool {
		return q.Of != "" || !slices.Equal(q.Shape, units)
	})
}

// channelsFirst reorders the values of a vector, an image (height, width, channels), into the order of nn.Flatten.
func channelsFirst(t checkpoint.Tensor, image []int) checkpoint.Tensor {
	t.Shape = image
	t = permuted(t, 2, 0, 1)
	t.Shape = []int{volume.Of(image)}
	return t
}
