package laws_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tessera/data"
	"tessera/laws"
)

// store is a source with one fault.
type store struct {
	mistake string
	loads   int
}

var loads int

func (s *store) Shape(data.Dirs) ([]int, bool) {
	if s.mistake == "shape" {
		return []int{3}, true
	}
	return []int{2}, true
}

func (s *store) HasTest() bool { return s.mistake == "test" }

func (s *store) DescribeColumns(data.Dirs) []data.Column {
	of := data.Float32
	if s.mistake == "column" {
		of = data.Whole
	}
	return []data.Column{{Name: "weight", Type: of}}
}

func (s *store) Load(ctx context.Context, dirs data.Dirs, need data.Need) (*data.Set, error) {
	values := []float32{1, 2, 3, 4}
	labels := []int{0, 1}
	switch s.mistake {
	case "settings":
		s.loads++
	case "again":
		loads++
		values[0] = float32(loads)
	case "need":
		if len(need.Columns) == 0 {
			values[0] = 0
		}
	case "labels":
		labels[0] = 7
	case "context":
		if ctx.Err() != nil {
			return nil, errors.New("it was too long")
		}
	case "files":
		if !slices.Equal(dirs, data.SearchDirs("")) {
			return nil, errors.New("nothing there")
		}
	}
	images, err := data.NewFloats([]int{2}, values, labels)
	if err == nil && slices.Contains(need.Columns, "weight") {
		images, err = images.WithColumns(data.FloatColumn("weight", nil, []float32{0.5, 1}))
	}
	return &data.Set{Name: "store", Shape: []int{2}, Train: images, Classes: []string{"a", "b"}}, err
}

func TestWrongSourcesBreakTheirLaws(t *testing.T) {
	wrong := map[string]func() data.Source{}
	for law, mistake := range map[string]string{
		"loads samples that are finite, of one shape, with valid labels":           "labels",
		"has the shape that it declares":                                           "shape",
		"has the columns that it declares, with their types":                       "column",
		"says whether it has test samples":                                         "test",
		"gives the same samples again":                                             "again",
		"gives the same samples of a split and a column when it loads these alone": "need",
		"never changes its settings":                                               "settings",
		"returns the error of its context, or the whole set":                       "context",
		"gives an error for missing files, or needs none":                          "files",
	} {
		wrong[law] = func() data.Source { return &store{mistake: mistake} }
	}
	mustBreak(t, laws.Source, wrong)
	if broken := laws.Broken(laws.Source, func() data.Source { return &store{} }); len(broken) > 0 {
		t.Errorf("a source without a mistake breaks %q", broken)
	}
}
