package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"tessera/config/part"
)

// Tables contains the keys that the data sets csv, npz and safetensors share: user-defined samples and labels in one file,
// identified by name. The format is detected from the content. Paths are relative to the current directory. Samples have the
// same form as in [Arrays].
type Tables struct {
	File       string `toml:"file" required:"true" instead:"images" optional:"true" doc:"file of the training samples"`
	Images     string `toml:"images" optional:"true" doc:"another spelling of file; one of the two is needed"`
	Labels     string `toml:"labels" doc:"name of the labels in it, whole numbers or names of classes; by default labels, label or class, if there is one"`
	TestImages string `toml:"test_images" doc:"file of the test samples; without it the set has no test split"`
}

// Named contains the keys for files of several arrays.
type Named struct {
	Tensor     string `toml:"tensor" doc:"name of the array of samples; by default the only one of two to four axes"`
	TestTensor string `toml:"test_tensor" doc:"name of the array of test samples; by default that of the training samples"`
	TestLabels string `toml:"test_labels" doc:"name of their labels; by default that of the training labels, but none for another array of the same file"`

	Columns     ColumnNames `toml:"columns" doc:"further columns by name, such as { mask = \"observed\" }: arrays in the file"`
	TestColumns ColumnNames `toml:"test_columns" doc:"those of the test samples; by default arrays of the same names"`
}

func init() {
	Registry.Register("csv", "your own vectors in a .csv file: a line of column names, then a line per sample", func() Source { return &CSV{} })
	Registry.Register("npz", "your own vectors or images in NumPy's .npz files, arrays by name", func() Source { return &NPZ{} })
	Registry.Register("safetensors", "your own vectors or images in .safetensors files, tensors by name", func() Source { return &Safetensors{} })
}

// CSV is a user-defined data set in .csv files. The separator may be the comma, the semicolon or the tab.
type CSV struct {
	Tables
	Height int    `toml:"height" want:"> 0" doc:"image height in pixels, if a line is an image; without height and width it is a vector"`
	Width  int    `toml:"width" want:"> 0" doc:"image width in pixels, if a line is an image"`
	Scale  Scale  `toml:"scale" doc:"how values are scaled: bytes (x/255) or uint16 (x/65535), of numbers that are pixels, minmax (to [0,1]), standardise, whiten (by statistics of the fitted samples, stored with the model), or a factor; by default they are not scaled"`
	Names  string `toml:"names" doc:"column of the names of samples; by default name, or a column without a name, if there is one"`

	Missing string `toml:"missing" optional:"true" doc:"\"nan\": empty cells, NA and NaN are missing entries, which losses and metrics leave out; by default they are an error"`

	Decimal string `toml:"decimal" oneof:". ," optional:"true" doc:"sign before the fraction of a number: by default the point"`

	Columns ColumnNames `toml:"columns" doc:"further columns by name, such as { weight = \"w\", target = [\"age\", \"dose\"] }, each by names or globs in the file; images = names or globs, or the list alone, are the columns of the values, by default all that are nothing else"`
}

// NPZ is a user-defined data set in .npz files, as written by numpy.savez.
type NPZ struct {
	Tables
	Layout
	Named
}

// Safetensors is a user-defined data set in .safetensors files.
type Safetensors struct {
	Tables
	Layout
	Named
}

// path returns the file of the training samples.
func (t *Tables) path() string { return cmp.Or(t.File, t.Images) }

// OneSpelling replaces the second spelling of keys that have two spellings by the first one, so that equal declarations have
// equal text and are one trial.
func OneSpelling(s Source) {
	if t, ok := s.(interface{ oneSpelling() }); ok {
		t.oneSpelling()
	}
}

func (t *Tables) oneSpelling() {
	if t.File == "" {
		t.File, t.Images = t.Images, ""
	}
}

// check returns an error if both spellings of a key are used.
func (t *Tables) check() error {
	if t.File != "" && t.Images != "" {
		return part.KeyErrorf("images", "is another spelling of file, which is given too: leave out one of them")
	}
	return nil
}

func (t *Tables) HasTest() bool { return t.TestImages != "" }

// HasTest implements [Tester]: test samples may be in the file of the training samples.
func (s *NPZ) HasTest() bool { return s.Tables.HasTest() || s.TestTensor != "" }

// HasTest implements [Tester]: test samples may be in the file of the training samples.
func (s *Safetensors) HasTest() bool { return s.Tables.HasTest() || s.TestTensor != "" }

// Origin returns [OwnFiles]: there is nothing to download.
func (*Tables) Origin() Origin { return OwnFiles }

// Check returns an error for a key that requires another, missing key.
func (s *CSV) Check() error {
	if s.Labels != "" && s.Columns[LabelsColumn] != nil {
		return part.KeyErrorf("columns", "labels are named twice: leave out the key labels or the column")
	}
	if len(s.Columns[LabelsColumn]) > 1 {
		return part.KeyErrorf("columns", "labels: got %d names, want one", len(s.Columns[LabelsColumn]))
	}
	return errors.Join(s.Tables.check(), s.layout().check(), checkMissing("", s.Columns))
}

func (s *CSV) layout() *Layout {
	return &Layout{Height: s.Height, Width: s.Width, Scale: s.Scale, Missing: s.Missing, decimal: s.Decimal}
}

func (s *CSV) FitsScale() bool { return s.Scale.Fitted() }

// Check returns an error for a key that requires another, missing key.
func (s *NPZ) Check() error {
	return errors.Join(s.Tables.check(), s.Layout.check(), s.Named.check(s.HasTest()))
}

// Check returns an error for a key that requires another, missing key.
func (s *Safetensors) Check() error {
	return errors.Join(s.Tables.check(), s.Layout.check(), s.Named.check(s.HasTest()))
}

func (n *Named) check(hasTest bool) error {
	switch {
	case n.TestLabels != "" && !hasTest:
		return part.KeyError{Key: "test_labels", Problem: "is given without test_images or test_tensor"}
	case len(n.TestColumns) > 0 && !hasTest:
		return part.KeyError{Key: "test_columns", Problem: "is given without test_images or test_tensor"}
	case n.Tensor != "" && n.Columns[ImagesColumn] != nil:
		return part.KeyErrorf("columns", "images are named twice: leave out the key tensor or the column")
	}
	for name := range n.TestColumns {
		if n.Columns[name] == nil {
			return part.KeyErrorf("test_columns", "%s: is no column of the training samples", name)
		}
	}
	if err := n.TestColumns.checkOne("array"); err != nil {
		return err
	}
	return errors.Join(n.Columns.checkOne("array"), checkMissing("", n.Columns))
}

// Shape implements [Source] from the first line of the file.
func (s *CSV) Shape(Dirs) ([]int, bool) {
	return s.shape(s.reading())
}

// Shape implements [Source] from the headers of the arrays.
func (s *NPZ) Shape(Dirs) ([]int, bool) { return s.shape(s.reading()) }

// Shape implements [Source] from the header of the file.
func (s *Safetensors) Shape(Dirs) ([]int, bool) { return s.shape(s.reading()) }

// ValueNames implements [Namer] from the first line of the file of the training samples. It reads the complete file for the
// checksum.
func (s *CSV) ValueNames(ctx context.Context) ([]string, File, error) {
	o, file, c, err := s.open(ctx)
	defer o.close()
	if err != nil {
		return nil, file, badFile("csv", s.path(), err)
	}
	return o.csv.valueNames(c), file, nil
}

func (s *CSV) Describe(ctx context.Context) (string, error) {
	o, _, c, err := s.open(ctx)
	defer o.close()
	if err != nil {
		return "", badFile("csv", s.path(), err)
	}
	return o.csv.describe(c), nil
}

// open opens the file of the training samples and assigns its columns. The caller closes it.
func (s *CSV) open(ctx context.Context) (o opened, file File, c csvColumns, err error) {
	o, file, ok, err := openTable(ctx, s.path())
	if err == nil && (!ok || o.csv == nil) {
		err = errors.New("is no file of columns")
	}
	if err == nil {
		c, err = o.csv.columns(s.reading())
	}
	return o, file, c, err
}

func (s *CSV) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	r := s.reading()
	r.need = need.Columns
	return s.load(ctx, "csv", need, s.HasTest(), [2]reading{r, r})
}

func (s *NPZ) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "npz", need, s.HasTest(), s.readings(&s.Tables, s.Layout, need.Columns))
}

func (s *Safetensors) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	return s.load(ctx, "safetensors", need, s.HasTest(), s.readings(&s.Tables, s.Layout, need.Columns))
}

func (s *CSV) reading() reading {
	return reading{labels: cmp.Or(s.Labels, s.Columns.one(LabelsColumn)), names: s.Names, columns: s.Columns[ImagesColumn], held: s.Columns, layout: *s.layout()}
}

func (s *NPZ) reading() reading { return s.train(s.Labels, s.Layout) }

func (s *Safetensors) reading() reading { return s.train(s.Labels, s.Layout) }

// pictures implements [reader] without settings for image files.
func (*Tables) pictures() pictures { return pictures{} }

func (n *Named) train(labels string, l Layout) reading {
	return reading{tensor: cmp.Or(n.Tensor, n.Columns.one(ImagesColumn)), labels: cmp.Or(labels, n.Columns.one(LabelsColumn)), held: n.Columns, layout: l}
}

// readings returns the keys for reading the training samples and the test samples. If the test samples are another array in
// the file of the training samples, the labels and names in that file do not belong to them, unless the key test_labels names
// their labels.
func (n *Named) readings(t *Tables, l Layout, need []string) [2]reading {
	train := n.train(t.Labels, l)
	train.need = need
	test := train
	test.held = maps.Clone(n.Columns)
	for name, held := range n.TestColumns {
		test.held[name] = held
	}
	test.tensor = cmp.Or(n.TestTensor, n.TestColumns.one(ImagesColumn), test.tensor)
	inOne := t.TestImages == "" || filepath.Clean(t.TestImages) == filepath.Clean(t.path())
	if test.apart = inOne && train.tensor != "" && test.tensor != train.tensor; test.apart || n.TestLabels != "" || n.TestColumns[LabelsColumn] != nil {
		test.labels = cmp.Or(n.TestLabels, n.TestColumns.one(LabelsColumn))
	}
	return [2]reading{train, test}
}

func (t *Tables) shape(r reading) ([]int, bool) {
	o, _, ok, err := openTable(context.Background(), t.path())
	defer o.close()
	if err != nil || !ok {
		return nil, false
	}
	dims, err := o.dims(r)
	if err != nil || len(dims) < 2 {
		return nil, false
	}
	shape, err := r.layout.sampleShape(dims)
	return shape, err == nil
}

// load reads the splits. The names of classes, and the order of named columns, are those of the training samples, which are
// therefore always read.
func (t *Tables) load(ctx context.Context, name string, need Need, hasTest bool, r [2]reading) (*Set, error) {
	set := &Set{Name: name, HasTest: hasTest, Scale: r[0].layout.Scale}
	images, columns, err := t.split(ctx, set, t.path(), r[0])
	if err != nil {
		return nil, err
	}
	set.Shape, set.Train = images.Shape, images
	if !need.Test || !set.HasTest {
		return set, nil
	}
	path := t.TestImages
	if path == "" {
		path = t.path()
	}
	r[1].order, r[1].known = columns, images.Columns()
	if set.Test, _, err = t.split(ctx, set, path, r[1]); err != nil {
		return nil, err
	}
	if !need.Train {
		set.Train = nil
	}
	return set, sameShape(set, path)
}

// split reads the samples of one split with their labels and, if any, the names of their columns.
func (t *Tables) split(ctx context.Context, set *Set, path string, r reading) (*Images, []string, error) {
	read, file, err := readTable(ctx, path, r)
	if err != nil {
		return nil, nil, badFile(set.Name, path, err)
	}
	if !slices.Contains(set.Files, file) {
		set.Files = append(set.Files, file)
	}
	images, err := r.layout.samples(set, path, read.values)
	if err != nil {
		return nil, nil, err
	}
	set.Notes = append(set.Notes, read.values.spans.notes(path, read.columns, set.Scale.Fitted())...)
	first := set.Classes == nil && set.Train == nil
	classes, err := read.resolve(set.Classes, first)
	if err != nil {
		return nil, nil, badFile(set.Name, path, err)
	}
	if first {
		set.Classes = classes
	}
	if first {
		set.Notes = append(set.Notes, read.notes(path, r, set.Scale)...)
		count := len(classes)
		if count == 0 {
			count = classesOf(read.labels)
		}
		set.Notes = append(set.Notes, read.labelNotes(path, count)...)
	}
	set.Notes = append(set.Notes, read.otherColumns(path, r.order)...)
	images.labels, images.columns, images.lines = read.labels, read.columns, read.lines
	if images, err = images.WithColumns(read.further...); err != nil {
		return nil, nil, badFile(set.Name, path, err)
	}
	return images, read.columns, nil
}

// table is the content of a file of samples: values, names and labels.
type table struct {
	values  array
	columns []string // names of the values, in order, if the file contains them
	lines   []int    // line numbers of the samples in a text file; nil for other files
	names   []string // one name per sample; nil if there are none
	labels  []int    // one label per sample; nil if there are none
	texts   []string // labels as text, which may be names of classes; labels is nil if they are not numbers
	classes []string // names of the classes, if the file contains them
	further []*Values
	ignored []string // names of columns of values that are not in the required order of names
}

// reading contains the keys of a data set for reading a file of samples.
type reading struct {
	layout  Layout      // how values are interpreted
	tensor  string      // name of the array of the samples in a file of several arrays; "" for the only candidate
	labels  string      // name of the array or column of the labels; "" for a usual name
	names   string      // name of the column of the names; "" for a usual name
	columns []string    // globs of the columns of values; nil for all others
	held    ColumnNames // sources of the further columns in the file
	need    []string    // the further columns to read
	known   []Column    // the further columns of the training samples, for test samples
	loose   bool        // the file belongs to no data set, so there are no keys
	apart   bool        // arrays with usual names belong to other samples in the file
	order   []string    // names of the columns of values in the required order; nil for the order of the file
	shape   []int       // required shape of one sample; nil for any
}

// tablePart is one array of a file that has several, before its values are read.
type tablePart struct {
	name string
	dims []int
	kind string // type of its values in NPY's notation: "f4"
	read func(exact bool) (array, error)
}

// opened is a file of samples of which only the header was read.
type opened struct {
	parts    []tablePart
	contents *contents // of the file with these parts, which the caller closes
	csv      *csvFile  // the columns of a .csv file, in place of parts
}

func (o opened) close() {
	if o.contents != nil {
		_ = o.contents.Close() // nothing was written
	}
}

// Usual names of arrays and columns that are not samples.
var (
	labelNames = []string{"labels", "label", "class"}
	nameNames  = []string{"names", "name", ""}
	classNames = []string{"classes"}
)

// openTable opens a file of several arrays, or of columns. ok is false for a file of another format.
func openTable(ctx context.Context, path string) (o opened, file File, ok bool, err error) {
	start, err := head(path, formatHead)
	if err != nil {
		return o, file, true, err
	}
	f := detected(start, path)
	if f == nil || f.open == nil {
		return o, file, false, nil
	}
	o, file, err = f.open(ctx, path)
	return o, file, true, err
}

// readTable reads a file of samples in any format: .npy, IDX, .npz, .safetensors, .csv.
func readTable(ctx context.Context, path string, r reading) (t table, file File, err error) {
	o, file, ok, err := openTable(ctx, path)
	defer o.close()
	switch {
	case err != nil:
		return t, file, err
	case !ok:
		t.values, file, err = readArray(ctx, path, r.layout.Scale.Fitted())
	case o.csv != nil:
		t, err = o.csv.table(r)
	default:
		if file, err = o.contents.checksum(ctx); err == nil {
			t, err = tableOf(o.parts, r)
		}
		err = cmp.Or(err, o.contents.unchanged())
	}
	if err == nil {
		err = t.complete(r.shape)
	}
	return t, file, err
}

// complete turns a single vector into a table of one row, and checks lengths.
func (t *table) complete(shape []int) error {
	if d := t.values.dims; len(d) == 1 && len(shape) == 1 && d[0] == shape[0] {
		t.values.dims = []int{1, d[0]}
	}
	if len(t.values.dims) == 0 {
		return errors.New("holds a single number, want samples")
	}
	n := t.values.dims[0]
	if got := len(t.names); got > 0 && got != n {
		return fmt.Errorf("%d names for %d samples", got, n)
	}
	if got := max(len(t.labels), len(t.texts)); got > 0 && got != n {
		return fmt.Errorf("%d labels for %d samples", got, n)
	}
	return nil
}

// tableOf reads the requested arrays of a file.
func tableOf(parts []tablePart, r reading) (t table, err error) {
	samples, err := samplesOf(parts, r)
	if err != nil {
		return t, err
	}
	if t.values, err = samples.read(r.layout.Scale.Fitted()); err != nil {
		return t, err
	}
	if err := t.readLabels(parts, samples, r); err != nil {
		return t, err
	}
	if err := t.readColumns(parts, r); err != nil || r.apart {
		return t, err
	}
	t.names, err = textsOf(parts, samples, nameNames)
	return t, err
}

// readLabels reads the labels of samples and, if the labels are numbers, the names of their classes.
func (t *table) readLabels(parts []tablePart, samples *tablePart, r reading) error {
	usual := labelNames
	if r.apart {
		usual = nil
	}
	labels, err := namedPart(parts, r.labels, usual)
	if err != nil {
		return err
	}
	if labels != nil && labels != samples {
		a, err := labels.read(false)
		if err != nil {
			return err
		}
		if t.texts = a.texts; t.texts == nil {
			if t.labels, err = a.labels(); err != nil {
				return fmt.Errorf("%s: %w", labels.name, err)
			}
		}
	}
	t.classes, err = textsOf(parts, samples, classNames)
	return err
}

// readColumns reads the requested further columns.
func (t *table) readColumns(parts []tablePart, r reading) error {
	for _, name := range r.need {
		p, err := namedPart(parts, r.held.one(name), nil)
		if err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
		if p == nil { // the set has no such column
			continue
		}
		a, err := p.read(false)
		if err != nil {
			return err
		}
		v, err := a.values(name, t.values.dims[0], r.layout.Missing != "")
		if err != nil {
			return err
		}
		t.further = append(t.further, v)
	}
	return nil
}

// columnsOf returns descriptions of the further columns of a file without reading their values. If the file is unreadable,
// they have only names.
func (t *Tables) columnsOf(r reading) (list []Column) {
	o, _, ok, err := openTable(context.Background(), t.path())
	defer o.close()
	for _, name := range r.held.further() {
		c := Column{Name: name}
		switch {
		case err != nil || !ok:
		case o.csv != nil:
			c, _ = o.csv.describeColumn(name, r)
		default:
			if p, _ := namedPart(o.parts, r.held.one(name), nil); p != nil && len(p.dims) > 0 {
				c.Type, c.Shape = typeOf(p.kind), p.dims[1:]
				c.Missing = c.Type == Float32 && r.layout.Missing != ""
			}
		}
		list = append(list, c)
	}
	return list
}

// DescribeColumns implements [Columned] from the training samples.
func (s *CSV) DescribeColumns(Dirs) []Column { return s.columnsOf(s.reading()) }

// DescribeColumns implements [Columned] from the headers of the arrays.
func (s *NPZ) DescribeColumns(Dirs) []Column { return s.columnsOf(s.reading()) }

// DescribeColumns implements [Columned] from the header of the file.
func (s *Safetensors) DescribeColumns(Dirs) []Column { return s.columnsOf(s.reading()) }

// textsOf returns the texts of the first array with a usual name; nil if there is none, or if it contains numbers.
func textsOf(parts []tablePart, samples *tablePart, usual []string) ([]string, error) {
	p, _ := namedPart(parts, "", usual) // no name that must be there
	if p == nil || p == samples {
		return nil, nil
	}
	a, err := p.read(false)
	return a.texts, err
}

// namedPart returns the array with the given name or, if name is "", the first with a usual name; nil if there is none.
func namedPart(parts []tablePart, name string, usual []string) (*tablePart, error) {
	if name != "" {
		usual = []string{name}
	}
	for _, n := range usual {
		if i := slices.IndexFunc(parts, func(p tablePart) bool { return p.name == n }); i >= 0 {
			return &parts[i], nil
		}
	}
	if name != "" {
		return nil, fmt.Errorf("has no array %q, want %s", name, partList(parts))
	}
	return nil, nil
}

// samplesOf selects the array of the samples: the named one, or else the only array of two to four axes that is not labels, names or
// classes, of bytes or floats if there is one, else of integers; arrays of the required size have precedence.
func samplesOf(parts []tablePart, r reading) (*tablePart, error) {
	if r.tensor != "" {
		return namedPart(parts, r.tensor, nil)
	}
	all, fitting := candidates(parts, r, func(kind string) bool { t := typeOf(kind); return t == Bytes || t == Float32 })
	if len(all)+len(fitting) == 0 { // integers and booleans may be labels
		all, fitting = candidates(parts, r, func(kind string) bool { return typeOf(kind) == Whole })
	}
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		return nil, fmt.Errorf("has no array of samples, (samples, values) of numbers: got %s", partList(parts))
	}
	if r.loose {
		return nil, fmt.Errorf("has several arrays (%s): save that of the samples alone", partList(parts))
	}
	return nil, fmt.Errorf("has several arrays (%s): name that of the samples with the key tensor", partList(parts))
}

// candidates lists the arrays of two to four axes that may be samples, and those of the required size.
func candidates(parts []tablePart, r reading, accepts func(kind string) bool) (all, fitting []*tablePart) {
	for i := range parts {
		p := &parts[i]
		other := slices.Contains(slices.Concat(labelNames, nameNames, classNames, []string{r.labels}, r.held.arrays()), p.name)
		if other || !accepts(p.kind) {
			continue
		}
		if len(p.dims) >= 2 && len(p.dims) <= 4 {
			all = append(all, p)
		}
		if sameSize(p.dims, r.shape) {
			fitting = append(fitting, p)
		}
	}
	return all, fitting
}

// sameSize reports whether an array with these axes contains samples of the given shape, or a single such vector.
func sameSize(dims, shape []int) bool {
	if shape == nil || len(dims) == 0 {
		return false
	}
	want, err := product(shape)
	if len(dims) > 1 {
		dims = dims[1:]
	}
	got, wrong := product(dims)
	return err == nil && wrong == nil && got == want
}

// partList lists arrays with their axes.
func partList(parts []tablePart) string {
	const most = 12
	var texts []string
	for _, p := range parts {
		if len(texts) == most {
			texts = append(texts, "...")
			break
		}
		texts = append(texts, fmt.Sprintf("%.60q (%s)", p.name, strings.ReplaceAll(by(p.dims), "x", ",")))
	}
	return strings.Join(texts, ", ")
}

// dims returns the axes of the samples without reading them; for a .csv file the number of rows is unknown and set to 1.
func (o opened) dims(r reading) ([]int, error) {
	if o.csv != nil {
		columns, err := o.csv.columns(r)
		return []int{1, len(columns.values)}, err
	}
	p, err := samplesOf(o.parts, r)
	if err != nil {
		return nil, err
	}
	return p.dims, nil
}
