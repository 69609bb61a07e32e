package data

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera/internal/safetensors"
)

// table is the content of a file of samples: their values, and what the file says of each.
type table struct {
	values  array
	columns []string // the names of the values, in their order, where the file has them
	names   []string // one per sample, nil for none
	labels  []int    // one per sample, nil for none
	texts   []string // labels that are names of classes, or may be; labels are nil if these are no numbers
	classes []string // the names of the labels, where the file has them
}

// reading is what is known of a file of samples before it is opened: what the keys of a data set say.
type reading struct {
	tensor  string   // the array of the samples, where the file has several; "" for the only one that can be it
	labels  string   // the array or column of the labels; "" for one that is named so
	names   string   // the column of the names; "" for one that is named so
	columns []string // globs of the columns of values; nil for all others
	apart   bool     // arrays with usual names are those of other samples in the file
	order   []string // the names of the columns of values in the order that is needed; nil for that of the file
	shape   []int    // of one sample, as the caller needs it; nil for any
}

// tablePart is one array of a file that has several, before its values are read.
type tablePart struct {
	name string
	dims []int
	kind string // of its values, as NPY names them: "f4"
	read func() (array, error)
}

// opened is a file of samples of which no values are read yet.
type opened struct {
	parts []tablePart
	csv   *csvFile // instead of parts
}

// The names by which arrays and columns that are no samples are found.
var (
	labelNames = []string{"labels", "label", "class"}
	nameNames  = []string{"names", "name", ""}
	classNames = []string{"classes"}
)

// openTable opens a file of several arrays, or of columns. ok is false for a file of another format.
func openTable(ctx context.Context, path string) (o opened, file File, ok bool, err error) {
	start, err := head(path, 16)
	if err != nil {
		return o, file, true, err
	}
	switch {
	case strings.HasPrefix(string(start), zipMagic):
		o.parts, file, err = openNPZ(ctx, path)
	case safetensors.Is(start):
		o.parts, file, err = openSafetensors(ctx, path)
	case slices.Contains([]string{".csv", ".tsv"}, strings.ToLower(filepath.Ext(path))):
		o.csv, file, err = openCSV(ctx, path)
	default:
		return o, file, false, nil
	}
	return o, file, true, err
}

// readTable reads a file of samples in any format: .npy, IDX, .npz, .safetensors, .csv.
func readTable(ctx context.Context, path string, r reading) (t table, file File, err error) {
	o, file, ok, err := openTable(ctx, path)
	switch {
	case err != nil:
		return t, file, err
	case !ok:
		t.values, file, err = readArray(ctx, path)
	case o.csv != nil:
		t, err = o.csv.table(r)
	default:
		t, err = tableOf(o.parts, r)
	}
	if err == nil {
		err = t.complete(r.shape)
	}
	return t, file, err
}

// complete makes a single vector a table of one row, and checks lengths.
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

// tableOf reads the arrays of a file that are asked for.
func tableOf(parts []tablePart, r reading) (t table, err error) {
	samples, err := samplesOf(parts, r)
	if err != nil {
		return t, err
	}
	if t.values, err = samples.read(); err != nil {
		return t, err
	}
	if err := t.readLabels(parts, samples, r); err != nil || r.apart {
		return t, err
	}
	t.names, err = textsOf(parts, samples, nameNames)
	return t, err
}

// readLabels reads the labels of samples and, where the labels are numbers, the names of their classes.
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
		a, err := labels.read()
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

// textsOf returns the texts of the first array that has a usual name; nil if there is none, or one of numbers.
func textsOf(parts []tablePart, samples *tablePart, usual []string) ([]string, error) {
	p, _ := namedPart(parts, "", usual) // no name that must be there
	if p == nil || p == samples {
		return nil, nil
	}
	a, err := p.read()
	return a.texts, err
}

// namedPart returns the array of that name or, without one, the first that has a usual name; nil if there is none of these.
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

// samplesOf chooses the array of the samples: the one that is named; else the only array of two to four axes of bytes or floats
// that is none of labels, names and classes, those of the wanted size first.
func samplesOf(parts []tablePart, r reading) (*tablePart, error) {
	if r.tensor != "" {
		return namedPart(parts, r.tensor, nil)
	}
	var all, fitting []*tablePart
	for i := range parts {
		p := &parts[i]
		other := slices.Contains(slices.Concat(labelNames, nameNames, classNames, []string{r.labels}), p.name)
		if other || p.kind != "u1" && !strings.HasPrefix(p.kind, "f") && !strings.HasPrefix(p.kind, "b") {
			continue
		}
		if len(p.dims) >= 2 && len(p.dims) <= 4 {
			all = append(all, p)
		}
		if sameSize(p.dims, r.shape) {
			fitting = append(fitting, p)
		}
	}
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		return nil, fmt.Errorf("has no array of samples, (samples, values) of bytes or floats: got %s", partList(parts))
	}
	return nil, fmt.Errorf("has several arrays (%s): name that of the samples with the key tensor", partList(parts))
}

// sameSize reports whether an array of these axes holds samples of that shape, or a single vector of it.
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

// dims returns the axes of the samples without reading them; the number of rows of a .csv file is not known and is 1.
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
