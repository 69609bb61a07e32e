package laws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"tessera/data"
)

// Source contains the laws of data sets. The files of the source must exist: for a downloaded data set, in $TESSERA_DATA or in
// the user's cache folder.
var Source = inTrials(eachSourceTrial, []law[sourceTrial]{
	{"loads samples that are finite, of one shape, with valid labels", sourceTrial.sound},
	{"has the shape that it declares", sourceTrial.declaredShape},
	{"has the columns that it declares, with their types", sourceTrial.declaredColumns},
	{"says whether it has test samples", sourceTrial.saysTest},
	{"gives the same samples again", sourceTrial.repeatable},
	{"gives the same samples of a split and a column when it loads these alone", sourceTrial.onlyNeeded},
	{"never changes its settings", sourceTrial.keepsSettings},
	{"returns the error of its context, or the whole set", sourceTrial.cancelled},
	{"gives an error for missing files, or needs none", sourceTrial.missing},
})

// sourceTrial is a source with the data set from one load.
type sourceTrial struct {
	fresh func() data.Source
	dirs  data.Dirs
	need  data.Need // requests all samples and columns
	set   *data.Set
}

func (t sourceTrial) String() string { return "loaded" }

func eachSourceTrial(fresh func() data.Source, try func(t sourceTrial)) error {
	s := fresh()
	t := sourceTrial{fresh: fresh, dirs: data.SearchDirs(""), need: data.Both}
	for _, c := range data.ColumnsOf(s, t.dirs) {
		t.need.Columns = append(t.need.Columns, c.Name)
	}
	err := guarded(func() (err error) { t.set, err = data.Load(context.Background(), s, t.dirs, t.need); return err })
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	try(t)
	return nil
}

func (t sourceTrial) load(s data.Source, need data.Need) (*data.Set, error) {
	return data.Load(context.Background(), s, t.dirs, need)
}

func (t sourceTrial) sound() error {
	if t.set.Train == nil || t.set.Train.Len() == 0 {
		return errors.New("there are no training samples")
	}
	for name, images := range map[string]*data.Images{"training": t.set.Train, "test": t.set.Test} {
		if images == nil {
			continue
		}
		labels := images.Labels()
		if labels != nil && len(labels) != images.Len() {
			return fmt.Errorf("%d labels of %d %s samples", len(labels), images.Len(), name)
		}
		for i, label := range labels {
			if len(t.set.Classes) > 0 && label >= len(t.set.Classes) {
				return fmt.Errorf("%s sample %d has the label %d, but there are %d names of classes", name, i, label, len(t.set.Classes))
			}
		}
	}
	for i, part := range t.set.Parts {
		if len(part) != t.set.Train.Pixels() {
			return fmt.Errorf("true part %d has %d values, a sample %d", i, len(part), t.set.Train.Pixels())
		}
	}
	return nil
}

func (t sourceTrial) declaredShape() error {
	if shape, ok := t.fresh().Shape(t.dirs); ok && !slices.Equal(shape, t.set.Shape) {
		return fmt.Errorf("declares the shape %v, samples have %v", shape, t.set.Shape)
	}
	return nil
}

func (t sourceTrial) declaredColumns() error {
	declared := data.ColumnsOf(t.fresh(), t.dirs)
	for _, images := range []*data.Images{t.set.Train, t.set.Test} {
		if images == nil {
			continue
		}
		for _, c := range declared {
			got, ok := images.Column(c.Name)
			if !ok || c.Type != "" && (got.Type != c.Type || !slices.Equal(got.Shape, c.Shape)) {
				return fmt.Errorf("column %q: got %+v, declared %+v", c.Name, got, c)
			}
		}
	}
	return nil
}

func (t sourceTrial) saysTest() error {
	says := data.HasTest(t.fresh())
	if says != (t.set.Test != nil) || says != t.set.HasTest {
		return fmt.Errorf("HasTest (see data.Tester) is %v, that of the set %v, and its test samples exist: %v", says, t.set.HasTest, t.set.Test != nil)
	}
	return nil
}

// sameSamples compares samples, their labels, and the columns of got.
func sameSamples(got, want *data.Images) error {
	if got == nil || want == nil {
		if got != want {
			return fmt.Errorf("samples exist: %v, want %v", got != nil, want != nil)
		}
		return nil
	}
	if got.Checksum() != want.Checksum() {
		return errors.New("samples or labels are others")
	}
	columns, others := got.All(), want.All()
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		if err := differ("column "+name, columns[name], others[name]); err != nil {
			return err
		}
	}
	return nil
}

func (t sourceTrial) repeatable() error {
	s := t.fresh()
	for i := range 2 {
		set, err := t.load(s, t.need)
		if err == nil {
			err = errors.Join(sameSamples(set.Train, t.set.Train), sameSamples(set.Test, t.set.Test))
		}
		if err != nil {
			return fmt.Errorf("load %d of another source: %w", i+1, err)
		}
	}
	return nil
}

// onlyNeeded checks loads of each split alone, without columns, and of each column alone.
func (t sourceTrial) onlyNeeded() error {
	for _, split := range []data.Need{{Train: true}, {Test: true}} {
		if split.Test && t.set.Test == nil {
			continue
		}
		for _, columns := range append(slices.Collect(slices.Chunk(t.need.Columns, 1)), nil) {
			set, err := t.load(t.fresh(), split.WithColumns(columns))
			if err != nil {
				return fmt.Errorf("%+v: %w", split, err)
			}
			got, want := set.Train, t.set.Train
			if split.Test {
				got, want = set.Test, t.set.Test
			}
			if got == nil {
				return fmt.Errorf("%+v: the samples are missing", split)
			}
			if err := sameSamples(got, want); err != nil {
				return fmt.Errorf("%+v, compared with all splits and columns: %w", split, err)
			}
		}
	}
	return nil
}

func (t sourceTrial) keepsSettings() error {
	return keepsSettings(t.fresh, func(s data.Source) error {
		s.Shape(t.dirs)
		_, err := t.load(s, t.need)
		return err
	})
}

func (t sourceTrial) cancelled() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	set, err := data.Load(ctx, t.fresh(), t.dirs, t.need)
	if err != nil {
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("after the end of its context it returns %w, want the error of the context", err)
		}
		return nil
	}
	return errors.Join(sameSamples(set.Train, t.set.Train), sameSamples(set.Test, t.set.Test))
}

// missing checks the error of a load from an empty folder.
func (t sourceTrial) missing() error {
	dir, err := os.MkdirTemp("", "law")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	set, err := data.Load(context.Background(), t.fresh(), data.Dirs{dir}, t.need)
	var of *data.Error
	switch {
	case err == nil:
		return errors.Join(sameSamples(set.Train, t.set.Train), sameSamples(set.Test, t.set.Test))
	case !errors.As(err, &of):
		return fmt.Errorf("without its files it returns %w, want a *data.Error", err)
	case set != nil:
		return errors.New("without its files it returns an error and a set")
	}
	return nil
}
