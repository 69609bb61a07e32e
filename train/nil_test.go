package train

import (
	"context"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
)

func TestNoModelIsAnError(t *testing.T) {
	for want, spec := range map[string]*config.Model{
		"the model is nil":            nil,
		`model "" has no data set`:    {},
		`model "own" has no data set`: {Name: "own", Kind: config.Autoencoder},
		`model "bare" has no encoder`: {Name: "bare", Dataset: config.Dataset{Source: &data.Bars{Count: 10}}},
	} {
		if _, err := Run(context.Background(), spec, Options{Out: t.TempDir()}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
