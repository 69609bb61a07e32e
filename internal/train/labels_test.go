package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph/tape"
	"tessera/internal/train/checkpoint"
)

// relabelled reads a data set and changes the labels of its training images. The checksums of its files do not change.
func relabelled(ctx context.Context, d *config.Dataset) (*data.Set, error) {
	set, err := d.Source.Load(ctx, nil, d.Need())
	if err != nil {
		return nil, err
	}
	var pixels []byte
	for i := range set.Train.Len() {
		pixels = append(pixels, set.Train.Bytes(i)...)
	}
	labels := set.Train.Labels()
	slices.Reverse(labels)
	set.Train, err = data.NewBytes(set.Shape, pixels, labels)
	return set, err
}

func TestARunIsNotResumedWithOtherLabels(t *testing.T) {
	dataset := "[model.m]\ndataset = " + labelledFiles(t, 40) + "\ntrain = { epochs = 1, batch = 16 }\n"
	for text, refused := range map[string]bool{
		dataset + "encoder = [{ kind = \"dense\", units = 5 }]\nloss = [{ kind = \"mse\" }]\n": false,
		dataset + "encoder = [{ kind = \"dense\", units = 5 }]\ndecoder = []\nhead.class = { layers = [{ kind = \"dense\" }] }\n" +
			"loss = [{ kind = \"cross_entropy\", on = \"class\" }]\n": true,
	} {
		run := trained(t, model(t, text), Options{}).Run
		_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 2, Load: relabelled})
		if _, ok := errors.AsType[*checkpoint.Error](err); refused && (!ok || !strings.Contains(err.Error(), "does not match: the labels of the fitted samples have changed")) || !refused && err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if r, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 2}); err != nil || r.Epochs != 2 {
			t.Errorf("%s with its labels: %+v, %v", text, r, err)
		}
	}
}
