package data

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/volume"
)

// Names of the columns that every set may have. All other columns have other names.
const (
	ImagesColumn = "images"
	LabelsColumn = "labels"
)

// Type is the type of the values of a column in memory. Models always get float32 numbers.
type Type string

// The types.
const (
	Bytes   Type = "bytes"   // 0 to 255, which represent value/255
	Float32 Type = "float32" // used unchanged
	Whole   Type = "whole"   // whole numbers below 2^24, which float32 represents exactly; a negative class is unknown
)

// Plural names values of the type: "bytes", "numbers", "whole numbers".
func (t Type) Plural() string {
	return map[Type]string{Bytes: "bytes", Float32: "numbers", Whole: "whole numbers"}[t]
}

// wholeBound is the smallest whole number whose successor is not a float32.
const wholeBound = 1 << 24

// Column describes one column of a set. A column contains one value for each sample, all of the same shape.
type Column struct {
	Name  string   `json:"name"`
	Shape []int    `json:"shape"`             // shape of the value of one sample; empty for one number
	Type  Type     `json:"type"`              // type of the values; "" if it is unknown without the file
	Names []string `json:"classes,omitempty"` // names of the classes that the whole numbers index, if the file contains them
	In    []string `json:"in,omitempty"`      // names of the numbers of a sample in the file, if they have names there

	Text     string `json:"-"`                 // place and text of the first cell in the file that is no number; "" if all are numbers or truth values
	Drawn    bool   `json:"drawn,omitempty"`   // the values are drawn at random instead of read, see [Draw]
	Between  []int  `json:"-"`                 // smallest and largest value of drawn whole numbers; nil if there is no bound
	AsImages bool   `json:"-"`                 // drawn values of images, which are scaled like the images
	Missing  bool   `json:"missing,omitempty"` // entries may be missing: they are 0, and the column NAME.observed is 0 for them and 1 for other entries
}

// Size returns the number of values for one sample.
func (c Column) Size() int { return volume.Of(c.Shape) }

// Columned is implemented by sources that may have columns other than images and labels.
type Columned interface {
	// DescribeColumns returns descriptions of the columns other than images and labels. It reads only the parts of files that
	// determine the types. If files are missing, a column has a name but no type.
	DescribeColumns(dirs Dirs) []Column
}

// ColumnsOf returns descriptions of the columns of a source other than images and labels.
func ColumnsOf(s Source, dirs Dirs) []Column {
	if c, ok := s.(Columned); ok {
		return c.DescribeColumns(dirs)
	}
	return nil
}

// Values is a column with the values of all rows, row by row. Exactly one of bytes, floats, whole and read is not nil.
type Values struct {
	Column
	bytes  []byte
	floats []float32
	whole  []int32
	read   func(dst []float32, row int) // returns the values of a row that are not stored as such
	n      int                          // number of rows of read
	spans  *spans                       // of floats of a file that may not be exact; nil for others

	between []float32 // smallest and largest of its whole numbers; nil if they are not known
}

// ReadColumn returns a column of n rows whose values a function writes. Any number of goroutines call it.
func ReadColumn(c Column, n int, read func(dst []float32, row int)) *Values {
	return &Values{Column: c, n: n, read: read}
}

// Within returns the column of whole numbers, of which 0 is the smallest and the other one the largest.
func (v *Values) Within(largest int) *Values {
	other := *v
	other.between = []float32{0, float32(largest)}
	return &other
}

// stored returns the column with its values in memory.
func (v *Values) stored() *Values {
	if v.read == nil {
		return v
	}
	size := v.Size()
	all := &Values{Column: v.Column, floats: make([]float32, v.n*size)}
	for i := range v.n {
		v.read(all.floats[i*size:(i+1)*size], i)
	}
	if v.Type == Whole {
		all.whole, all.floats = lists.Map(all.floats, func(x float32) int32 { return int32(x) }), nil
	}
	return all
}

// FloatColumn returns a column of floats. values contains the values of the samples, each of the given shape, one after the
// other. It is not copied.
func FloatColumn(name string, shape []int, values []float32) *Values {
	return &Values{Column: Column{Name: name, Shape: slices.Clone(shape), Type: Float32}, floats: values}
}

// ByteColumn returns a column of bytes, which represent value/255. The slice is not copied.
func ByteColumn(name string, shape []int, values []byte) *Values {
	return &Values{Column: Column{Name: name, Shape: slices.Clone(shape), Type: Bytes}, bytes: values}
}

// WholeColumn returns a column of whole numbers: groups, classes, indices. The slice is not copied.
func WholeColumn(name string, shape []int, values []int32) *Values {
	return &Values{Column: Column{Name: name, Shape: slices.Clone(shape), Type: Whole}, whole: values}
}

// length returns the number of values of all rows.
func (v *Values) length() int { return max(len(v.bytes), len(v.floats), len(v.whole), v.n*v.Size()) }

func (v *Values) rows() (int, error) {
	size, err := product(v.Shape)
	switch {
	case err != nil:
		return 0, fmt.Errorf("column %q: %w", v.Name, err)
	case size == 0 || v.length()%size != 0:
		return 0, fmt.Errorf("column %q: %d values are not a whole number of values of shape %v", v.Name, v.length(), v.Shape)
	}
	return v.length() / size, nil
}

// at returns value i, counted over all rows, as a number.
func (v *Values) at(i int) float32 {
	switch {
	case v.read != nil:
		values := make([]float32, v.Size())
		v.read(values, i/len(values))
		return values[i%len(values)]
	case v.Type == Bytes:
		return float32(v.bytes[i]) / 255
	case v.Type == Whole:
		return float32(v.whole[i])
	}
	return v.floats[i]
}

// names returns a name for each value of a sample: that of its column in the file.
func (v *Values) names() []string {
	if v.In != nil {
		return v.In
	}
	return slices.Repeat([]string{v.Name}, v.Size())
}

func (v *Values) copyRow(dst []float32, row int) {
	if v.read != nil {
		v.read(dst, row)
		return
	}
	from, to := row*len(dst), (row+1)*len(dst)
	switch v.Type {
	case Bytes:
		kernel.Float32().FromBytes(dst, v.bytes[from:to])
	case Whole:
		for i, n := range v.whole[from:to] {
			dst[i] = float32(n)
		}
	default:
		copy(dst, v.floats[from:to])
		if v.Missing {
			for i, x := range dst {
				if x != x {
					dst[i] = 0
				}
			}
		}
	}
}

// appendRows appends the values of the samples m in another column of the same type.
func (v *Values) appendRows(of *Values, m *Images) {
	size, of := v.Size(), of.stored()
	for i := range m.n {
		from, to := m.row(i)*size, (m.row(i)+1)*size
		switch v.Type {
		case Bytes:
			v.bytes = append(v.bytes, of.bytes[from:to]...)
		case Whole:
			v.whole = append(v.whole, of.whole[from:to]...)
		default:
			v.floats = append(v.floats, of.floats[from:to]...)
		}
	}
}

func (v *Values) unsound() error {
	place := func(i int) string {
		size := v.Size()
		if size == 1 {
			return fmt.Sprintf("sample %d, column %q", i, v.Name)
		}
		return fmt.Sprintf("sample %d, column %q, value %d", i/size, v.Name, i%size)
	}
	for i, x := range v.floats {
		if x-x != 0 && !(v.Missing && x != x) {
			return fmt.Errorf("%s: got %v, want a finite number%s", place(i), x, hintOf(x))
		}
	}
	for i, n := range v.whole {
		if n >= wholeBound || n <= -wholeBound {
			return fmt.Errorf("%s: got %d, want a whole number of less than %d, which float32 represents exactly", place(i), n, wholeBound)
		}
	}
	return nil
}

// hintOf returns the advice for a non-finite number.
func hintOf(x float32) string {
	if x != x {
		return "; " + missingHint
	}
	return ""
}

// WithColumns returns the same samples with additional columns, which have a value for each row. A column with an existing
// name replaces the old one.
func (m *Images) WithColumns(columns ...*Values) (*Images, error) {
	other := *m
	other.further = slices.Clone(m.further)
	for _, v := range columns {
		n, err := v.rows()
		if err != nil {
			return nil, err
		}
		if v.Name == "" || v.Name == ImagesColumn || v.Name == LabelsColumn {
			return nil, fmt.Errorf("a further column cannot have the name %q", v.Name)
		}
		if rows := m.stock(); n != rows {
			return nil, fmt.Errorf("column %q has values for %d samples, want %d", v.Name, n, rows)
		}
		other.further = slices.DeleteFunc(other.further, func(o *Values) bool { return o.Name == v.Name })
		other.further = append(other.further, v)
	}
	return &other, nil
}

// stock returns the number of rows in memory, of which a subset uses only some.
func (m *Images) stock() int {
	if m.entries != nil {
		return m.entries.rows()
	}
	if m.disk != nil {
		return m.disk.n
	}
	return max(len(m.bytes), len(m.floats)) / m.pixels
}

// Columns returns descriptions of the columns other than images and labels.
func (m *Images) Columns() []Column {
	if m == nil {
		return nil
	}
	return lists.Map(m.further, func(v *Values) Column { return v.Column })
}

// column returns a column other than images and labels by its name, nil if there is none.
func (m *Images) column(name string) *Values {
	if i := slices.IndexFunc(m.further, func(v *Values) bool { return v.Name == name }); i >= 0 {
		return m.further[i]
	}
	return nil
}

// find returns a column by its name, whether it is in memory or not, and a function that writes its values for sample i.
func (m *Images) find(name string) (c Column, read func(dst []float32, i int), ok bool) {
	switch name {
	case ImagesColumn:
		c = Column{Name: name, Shape: m.Shape, Type: Float32}
		if m.isBytes() && m.scaling == nil {
			c.Type = Bytes
		}
		return c, m.copyRow, true
	case LabelsColumn:
		return Column{Name: name, Type: Whole}, func(dst []float32, i int) { dst[0] = float32(m.labels[m.row(i)]) }, m.labels != nil
	}
	if v := m.column(name); v != nil {
		return v.Column, func(dst []float32, i int) { v.copyRow(dst, m.row(i)) }, true
	}
	if d := m.drawnBy(name); d != nil {
		return d.Column, func(dst []float32, i int) { m.drawOne(dst, d, i) }, true
	}
	return m.mask(name)
}

// allColumns lists all columns other than images, also those that take no memory.
func (m *Images) allColumns() (names []string) {
	if m.labels != nil {
		names = append(names, LabelsColumn)
	}
	for _, v := range m.further {
		names = append(names, v.Name)
		if v.Missing {
			names = append(names, v.Name+ObservedSuffix)
		}
	}
	for _, name := range []string{ObservedColumn, HeldOutColumn, CompleteColumn} {
		if _, _, ok := m.mask(name); ok {
			names = append(names, name)
		}
	}
	for _, d := range m.drawn {
		names = append(names, d.Name)
	}
	return names
}

// Column returns the description of a column by its name, including images and labels; ok is false if the samples have no such
// column.
func (m *Images) Column(name string) (c Column, ok bool) {
	c, _, ok = m.find(name)
	return c, ok
}

// Gather writes the values of a column for the samples with these indices to dst, one sample after the other. It panics, like
// indexing, if there is no such column, an index is out of range or dst is too short.
func (m *Images) Gather(dst []float32, column string, indices []int) {
	if column == ImagesColumn {
		m.Batch(dst, indices)
		return
	}
	c, read, ok := m.find(column)
	if !ok {
		panic(fmt.Sprintf("data: no column %q", column))
	}
	size := c.Size()
	for k, i := range indices {
		read(dst[k*size:(k+1)*size], i)
	}
}

// Class returns the class of sample i in a column of whole numbers: labels, or another column with one number per sample. It
// is negative if the class is unknown.
func (m *Images) Class(column string, i int) int {
	if column == LabelsColumn {
		if m.labels == nil {
			return UnknownLabel
		}
		return m.labels[m.row(i)]
	}
	if v := m.column(column); v != nil {
		return int(v.at(m.row(i)))
	}
	var class [1]float32 // value of a drawn column
	m.Gather(class[:], column, []int{i})
	return int(class[0])
}

// Classes returns the class of every sample in a column of whole numbers, see [Images.Class]; nil if there are no labels.
func (m *Images) Classes(column string) []int {
	if column == LabelsColumn {
		return m.Labels()
	}
	return lists.Of(m.Len(), func(i int) int { return m.Class(column, i) })
}

// OneHot writes one row for each index: 1 at the class in the column, or zeros if the class is unknown or not less than the
// length of a row. dst has rows of equal length, one per index.
func (m *Images) OneHot(dst []float32, column string, indices []int) {
	if len(indices) == 0 {
		return
	}
	clear(dst)
	classes := len(dst) / len(indices)
	for k, i := range indices {
		if class := m.Class(column, i); class >= 0 && class < classes {
			dst[k*classes+class] = 1
		}
	}
}

// FirstOutside returns the first value of a column for which wanted is false, and its location
// as text; "" if there is none.
func (m *Images) FirstOutside(column string, wanted func(float32) bool) (place string, value float32) {
	c, read, ok := m.find(column)
	v := m.column(column)
	if _, _, isMask := m.mask(column); !ok || isMask && v == nil {
		return "", 0
	}
	if column == ImagesColumn && m.disk != nil && m.disk.whole && m.scaling == nil {
		ends := slices.Concat(m.disk.low, m.disk.high)
		if !slices.ContainsFunc(ends, func(end float64) bool { return !wanted(float32(end)) }) {
			return "", 0 // nor does a whole number between them differ
		}
	}
	if v != nil && v.read != nil && v.between != nil && wanted(v.between[0]) && wanted(v.between[1]) {
		return "", 0
	}
	values := make([]float32, c.Size())
	for i := range m.n {
		read(values, i)
		for k, x := range values {
			if v != nil && v.read == nil {
				x = v.at(m.row(i)*len(values) + k) // NaN for a missing entry
			}
			if x == x && !wanted(x) {
				return m.placeIn(c, i, k), x
			}
		}
	}
	return "", 0
}

// placeIn returns a description of the location of value k of sample i of a column, for a message.
func (m *Images) placeIn(c Column, i, k int) string {
	place := m.placeOf(i)
	switch {
	case c.Name == ImagesColumn:
		return m.Place(i, k)
	case c.Name == LabelsColumn:
		return "the label of " + place
	case c.Drawn:
		return fmt.Sprintf("the drawn column %q", c.Name)
	}
	if place += fmt.Sprintf(", column %q", c.Name); c.Size() > 1 {
		place += fmt.Sprintf(", value %d", k)
	}
	return place
}

// ColumnNames maps the columns of a set to their sources: one or several names (or globs) of columns of a .csv file, the name
// of an array, or a file. `images` and `labels` may be among the columns. It is the key
//
//	columns = { group = "sex", target = ["age", "dose"] }
//
// A list alone, columns = ["m*"], defines the column `images`.
type ColumnNames map[string][]string

func (c *ColumnNames) FromTOML(value any) error {
	const want = `want a table of names, such as { weight = "w", target = ["age", "dose"] }`
	*c = ColumnNames{}
	if list, ok := value.([]any); ok {
		value = map[string]any{ImagesColumn: list}
	}
	all, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("got %s, %s", valueText(value), want)
	}
	for name, held := range all {
		if name == "" || strings.ContainsAny(name, `./*?[]\ `) {
			return fmt.Errorf("invalid name %q of a column: it must not be empty and not contain . / * ? [ ] \\ or spaces", name)
		}
		list, ok := held.([]any)
		if !ok {
			list = []any{held}
		}
		for _, one := range list {
			text, ok := one.(string)
			if !ok || text == "" {
				return fmt.Errorf("%s: got %s, %s", name, valueText(one), want)
			}
			if _, err := path.Match(text, ""); err != nil {
				return fmt.Errorf("%s: malformed glob %q", name, text)
			}
			(*c)[name] = append((*c)[name], text)
		}
		if len(list) == 0 {
			return fmt.Errorf("%s: got an empty list, %s", name, want)
		}
	}
	return nil
}

func (c ColumnNames) TOML() any {
	if len(c) == 0 {
		return nil
	}
	if images := c[ImagesColumn]; len(c) == 1 && images != nil {
		return images
	}
	all := map[string]any{}
	for name, list := range c {
		all[name] = list
		if len(list) == 1 {
			all[name] = list[0]
		}
	}
	return all
}

// further lists the names of the columns other than images and labels, sorted.
func (c ColumnNames) further() (names []string) {
	for name := range c {
		if name != ImagesColumn && name != LabelsColumn {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// arrays lists the names of all arrays except those of the images.
func (c ColumnNames) arrays() (names []string) {
	for name, held := range c {
		if name != ImagesColumn {
			names = append(names, held...)
		}
	}
	return names
}

func (c ColumnNames) one(name string) string {
	if list := c[name]; len(list) > 0 {
		return list[0]
	}
	return ""
}

// checkOne returns an error at a key for a column with several sources, because in some files each column is a single array.
func (c ColumnNames) checkOne(key, what string) error {
	for name, list := range c {
		if len(list) > 1 {
			return part.KeyErrorf(key, "%s: got %d names, want that of one %s", name, len(list), what)
		}
	}
	return nil
}

// values returns an array as a column of n samples. If missing is true, NaN means a missing entry.
func (a array) values(name string, n int, missing bool) (*Values, error) {
	if len(a.dims) == 0 || a.dims[0] != n {
		return nil, fmt.Errorf("column %q: the array has the axes %v, want %d samples first", name, a.dims, n)
	}
	v := &Values{Column: Column{Name: name, Shape: slices.Clone(a.dims[1:])}}
	switch {
	case a.texts != nil:
		return nil, fmt.Errorf("column %q: the array holds texts, want numbers", name)
	case a.bytes != nil:
		v.Type, v.bytes = Bytes, a.bytes
	case a.ints != nil:
		v.Type, v.whole = Whole, make([]int32, len(a.ints))
		for i, n := range a.ints {
			v.whole[i] = int32(min(max(n, -wholeBound), wholeBound))
		}
	default:
		v.Type, v.floats, v.spans, v.Missing = Float32, a.floats, a.spans, missing
	}
	if size, err := product(v.Shape); err != nil || size == 0 {
		return nil, errors.Join(fmt.Errorf("column %q: the array has the axes %v", name, a.dims), err)
	}
	return v, v.unsound()
}

// as returns the column of other samples as that of the training: bytes are whole numbers where the training had whole numbers. Another size, and
// values in another unit, are errors if the samples belong to no data set, whose columns are compared later.
func (v *Values) as(training Column, loose bool) (*Values, error) {
	if v.Type == Bytes && training.Type == Whole {
		return &Values{Column: Column{Name: v.Name, Shape: v.Shape, Type: Whole}, whole: lists.Map(v.bytes, func(b byte) int32 { return int32(b) })}, nil
	}
	if !loose {
		return v, nil
	}
	if got, want := v.Size(), training.Size(); got != want {
		return nil, fmt.Errorf("column %q: got %s of a sample, want %d as in the training", v.Name, numeral.Of(got, "number"), want)
	}
	unlikePixel := func(x float32) bool { return !(x >= 0 && x <= 1) }
	if v.Type == Bytes && training.Type == Float32 {
		return nil, fmt.Errorf("column %q: the array holds uint8, which is divided by 255, and that of the training holds floats: save it as float32", v.Name)
	}
	if training.Type == Bytes && (v.Type == Whole || v.Type == Float32 && slices.ContainsFunc(v.floats, unlikePixel)) {
		return nil, fmt.Errorf("column %q: the array of the training holds uint8, which is divided by 255: save this one as uint8, or as floats from 0 to 1", v.Name)
	}
	return v, nil
}

// typeOf returns the type of a column whose array has the given kind, in NPY's notation; "" if the array cannot be a column.
func typeOf(kind string) Type {
	switch {
	case kind == "u1":
		return Bytes
	case kind == "b1" || strings.HasPrefix(kind, "u") || strings.HasPrefix(kind, "i"):
		return Whole
	case kind == "b2" || strings.HasPrefix(kind, "f"):
		return Float32
	}
	return ""
}

func (m *Images) checkColumns() error {
	if m == nil {
		return nil
	}
	for _, v := range m.further {
		if err := v.unsound(); err != nil {
			return err
		}
	}
	return nil
}

// All returns the values of all columns other than images for all samples, row by row, by name. It includes labels, the masks
// of missing and hidden entries and the drawn columns. It is nil if there are no columns.
func (m *Images) All() map[string][]float32 {
	indices := lists.Range(0, m.n)
	var all map[string][]float32
	for _, name := range m.allColumns() {
		if all == nil {
			all = map[string][]float32{}
		}
		c, _ := m.Column(name)
		all[name] = make([]float32, m.n*c.Size())
		m.Gather(all[name], name, indices)
	}
	return all
}
