package data

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"tessera/part"
)

// Tables are the keys that the data sets csv, npz and safetensors share: your own samples and labels in one file, found by name.
// The format is detected from the content. Paths are relative to the current directory. Samples are as those of [Arrays].
type Tables struct {
	Images     string `toml:"images" required:"true" doc:"file of the training samples"`
	Labels     string `toml:"labels" doc:"name of the labels in it, whole numbers or names of classes; by default labels, label or class, if there is one"`
	TestImages string `toml:"test_images" doc:"file of the test samples; without it the set has no test split"`
	Layout
}

// Named are the keys of files of several arrays.
type Named struct {
	Tensor     string `toml:"tensor" doc:"name of the array of samples; by default the only one of two to four axes"`
	TestTensor string `toml:"test_tensor" doc:"name of the array of test samples; by default that of the training samples"`
	TestLabels string `toml:"test_labels" doc:"name of their labels; by default that of the training labels, but none for another array of the same file"`
}

func init() {
	Registry.Register("csv", "your own vectors in a .csv file: a line of column names, then a line per sample", func() Source { return &CSV{} })
	Registry.Register("npz", "your own vectors or images in NumPy's .npz files, arrays by name", func() Source { return &NPZ{} })
	Registry.Register("safetensors", "your own vectors or images in .safetensors files, tensors by name", func() Source { return &Safetensors{} })
}

// CSV is the user's data set in .csv files. The separator may be the comma, the semicolon or the tab.
type CSV struct {
	Tables
	Names   string   `toml:"names" doc:"column of the names of samples; by default name, or a column without a name, if there is one"`
	Columns []string `toml:"columns" doc:"columns of the values, names or globs; by default all but those of labels and names"`
}

// NPZ is the user's data set in .npz files, as numpy.savez writes them.
type NPZ struct {
	Tables
	Named
}

// Safetensors is the user's data set in .safetensors files.
type Safetensors struct {
	Tables
	Named
}

// HasTest implements [Tester].
func (t *Tables) HasTest() bool { return t.TestImages != "" }

// HasTest implements [Tester]: test samples may be in the file of the training samples.
func (s *NPZ) HasTest() bool { return s.Tables.HasTest() || s.TestTensor != "" }

// HasTest implements [Tester]: test samples may be in the file of the training samples.
func (s *Safetensors) HasTest() bool { return s.Tables.HasTest() || s.TestTensor != "" }

// Origin tells `tessera data list` that nothing can be downloaded.
func (*Tables) Origin() Origin { return OwnFiles }

// Check reports keys that need another one.
func (t *Tables) Check() error { return t.Layout.check() }

// Check reports keys that need another one.
func (s *NPZ) Check() error { return errors.Join(s.Tables.Check(), s.Named.check(s.HasTest())) }

// Check reports keys that need another one.
func (s *Safetensors) Check() error {
	return errors.Join(s.Tables.Check(), s.Named.check(s.HasTest()))
}

func (n *Named) check(hasTest bool) error {
	if n.TestLabels != "" && !hasTest {
		return part.KeyError{Key: "test_labels", Problem: "is given without test_images or test_tensor"}
	}
	return nil
}

// Shape implements [Source] by the first line of the file.
func (s *CSV) Shape(Dirs) ([]int, bool) {
	r, _ := s.reading()
	return s.shape(r)
}

// Shape implements [Source] by the headers of the arrays.
func (s *NPZ) Shape(Dirs) ([]int, bool) { return s.shape(s.train(s.Labels)) }

// Shape implements [Source] by the header of the file.
func (s *Safetensors) Shape(Dirs) ([]int, bool) { return s.shape(s.train(s.Labels)) }

// ValueNames implements [Namer] by the first line of the file of the training samples. It reads the whole file for the checksum.
func (s *CSV) ValueNames(ctx context.Context) ([]string, File, error) {
	f, file, err := openCSV(ctx, s.Images)
	if err != nil {
		return nil, file, badFile("csv", s.Images, err)
	}
	r, _ := s.reading()
	c, err := f.columns(r)
	if err != nil {
		return nil, file, badFile("csv", s.Images, err)
	}
	return f.valueNames(c), file, nil
}

// Load implements [Source].
func (s *CSV) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	r, _ := s.reading()
	return s.load(ctx, "csv", need, s.HasTest(), [2]reading{r, r})
}

// Load implements [Source].
func (s *NPZ) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "npz", need, s.HasTest(), s.readings(&s.Tables))
}

// Load implements [Source].
func (s *Safetensors) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "safetensors", need, s.HasTest(), s.readings(&s.Tables))
}

// reading implements [reader].
func (s *CSV) reading() (reading, Layout) {
	return reading{labels: s.Labels, names: s.Names, columns: s.Columns}, s.Layout
}

// reading implements [reader].
func (s *NPZ) reading() (reading, Layout) { return s.train(s.Labels), s.Layout }

// reading implements [reader].
func (s *Safetensors) reading() (reading, Layout) { return s.train(s.Labels), s.Layout }

// pictures implements [reader]: images are read as any other.
func (*Tables) pictures() pictures { return pictures{} }

func (n *Named) train(labels string) reading { return reading{tensor: n.Tensor, labels: labels} }

// readings are those of the training and of the test samples. Labels and names in the file of the training samples are not those of
// another array in it, unless the key test_labels names them.
func (n *Named) readings(t *Tables) [2]reading {
	train := n.train(t.Labels)
	test := train
	if n.TestTensor != "" {
		test.tensor = n.TestTensor
	}
	inOne := t.TestImages == "" || filepath.Clean(t.TestImages) == filepath.Clean(t.Images)
	if test.apart = inOne && n.Tensor != "" && test.tensor != n.Tensor; test.apart || n.TestLabels != "" {
		test.labels = n.TestLabels
	}
	return [2]reading{train, test}
}

func (t *Tables) shape(r reading) ([]int, bool) {
	o, _, ok, err := openTable(context.Background(), t.Images)
	if err != nil || !ok {
		return nil, false
	}
	dims, err := o.dims(r)
	if err != nil || len(dims) < 2 {
		return nil, false
	}
	shape, err := t.sampleShape(dims)
	return shape, err == nil
}

// load reads the splits. The names of classes, and the order of columns with names, are those of the training samples, which are
// therefore read in any case.
func (t *Tables) load(ctx context.Context, name string, need Need, hasTest bool, r [2]reading) (*Set, error) {
	set := &Set{Name: name, HasTest: hasTest, Scale: t.Scale}
	images, columns, err := t.split(ctx, set, t.Images, r[0])
	if err != nil {
		return nil, err
	}
	set.Shape, set.Train = images.Shape, images
	if !need.Test || !set.HasTest {
		return set, nil
	}
	path := t.TestImages
	if path == "" {
		path = t.Images
	}
	r[1].order = columns
	if set.Test, _, err = t.split(ctx, set, path, r[1]); err != nil {
		return nil, err
	}
	if !need.Train {
		set.Train = nil
	}
	return set, sameShape(set, path)
}

// split reads the samples of one split and their labels, and the names of their columns where they have any.
func (t *Tables) split(ctx context.Context, set *Set, path string, r reading) (*Images, []string, error) {
	read, file, err := readTable(ctx, path, r)
	if err != nil {
		return nil, nil, badFile(set.Name, path, err)
	}
	if !slices.Contains(set.Files, file) {
		set.Files = append(set.Files, file)
	}
	images, err := t.samples(set, path, read.values)
	if err != nil {
		return nil, nil, err
	}
	first := set.Classes == nil && set.Train == nil
	classes, err := read.resolve(set.Classes, first)
	if err != nil {
		return nil, nil, badFile(set.Name, path, err)
	}
	if first {
		set.Classes = classes
	}
	images.labels = read.labels
	return images, read.columns, nil
}
