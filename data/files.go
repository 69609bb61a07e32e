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
	"tessera/internal/lists"
)

// Files is the declaration of a data set in files of the user. One struct serves all formats; a format has the keys that its sort of
// files needs. Paths are relative to the current directory.
//
// Samples are vectors, (n, values), or images, (n, height, width) or (n, height, width, channels). uint8 values become value/255,
// others are used unchanged. The format of a file is detected from its content.
type Files struct {
	Kind string // name of the data set in [Registry], such as "csv"

	File       string `toml:"file" required:"true" instead:"images" optional:"true" doc:"file, or folder, of the training samples; a name with * or ? stands for all files of arrays or tables that it matches, in the order of their names"`
	Images     string `toml:"images" optional:"true" of:"cells arrays array folder" doc:"another spelling of file"`
	Labels     string `toml:"labels" of:"cells arrays array" doc:"name of the labels in it, whole numbers or names of classes; by default labels, label or class, if there is one. For npy and idx, their file"`
	Test       string `toml:"test" of:"cells arrays array folder" doc:"file, or folder, of the test samples; without it the set has no test split"`
	TestImages string `toml:"test_images" optional:"true" of:"cells arrays array folder" doc:"another spelling of test"`

	Height  int     `toml:"height" of:"cells arrays array" want:"> 0" doc:"image height in pixels, if a row of values is an image; without height and width it is a vector"`
	Width   int     `toml:"width" of:"cells arrays array" want:"> 0" doc:"image width in pixels, if a row of values is an image"`
	Axes    string  `toml:"axes" of:"arrays array" doc:"axes of arrays of four axes: samples, height, width, channels, or channels before height and width; by default nhwc, unless the sizes look like nchw, which is an error"`
	Scale   Scale   `toml:"scale" single:"true" bare:"factor.by" doc:"how values are scaled: a scaling (tessera list scalings), a number as factor, or several scalings in order; statistics are those of the fitted samples, stored with the model; by default they are not scaled"`
	Memory  Budget  `toml:"memory" of:"cells arrays array" optional:"true" doc:"budget for the samples, such as \"2GB\": samples that do not fit are read from their files, .npy or .safetensors, while a model is trained; those of a table from a temporary file beside it. By default all samples are in memory"`
	Names   string  `toml:"names" of:"cells" doc:"column of the names of samples; by default name, or a column without a name, if there is one"`
	Where   Where   `toml:"where" of:"cells" optional:"true" doc:"condition on a column, such as \"tissue = lung\", or a list of conditions: rows that do not meet all of them are left out, also of the test samples. Signs are =, !=, <, <=, >, >= and in, with values separated by commas; numbers are compared as numbers, and an empty cell is only unequal. The column is none of the values, unless the key columns names it"`
	Missing Missing `toml:"missing" of:"cells arrays array" optional:"true" doc:"\"nan\": NaN, and in texts empty cells and NA, are missing entries, which losses and metrics leave out; by default they are an error. A list of texts, such as [\"unknown\"]: these are missing as well"`
	Decimal string  `toml:"decimal" of:"cells" oneof:". ," optional:"true" doc:"sign before the fraction of a number: by default the point; the other one then stands between thousands"`
	Dates   string  `toml:"dates" of:"cells" oneof:"month/day day/month" optional:"true" doc:"order of dates such as 03/14/2025, which are an error without it"`
	Units   Units   `toml:"units" of:"cells" optional:"true" doc:"units of columns, such as { weight = \"kg\" }, which are left out of the cells: 12 kg is 12"`

	Tensor     string `toml:"tensor" of:"arrays" doc:"name of the array of samples; by default the only one of two to four axes"`
	TestTensor string `toml:"test_tensor" of:"arrays" doc:"name of the array of test samples; by default that of the training samples"`
	TestLabels string `toml:"test_labels" of:"arrays array" doc:"name of their labels; by default that of the training labels, but none for another array of the same file. For npy and idx, their file"`

	Columns     ColumnNames `toml:"columns" of:"cells arrays array" doc:"further columns by name, such as { weight = \"w\", target = [\"age\", \"dose\"] }: names or globs of columns of a table, names of arrays, or for npy and idx files with one entry per sample; images = names or globs, or the list alone, are the columns of the values, by default all that are nothing else"`
	TestColumns ColumnNames `toml:"test_columns" of:"arrays array" doc:"those of the test samples; by default arrays of the same names"`

	Channels   int    `toml:"channels" of:"folder" optional:"true" doc:"1 reads the images in grey, the default, 3 in red, green and blue"`
	Size       Size   `toml:"size" of:"folder" doc:"size to which all images are brought: a number of pixels, or [height, width]; 0 leaves the images unchanged, and all files must have one size"`
	Resize     string `toml:"resize" of:"folder" oneof:"crop pad stretch" doc:"how images are brought to size: the middle is cut out (crop), black is added (pad), or proportions change (stretch)"`
	Background string `toml:"background" of:"folder" oneof:"white black" optional:"true" doc:"colour behind transparent pixels: by default white"`

	Row       string `toml:"row" of:"entries" doc:"column of a .csv file with the names of rows; by default the first"`
	Column    string `toml:"column" of:"entries" doc:"column with the names of columns; by default the second"`
	Value     string `toml:"value" of:"entries" doc:"column of the values; by default the third"`
	RowNames  string `toml:"row_names" of:"entries" doc:"file with the names of the rows of a .mtx or .npz file, one in a line, of the training samples; of lines with tabs, as in features.tsv of 10x, the second cell, and where this one repeats the first one in brackets behind it. By default their numbers"`
	ColNames  string `toml:"column_names" of:"entries" doc:"file with the names of the columns, in the same way"`
	Transpose bool   `toml:"transpose" of:"entries" optional:"true" doc:"samples are the columns of a .mtx or .npz file, as in files of 10x, whose rows are genes: rows and columns are exchanged before all else"`

	Empty  string `toml:"empty" of:"entries" oneof:"refuse drop" doc:"rows and columns without an entry: refuse, an error, or drop, which omits them; the names of the others are their numbers"`
	Absent string `toml:"absent" of:"entries" oneof:"missing zero" doc:"entries that the file does not have: missing, as in ratings, or zero, as in counts; with zero, rows and columns without an entry are not refused"`
}

// The sorts of files, by which formats have keys.
const (
	CellFiles   = "cells"   // a table: rows of cells, whose columns have names
	ArrayFiles  = "arrays"  // several arrays in a file
	SingleFiles = "array"   // one array in a file, labels and columns in others
	FolderFiles = "folder"  // folders of image files
	EntryFiles  = "entries" // entries of a sparse matrix
)

// PartName returns the name of the data set in a declaration.
func (f *Files) PartName() string { return f.Kind }

// KeySort returns the sort of files, by which tags of select the keys.
func (f *Files) KeySort() string {
	if of := find(func(o *Format) bool { return o.Dataset == f.Kind }); of != nil {
		return of.Sort
	}
	return ""
}

// is reports whether the files are of a sort.
func (f *Files) is(sort string) bool { return f.KeySort() == sort }

// SparseOf returns the declaration of a sparse matrix, nil if a source is none.
func SparseOf(s Source) *Files {
	if f, ok := s.(*Files); ok && f.is(EntryFiles) {
		return f
	}
	return nil
}

// AbsentIsZero reports whether the entries that a sparse matrix does not have are 0.
func (f *Files) AbsentIsZero() bool { return f.is(EntryFiles) && f.Absent == absentZero }

// OneSpelling replaces the second spelling of keys that have two spellings by the first one, so that equal declarations have
// equal text and are one trial.
func OneSpelling(s Source) {
	if f, ok := s.(*Files); ok && f != nil {
		*f = f.spelt()
	}
}

func (f *Files) spelt() Files {
	one := *f
	if one.File == "" {
		one.File, one.Images = one.Images, ""
	}
	if one.Test == "" {
		one.Test, one.TestImages = one.TestImages, ""
	}
	return one
}

// HasTest implements [Tester]: test samples may be an array in the file of the training samples.
func (f *Files) HasTest() bool { return cmp.Or(f.Test, f.TestImages, f.TestTensor) != "" }

func (*Files) Origin() Origin { return OwnFiles }

func (f *Files) FitsScale() bool { return f.Scale.Fitted() }

func (f *Files) Unlabelled() bool { return f.is(EntryFiles) || f.is(SingleFiles) && f.Labels == "" }

func (f *Files) hasMissing() bool {
	return f.Missing != nil || f.is(EntryFiles) && !f.AbsentIsZero()
}

// Check returns an error for a key that requires another, missing key, or contradicts it.
func (f *Files) Check() error {
	var list []error
	wrong := func(is bool, key, format string, args ...any) {
		if is {
			list = append(list, part.KeyErrorf(key, format, args...))
		}
	}
	wrong(f.File != "" && f.Images != "", "images", "is another spelling of file, which is given too: leave out one of them")
	wrong(f.Test != "" && f.TestImages != "", "test_images", "is another spelling of test, which is given too: leave out one of them")
	wrong(f.Height > 0 && f.Width == 0, "height", "is given without width")
	wrong(f.Width > 0 && f.Height == 0, "width", "is given without height")
	wrong(!slices.Contains([]string{"", channelsLast, channelsFirst}, f.Axes), "axes", "got %q, want %q or %q", f.Axes, channelsLast, channelsFirst)
	wrong(f.Memory != 0 && f.Memory < LeastBudget, "memory", "got %s, want at least %s", f.Memory, Budget(LeastBudget))
	wrong(f.TestLabels != "" && !f.HasTest(), "test_labels", "is given without test samples")
	wrong(len(f.TestColumns) > 0 && !f.HasTest(), "test_columns", "is given without test samples")
	wrong(f.Labels != "" && f.Columns[LabelsColumn] != nil, "columns", "labels are named twice: leave out the key labels or the column")
	wrong(len(f.Columns[LabelsColumn]) > 1, "columns", "labels: got %d names, want one", len(f.Columns[LabelsColumn]))
	wrong(f.Tensor != "" && f.Columns[ImagesColumn] != nil, "columns", "images are named twice: leave out the key tensor or the column")
	wrong(f.is(FolderFiles) && !slices.Contains([]int{0, 1, 3}, f.Channels), "channels", "got %d, want 1 or 3", f.Channels)
	wrong(f.Resize != "" && !slices.Contains(resizes, f.Resize), "resize", "got %q, want %s", f.Resize, strings.Join(resizes, ", "))
	wrong(f.Row+f.Column != "" && (f.Row == f.Column || f.Row == f.Value || f.Column == f.Value), "column",
		"row, column and value are three columns of the file: got %q, %q and %q", f.Row, f.Column, f.Value)
	for _, name := range slices.Sorted(maps.Keys(f.TestColumns)) {
		wrong(f.Columns[name] == nil, "test_columns", "%s: is no column of the training samples", name)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Columns)) {
		wrong(f.is(SingleFiles) && (name == ImagesColumn || name == LabelsColumn), "columns", "%s: the file has the key %s", name, name)
		wrong(f.is(SingleFiles) && f.HasTest() && f.TestColumns[name] == nil, "test_columns", "the test samples need a file of the column %q too", name)
	}
	if !f.is(CellFiles) {
		what := map[bool]string{true: "file", false: "array"}[f.is(SingleFiles)]
		list = append(list, f.Columns.checkOne("columns", what), f.TestColumns.checkOne("test_columns", what))
	}
	wrong(len(f.Scale) > 0 && f.is(EntryFiles) && f.Absent != absentZero, "scale", "entries that the file does not have are missing: scalings want absent = %q", absentZero)
	return errors.Join(append(list, f.Scale.check(), checkMissing(f.Columns))...)
}

// reading returns the keys for the training samples.
func (f *Files) reading() reading {
	r := reading{Files: f.spelt()}
	if !f.is(SingleFiles) {
		r.Tensor, r.Labels = cmp.Or(r.Tensor, r.Columns.one(ImagesColumn)), cmp.Or(r.Labels, r.Columns.one(LabelsColumn))
	}
	return r
}

// testing returns the keys for the test samples. If they are another array in the file of the training samples, the labels and names
// in that file do not belong to them, unless the key test_labels names their labels.
func (f *Files) testing() reading {
	train := f.reading()
	r := train
	r.File, r.Columns = cmp.Or(r.Test, r.File), maps.Clone(r.Columns)
	maps.Copy(r.Columns, r.TestColumns)
	if f.is(SingleFiles) {
		r.Labels = r.TestLabels
		return r
	}
	r.Tensor = cmp.Or(r.TestTensor, r.TestColumns.one(ImagesColumn), r.Tensor)
	inOne := filepath.Clean(r.File) == filepath.Clean(train.File)
	if r.apart = inOne && train.Tensor != "" && r.Tensor != train.Tensor; r.apart || r.TestLabels != "" || r.TestColumns[LabelsColumn] != nil {
		r.Labels = cmp.Or(r.TestLabels, r.TestColumns.one(LabelsColumn))
	}
	return r
}

// Shape implements [Source] from the headers of the files. The number of columns of a sparse matrix as text is known only after all
// lines are read.
func (f *Files) Shape(Dirs) ([]int, bool) {
	r := f.reading()
	o, err := r.open(context.Background())
	defer o.close()
	if err != nil {
		return nil, false
	}
	dims, err := o.dims(r)
	if err != nil || len(dims) < 2 {
		return nil, false
	}
	shape, err := f.sampleShape(dims)
	return shape, err == nil
}

// DescribeColumns implements [Columned]. If a file is unreadable, its columns have only names.
func (f *Files) DescribeColumns(Dirs) (list []Column) {
	r, ctx := f.reading(), context.Background()
	names := r.Columns.further()
	if len(names) == 0 {
		return nil
	}
	o, err := r.open(ctx)
	defer o.close()
	for _, name := range names {
		c := Column{Name: name}
		switch {
		case err != nil:
		case o.csv != nil:
			c = o.csv.describeColumn(name, r)
		default:
			if p, _ := o.part(ctx, r.Columns.one(name), nil); p != nil && len(p.dims) > 0 {
				c.Type, c.Shape = typeOf(p.kind), p.dims[1:]
				c.Missing = c.Type == Float32 && r.Missing != nil
			}
		}
		list = append(list, c)
	}
	return list
}

// Classes implements [Classed] from the folders of classes, the files of labels, or else the labels of all samples.
func (f *Files) Classes(dirs Dirs) (n int, ok bool) {
	switch {
	case f.is(FolderFiles):
		n = len(f.reading().folderClasses())
	case f.is(SingleFiles):
		for _, path := range []string{f.Labels, f.TestLabels} {
			if path == "" {
				continue
			}
			values, err := readArray(context.Background(), path, false)
			if err != nil {
				return 0, false
			}
			labels, err := values.labels()
			if err != nil {
				return 0, false
			}
			n = max(n, classesOf(labels))
		}
	case !f.is(EntryFiles):
		set, err := f.Load(context.Background(), dirs, Need{Train: true, Test: f.HasTest()})
		if err != nil {
			return 0, false
		}
		return set.ClassCount()
	}
	return n, n > 0
}

// ValueNames implements [Namer] from the first line of the file of the training samples of a table. It reads the complete file for
// the checksum.
func (f *Files) ValueNames(ctx context.Context) (names []string, file File, err error) {
	if !f.is(CellFiles) {
		return nil, file, nil
	}
	r := f.reading()
	err = r.cells(ctx, func(o Opened, c csvColumns) error {
		names = o.csv.names(c.values)
		file, err = o.checksum(ctx)
		return err
	})
	return names, file, err
}

// Describe implements [Describer]: the use of the columns of a table, or what is in folders.
func (f *Files) Describe(ctx context.Context) (text string, err error) {
	switch r := f.reading(); {
	case f.is(CellFiles):
		err = r.cells(ctx, func(o Opened, c csvColumns) error {
			text = o.csv.describe(c)
			return nil
		})
	case f.is(FolderFiles):
		text, err = f.describeFolders()
	case f.Memory > 0:
		text, err = r.describeMemory(ctx)
	case f.is(EntryFiles):
		if header := headerOf(r.File); len(header) >= 3 {
			text = inLine(fmt.Sprintf("rows %s, columns %s, values %s", cmp.Or(r.Row, header[0]), cmp.Or(r.Column, header[1]), cmp.Or(r.Value, header[2])))
		}
	}
	return text, err
}

func (r reading) openTable(ctx context.Context) (Opened, error) {
	o, err := r.open(ctx)
	if err == nil && o.csv == nil {
		err = errors.New("is no file of columns")
	}
	return o, FileError(r.Kind, r.File, err)
}

// cells opens a table and passes it to do, with the use of its columns.
func (r reading) cells(ctx context.Context, do func(Opened, csvColumns) error) error {
	o, err := r.openTable(ctx)
	defer o.close()
	if err != nil {
		return err
	}
	c, err := o.csv.columns(r)
	if err == nil {
		err = do(o, c)
	}
	return FileError(r.Kind, r.File, err)
}

// Load implements [Source]. The names of classes, and the order of named columns, are those of the training samples, which are
// therefore read for the test samples too, unless they are arrays or folders.
func (f *Files) Load(ctx context.Context, _ Dirs, need Need) (*Set, error) {
	set := &Set{Name: f.Kind, HasTest: f.HasTest(), Scale: f.Scale}
	train, test := f.reading(), f.testing()
	train.need, test.need = need.Columns, need.Columns
	alone := f.is(SingleFiles) || f.is(FolderFiles)
	var columns []string
	var err error
	if need.Train || !set.HasTest || !alone {
		if set.Train, columns, err = train.split(ctx, set, true); err != nil {
			return nil, err
		}
		set.Shape = set.Train.Shape
	}
	if !need.Test || !set.HasTest {
		return set, nil
	}
	if set.Train == nil && f.is(FolderFiles) {
		set.Classes = train.folderClasses()
	}
	test.order, test.known = columns, set.Train.Columns()
	if set.Test, _, err = test.split(ctx, set, false); err != nil {
		return nil, err
	}
	for _, c := range set.Train.Columns() {
		if t, ok := set.Test.Column(c.Name); ok && (t.Type != c.Type || !slices.Equal(t.Shape, c.Shape)) {
			return nil, &Error{Dataset: f.Kind, Path: cmp.Or(f.TestColumns.one(c.Name), test.File), Problem: fmt.Sprintf("column %q: the values of the test samples have the type %s and the shape %v, want %s and %v as the training samples",
				c.Name, t.Type, t.Shape, c.Type, c.Shape)}
		}
	}
	err = sameShape(set, test.File)
	if !need.Train && !alone {
		set.Train = nil
	}
	return set, err
}

// sameShape returns an error if the test images, from path, have another shape than the training images. Without training
// images it sets the shape of the set.
func sameShape(set *Set, path string) error {
	if set.Train == nil {
		set.Shape = set.Test.Shape
		return nil
	}
	if by(set.Test.Shape) != by(set.Shape) {
		return &Error{Dataset: set.Name, Path: path, Problem: fmt.Sprintf("the test images differ from the training images (got %s, want %s)",
			by(set.Test.Shape), by(set.Shape))}
	}
	return nil
}

// split reads the samples of one split with their labels and columns and, if any, the names of their values. first says that they are
// the training samples, whose classes are those of the set.
func (r reading) split(ctx context.Context, set *Set, first bool) (*Images, []string, error) {
	r.classes = set.Classes
	t, err := r.table(ctx)
	if err != nil {
		return nil, nil, FileError(set.Name, r.File, err)
	}
	set.Files = lists.Add(set.Files, t.files...)
	set.Notes = append(set.Notes, t.warnings...)
	set.Kept = append(set.Kept, t.kept...)
	if t.sparse != nil {
		return t.sparse, nil, nil
	}
	images, doubt, err := r.interpret(t.values)
	if err != nil {
		return nil, nil, FileError(set.Name, r.File, err)
	}
	if doubt != nil && set.doubt == nil {
		set.doubt = &Error{Dataset: set.Name, Path: r.File, Problem: doubt.Problem, Hint: doubt.Hint}
	}
	remedy := remedyScale
	if set.Scale.subtracts() {
		remedy = ""
	}
	set.Notes = append(set.Notes, t.values.spans.notes(r.File, t.columns, remedy)...)
	for _, v := range t.further {
		names := v.names()
		set.Notes = append(set.Notes, v.spans.notes(r.File, names, remedySaved)...)
		if first && len(v.Names) > 0 {
			set.Notes = append(set.Notes, alikeNote(r.File, fmt.Sprintf("column %.60q", names[0]), v.Names)...)
		}
	}
	classes := t.classes
	if !r.is(SingleFiles) { // whose labels are always numbers
		if classes, err = t.resolve(set.Classes, first); err != nil {
			return nil, nil, FileError(set.Name, r.File, err)
		}
	}
	if first {
		set.Notes = append(set.Notes, t.notes(r.File, r, set.Scale)...)
		set.Notes = append(set.Notes, alikeNote(r.File, "labels", classes)...)
		set.Notes = append(set.Notes, t.labelNotes(r.File, cmp.Or(len(classes), classesOf(t.labels)))...)
	}
	if first || len(set.Classes) == 0 && r.is(FolderFiles) {
		set.Classes = classes
	}
	set.Notes = append(set.Notes, t.otherColumns(r.File, r.order)...)
	images.labels, images.columns, images.dates, images.names = t.labels, t.columns, t.dates, t.names
	if t.lines.n > 0 {
		images.lines = &t.lines
	}
	if images, err = images.WithColumns(t.further...); err != nil {
		return nil, nil, FileError(set.Name, r.File, err)
	}
	return images, t.columns, nil
}
