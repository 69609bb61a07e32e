package data_test

import (
	"context"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A generated data set without labels says so before it is generated.
func TestGeneratedSetsKnowWhetherTheyHaveLabels(t *testing.T) {
	for _, e := range data.Registry.All() {
		s := e.New()
		if !data.IsGenerated(s) || e.Name == "patches" { // of another data set
			continue
		}
		set, err := data.Load(context.Background(), s, nil, data.Need{Train: true})
		fatal.If(t, err)
		expect.Equal(t, data.IsUnlabelled(s), set.Train.Labels() == nil, e.Name)
	}
}
