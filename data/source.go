// Package data reads and generates sets of images and vectors: generated sets (swimmer, bars), downloaded sets (fashion-mnist,
// mnist) and user files (images in folders, idx, npy, npz, safetensors, csv).
//
// A [Source] is a declared data set. [Load] reads it as a [Set] of [Images], which [Set.Split] divides into fitted,
// validation and test images. Pixels are stored as bytes and scaled per batch. [ReadRows] and [WriteRows] read and write
// files that belong to no data set.
//
// A new data set is one new file with one call of Registry.Register.
package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
	declared "tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/tokens"
)

// Source is a declared data set; the tagged fields of its struct are keys of the dataset table.
type Source interface {
	// Shape returns the shape of one sample, (height, width) or (height, width, channels) for an image, (values) for a
	// vector, without reading values. ok is false if the shape depends on missing files.
	Shape(dirs Dirs) (shape []int, ok bool)
	// Load reads or generates the images of the splits in need. It returns an *Error for a missing file, a wrong checksum and
	// a wrong size. A source without a test split returns its images as Train, regardless of need.
	Load(ctx context.Context, dirs Dirs, need Need) (*Set, error)
}

// Tester is implemented by sources that have a test split, possibly depending on their keys.
type Tester interface {
	HasTest() bool
}

// Outer is implemented by sources that read the samples of another data set.
type Outer interface {
	// WithInner returns the source with other(inner) in place of a declared inner data set.
	WithInner(other func(inner Source) Source) Source
}

// Inner is the declaration of another data set whose samples a source reads.
type Inner struct {
	Name   string `toml:"name" doc:"the data set"`
	Source Source `part:"name,short"`
}

// Namer is implemented by sources whose values have names.
type Namer interface {
	// ValueNames reads the names of the values of a sample, such as column names, in order. It also returns the file that
	// contains them, with its checksum: a run must not use names from a file that has changed since the training. There are no names
	// if the list is nil.
	ValueNames(ctx context.Context) ([]string, File, error)
}

// Describer is implemented by sources that select columns of a file.
type Describer interface {
	// Describe returns a description of the use of the columns: `12 values (m0, m1, m2, ..., m11), labels species`; "" if there is none.
	Describe(ctx context.Context) (string, error)
}

// Inspector is implemented by sources that can find errors in their files without reading them completely.
type Inspector interface {
	// Inspects reports whether they can with their keys.
	Inspects() bool
	// Inspect returns warnings, such as skipped files, and the error that Load would return, if it is detectable without
	// reading values. A missing file is an [*Error] with the problem [NotFound].
	Inspect(ctx context.Context) (notes []string, err error)
}

// Paths lists the texts of a declaration that may name files or folders, also of the data set that it reads the samples of.
func Paths(s Source) (paths []string) {
	for _, f := range declared.Fields(s) {
		switch v := f.Value.Interface().(type) {
		case string:
			paths = append(paths, v)
		case ColumnNames:
			for _, list := range v {
				paths = append(paths, list...)
			}
		}
	}
	if o, ok := s.(Outer); ok {
		o.WithInner(func(inner Source) Source {
			paths = append(paths, Paths(inner)...)
			return inner
		})
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// HasTest reports whether s, with its current keys, has a test split.
func HasTest(s Source) bool {
	t, ok := s.(Tester)
	return ok && t.HasTest()
}

// Registry contains every data set.
var Registry = part.New[Source]("dataset")

// Load calls s.Load and checks the result. It returns an [*Error] for a source that returns no set, images with another shape
// than the set's, or values that are NaN or infinite.
func Load(ctx context.Context, s Source, dirs Dirs, need Need) (*Set, error) {
	set, err := s.Load(ctx, dirs, need)
	if err != nil {
		return nil, err
	}
	if err := set.Check(); err != nil {
		return nil, err
	}
	if IsOwn(s) {
		for _, note := range []string{set.Train.allEqual(), set.mixed(), set.known()} {
			if note != "" {
				set.Notes = append(set.Notes, set.Name+": "+note)
			}
		}
	}
	return set, set.lacks(need.Columns)
}

// lacks returns an [*Error] if the set lacks one of the named columns. Additional columns are allowed.
func (s *Set) lacks(names []string) error {
	for _, images := range []*Images{s.Train, s.Test} {
		for _, name := range names {
			if images != nil && images.column(name) == nil {
				return &Error{Dataset: s.Name, Problem: fmt.Sprintf("has no column %q, only %s", name, columnNames(images.Columns()))}
			}
		}
	}
	return nil
}

// columnNames lists the columns of a set for a message.
func columnNames(further []Column) string {
	names := []string{strconv.Quote(ImagesColumn), strconv.Quote(LabelsColumn)}
	for _, c := range further {
		names = append(names, strconv.Quote(c.Name))
	}
	return strings.Join(names, ", ")
}

// Columns returns descriptions of the loaded columns other than images and labels.
func (s *Set) Columns() []Column {
	for _, images := range []*Images{s.Train, s.Test} {
		if images != nil {
			return images.Columns()
		}
	}
	return nil
}

// Need selects the data to load, so that an evaluation on 10,000 images does not read the other 60,000, and unused columns are
// not loaded.
type Need struct {
	Train, Test bool
	Columns     []string // names of columns other than images and labels
}

// Equal reports whether two needs are the same.
func (n Need) Equal(other Need) bool {
	return n.Train == other.Train && n.Test == other.Test && slices.Equal(n.Columns, other.Columns)
}

// WithColumns returns the need with these columns in addition to images and labels.
func (n Need) WithColumns(names []string) Need {
	n.Columns = names
	return n
}

// Both is the need for all images of a set.
var Both = Need{Train: true, Test: true}

// Set is a loaded data set.
type Set struct {
	Name    string
	Shape   []int             // shape of one sample: (height, width), (height, width, channels), or (values) for a vector
	Train   *Images           // training images; nil if not needed
	Test    *Images           // test images; nil if not needed, or if the set has no test split
	HasTest bool              // the set has a test split, loaded or not
	Parts   [][]float32       // true parts, one image each; nil if unknown
	Kinds   []string          // kind of each true part, such as "limb"
	Classes []string          // names of the classes; nil if unknown
	Tokens  *tokens.Tokenizer // fitted vocabulary of texts, which the run keeps; nil for other samples
	Files   []File            // files that were read, which the run records
	Scale   Scale             // declared scaling by statistics of the fitted samples: see [Set.Split]
	Notes   []string          // warnings, such as skipped files and doubtful columns
	Kept    []string          // which rows of a file are samples, and where they are if not in memory

	doubt *Error // warning about the values; see [Set.Doubt]
}

// Doubt returns an [*Error] for values that are probably unintended: floats up to 255 without a scale, or axes in another
// order. Its hint describes what to declare in either case. A new run rejects such values; a resumed run accepts them.
func (s *Set) Doubt() error {
	if s == nil || s.doubt == nil {
		return nil
	}
	return s.doubt
}

// File records a file that was read.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // checksum of the uncompressed bytes; for a folder, of the pixels of its images
	Note   string `json:"-"`      // what may have changed the checksum, and how to undo it; "" if the source does not know
}

// Check returns an [*Error] for a set that a source must not return: nil, images of another shape than the set's, values that
// are NaN or infinite.
func (s *Set) Check() error {
	if err := s.check(); err != nil {
		return err
	}
	for _, images := range []*Images{s.Train, s.Test} {
		if place, v := images.notFinite(); place != "" {
			return &Error{Dataset: s.Name, Problem: fmt.Sprintf("%s: got %v, want a finite number%s", place, v, hintOf(v))}
		}
		if err := images.checkColumns(); err != nil {
			return &Error{Dataset: s.Name, Problem: err.Error()}
		}
	}
	return nil
}

// check is like Check, but does not read values.
func (s *Set) check() error {
	if s == nil {
		return &Error{Problem: "the source of the data set returned no set and no error"}
	}
	for _, images := range []*Images{s.Train, s.Test} {
		if images != nil && images.n > 0 && !slices.Equal(images.Shape, s.Shape) {
			return &Error{Dataset: s.Name, Problem: fmt.Sprintf("the source returned images of shape %v in a set of shape %v", images.Shape, s.Shape)}
		}
	}
	return nil
}

// Evaluation returns the images on which a model is evaluated: the test images, or all images if the set has no test split.
func (s *Set) Evaluation() (*Images, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	switch {
	case s.Test != nil:
		return s.Test, nil
	case s.HasTest:
		return nil, errors.New("data: the test images of " + s.Name + " were not loaded: ask for Need{Test: true}")
	case s.Train == nil:
		return nil, errors.New("data: " + s.Name + " holds no images")
	}
	return s.Train, nil
}

// Error reports data that are missing, fail their checksum, or have the wrong size, format or values. It contains the
// location, the problem and a hint.
type Error struct {
	Dataset string // name of the data set, "" for a file that belongs to none
	Path    string // file or folder
	Problem string // description of the problem
	Hint    string // remedy; "" if unknown
	Err     error  // cause; nil if there is none
}

// NotFound is the problem of a missing file or folder.
const NotFound = "not found"

// Error implements error: `fashion-mnist: PATH: PROBLEM: CAUSE; HINT`.
func (e *Error) Error() string {
	parts := lists.Only([]string{e.Dataset, inLine(e.Path), e.Problem}, func(s string) bool { return s != "" })
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// inLine returns a name for a one-line message: quoted if it contains a line feed.
func inLine(name string) string {
	if strings.Contains(name, "\n") {
		return strconv.Quote(name)
	}
	return name
}
