package data

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/atomicfile"
	"tessera/internal/lists"
	"tessera/internal/safetensors"
)

// AllowMissing returns a source with the keys of s, for [ReadRows]. Its files may have missing entries: NaN and empty cells.
func AllowMissing(s Source) Source {
	l, _ := likeOf(s)
	l.r.Missing = append(l.r.Missing, missingNaN)
	return l
}

// Completed counts what [Complete] did.
type Completed struct {
	Entries int      // that were replaced
	Left    []string // other columns of a table with missing cells, with their number
}

// Complete reads the samples of a table, .npy, .npz or .safetensors file like [ReadRows], replaces missing entries (NaN and
// empty cells), and writes the result in the same format. fill returns the values of all samples, row by row; only those of
// missing entries are used, rounded in columns of whole numbers of a table, which may lack columns of the training. All other cells, entries and arrays keep their bytes.
// Other tables than texts, .parquet, and those that are compressed are written as .csv. It returns an *Error for a file without missing entries, and if out has
// another format.
func Complete(ctx context.Context, in, out string, shape []int, like Source, fill func(*Rows) ([]float64, error)) (done Completed, err error) {
	of := formatNamed(in)
	if of == nil || of.fill == nil && of.Sort != CellFiles {
		return done, &Error{Path: in, Problem: "files of its kind are not completed", Hint: "save it as a file whose name ends in one of .csv, .tsv, .parquet, .npy, .npz, .safetensors"}
	}
	h := holes{again: of.fill == nil || strings.HasSuffix(in, ".gz")}
	if h.again && !strings.HasSuffix(out, ".csv") {
		return done, &Error{Path: in, Problem: fmt.Sprintf("is completed as a file whose name ends in .csv, not as %s", inLine(out))}
	}
	if !h.again && formatNamed(out) != of {
		return done, &Error{Path: in, Problem: fmt.Sprintf("is completed as a file of the same kind, not as %s", inLine(out))}
	}
	l, _ := likeOf(AllowMissing(like))
	if l.r.is(EntryFiles) {
		return done, &Error{Path: in, Problem: "the model was fitted to a sparse matrix, whose missing entries are too many to write", Hint: "predict those that you need, by row and column: tessera predict"}
	}
	l.r.filters, l.r.lacking = true, true
	rows, err := ReadRows(ctx, in, shape, l)
	if err != nil {
		return done, err
	}
	raw := rows.Raw()
	for k, v := range raw {
		if v != v && (rows.Lost == nil || !slices.Contains(rows.Lost, rows.columns[k%rows.pixels])) {
			done.Entries++
		}
	}
	if done.Entries == 0 {
		return done, &Error{Path: in, Problem: "has no missing entries: there is nothing to complete"}
	}
	values, err := fill(rows)
	if err != nil {
		return done, err
	}
	if len(values) != len(raw) {
		return done, fmt.Errorf("data: got %d values for the missing entries of %d, want as many", len(values), len(raw))
	}
	h.raw, h.values, h.rows, h.reading = raw, values, rows, l.r
	h.reading.File, h.reading.shape, h.reading.loose = in, shape, true
	var b []byte
	if h.again {
		b, err = fillRows(ctx, &h)
	} else if b, err = os.ReadFile(in); err == nil {
		if f := detected(b[:min(len(b), 16)], in, false); f != nil && f.fill != nil {
			b, err = f.fill(ctx, &h, in, b)
		} else {
			err = errors.New("is compressed, or not what its name says: unpack it first")
		}
	}
	if done.Left = h.left; err != nil {
		return done, FileError("", in, err)
	}
	return done, atomicfile.Write(out, func(w io.Writer) error { _, err := w.Write(b); return err })
}

// holes contains the missing entries of samples and their replacements.
type holes struct {
	raw     []float32
	values  []float64
	rows    *Rows
	reading reading
	again   bool     // the file is written again, as a .csv
	left    []string // see [Completed]
}

func fillNPY(_ context.Context, h *holes, _ string, b []byte) ([]byte, error) {
	head, err := parseNPYHeader(b)
	if err != nil {
		return nil, err
	}
	return b, h.array(b[head.length:], head)
}

// fillCSV replaces the cells of missing values. The rest of the text is not changed.
func fillCSV(ctx context.Context, h *holes, path string, b []byte) ([]byte, error) {
	o, err := openColumns(ctx, path, nil)
	defer o.close()
	if err != nil {
		return nil, err
	}
	f := o.csv
	for _, begin := range []string{"\x1f\x8b", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(b, []byte(begin)) {
			return nil, errors.New("is compressed or in UTF-16: save it as a plain UTF-8 text first")
		}
	}
	rest := bytes.TrimPrefix(b, []byte(utf8Mark))[f.skip:]
	out := slices.Clone(b[:len(b)-len(rest)]) // a byte order mark, and the line that declares the separator
	var lines []int                           // offsets at which lines begin
	for at := 0; at < len(rest); {
		lines = append(lines, at)
		end := bytes.IndexByte(rest[at:], '\n')
		if end < 0 {
			break
		}
		at += end + 1
	}
	done := 0
	err = h.eachRow(f, func(row tableRow, fill map[int]string) {
		for _, i := range slices.Sorted(maps.Keys(fill)) {
			line, column := row.text.FieldPos(i)
			from := lines[line-1] + column - 1
			out = append(out, rest[done:from]...)
			out = append(out, f.cell(fill[i], h.reading.Decimal)...)
			if f.units != nil && f.units[i] != "" {
				out = append(out, " "+f.units[i]...)
			}
			done = from + cellLength(rest[from:], f.comma)
		}
	})
	return append(out, rest[done:]...), err
}

// fillRows writes a table as a .csv, with the cells of missing values replaced.
func fillRows(ctx context.Context, h *holes) ([]byte, error) {
	h.reading.Kind = "csv"
	o, err := h.reading.opened(ctx)
	defer o.close()
	if err != nil {
		return nil, err
	}
	var all [][]string
	each := o.csv.rows
	o.csv.rows = func(do func(tableRow) error) (string, error) {
		all = [][]string{o.csv.header}
		return each(func(row tableRow) error {
			all = append(all, lists.Map(row.cells, strings.Clone))
			return do(row)
		})
	}
	err = h.eachRow(o.csv, func(_ tableRow, fill map[int]string) {
		for i, text := range fill {
			all[len(all)-1][i] = text
		}
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = csv.NewWriter(&b).WriteAll(all)
	return b.Bytes(), err
}

// eachRow calls do for every row of a table that meets the conditions, with the texts of its missing values by their columns.
func (h *holes) eachRow(f *csvFile, do func(row tableRow, fill map[int]string)) error {
	if err := cmp.Or(f.measured(h.reading), f.only(h.reading)); err != nil {
		return err
	}
	c, err := f.columns(h.reading)
	if err != nil {
		return err
	}
	whole, err := f.whole(c.values, h.reading.Decimal)
	if err != nil {
		return err
	}
	n, left := 0, make([]int, len(f.header))
	_, err = f.eachRow(func(row tableRow) error {
		fill := map[int]string{}
		for k, i := range c.values {
			at := n*len(c.values) + k
			if h.raw[at] == h.raw[at] || i >= len(f.header)-len(f.lost) {
				continue
			}
			v := h.value(at)
			if whole[k] {
				v = math.Round(v)
			}
			if fill[i] = numberText(v); h.rows.isDate(k) {
				fill[i] = h.rows.valueText(k, v)
			}
		}
		for i, cell := range row.cells {
			if isMissing(strings.TrimSpace(cell)) && !slices.Contains(c.values, i) {
				left[i]++
			}
		}
		n++
		do(row, fill)
		return nil
	})
	for i, n := range left {
		if n > 0 {
			h.left = append(h.left, fmt.Sprintf("%.60q (%d)", f.header[i], n))
		}
	}
	return err
}

// whole reports for each of the columns of values whether all numbers that are there are whole.
func (f *csvFile) whole(columns []int, decimal string) (all []bool, err error) {
	all = slices.Repeat([]bool{true}, len(columns))
	some := make([]bool, len(columns))
	_, err = f.eachRow(func(row tableRow) error {
		for k, i := range columns {
			if v, absent, _ := cellNumber(row.cells[i], decimal); !absent {
				all[k], some[k] = all[k] && v == math.Trunc(v), true
			}
		}
		return nil
	})
	for k := range all {
		all[k] = all[k] && some[k]
	}
	return all, err
}

func (f *csvFile) cell(number, decimal string) string {
	if decimal != "," {
		return number
	}
	if number = strings.Replace(number, ".", ",", 1); f.comma == ',' {
		number = strconv.Quote(number)
	}
	return number
}

// cellLength returns the length of the first cell of b, which contains no quotes.
func cellLength(b []byte, comma rune) int {
	quoted := 0
	if len(b) > 0 && b[0] == '"' {
		quoted = 1 + bytes.IndexByte(b[1:], '"') + 1
	}
	end := bytes.IndexAny(b[quoted:], string(comma)+"\r\n")
	if end < 0 {
		return len(b)
	}
	return quoted + end
}

func (h *holes) samples(o Opened, err error) (*tablePart, error) {
	defer o.close()
	if err != nil {
		return nil, err
	}
	return samplesOf(o.parts, h.reading)
}

func fillNPZ(ctx context.Context, h *holes, path string, b []byte) ([]byte, error) {
	samples, err := h.samples(openNPZ(ctx, path, nil))
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, entry := range archive.File {
		if entry.Name != samples.name+".npy" {
			if err := z.Copy(entry); err != nil {
				return nil, err
			}
			continue
		}
		if err := h.entry(z, entry); err != nil {
			return nil, err
		}
	}
	err = z.Close()
	return out.Bytes(), err
}

func (h *holes) entry(z *zip.Writer, entry *zip.File) error {
	content, err := entry.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	values, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	head, err := parseNPYHeader(values)
	if err == nil {
		err = h.array(values[head.length:], head)
	}
	if err != nil {
		return err
	}
	w, err := z.CreateHeader(&zip.FileHeader{Name: entry.Name, Method: entry.Method, Modified: entry.Modified})
	if err == nil {
		_, err = w.Write(values)
	}
	return err
}

func fillSafetensors(ctx context.Context, h *holes, path string, b []byte) ([]byte, error) {
	samples, err := h.samples(openSafetensors(ctx, path, nil))
	if err != nil {
		return nil, err
	}
	header, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	for _, t := range header.Tensors {
		if t.Name == samples.name {
			at := b[header.Length:][t.Offsets[0]:t.Offsets[1]]
			return b, h.array(at, arrayHeader{kind: samples.kind, order: binary.LittleEndian, dims: t.Shape})
		}
	}
	return nil, fmt.Errorf("has no tensor %q", samples.name)
}

// value returns value i as it is in the file: values are divided when they are read if the data set has scale = "bytes" or "uint16".
func (h *holes) value(i int) float64 {
	if divisor := h.reading.Scale.divisor(); divisor != 0 {
		return float64(divisor * float32(h.values[i]))
	}
	return h.values[i]
}

func (h *holes) array(b []byte, head arrayHeader) error {
	places := make([]int, len(h.raw)) // of the values of the samples in the array
	for i := range places {
		places[i] = i
	}
	if head.fortran {
		places = rowMajor(places, head.dims)
	}
	if len(head.dims) == 4 && h.reading.Axes == channelsFirst {
		places = moveChannels(places, head.dims[0], head.dims[1], head.dims[2]*head.dims[3])
	}
	width := int(head.kind[1] - '0')
	if head.kind[0] != 'f' && head.kind != "b2" || len(h.raw)*width > len(b) {
		return fmt.Errorf("values of type %q have no missing entries", head.kind)
	}
	for i, v := range h.raw {
		if v == v {
			continue
		}
		at, v := b[places[i]*width:], h.value(i)
		switch {
		case head.kind == "b2":
			head.order.PutUint16(at, toBrain(float32(v)))
		case width == 2:
			head.order.PutUint16(at, toHalf(float32(v)))
		case width == 4:
			head.order.PutUint32(at, math.Float32bits(float32(v)))
		default:
			head.order.PutUint64(at, math.Float64bits(v))
		}
	}
	return nil
}

// toBrain returns the nearest bfloat16 of a finite value, ties to even.
func toBrain(v float32) uint16 {
	b := math.Float32bits(v)
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// toHalf returns the nearest IEEE 754 binary16 of a finite value, ties to even. Values that are too large become infinite.
func toHalf(v float32) uint16 {
	sign := uint16(math.Float32bits(v) >> 16 & 0x8000)
	a := math.Abs(float64(v))
	switch {
	case a >= 65520:
		return sign | 0x7c00
	case a < 1./(1<<14): // subnormal, a multiple of 2^-24
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	fraction, exponent := math.Frexp(a) // a = fraction 2^exponent, fraction in [1/2,1)
	steps := math.RoundToEven(fraction * 2048)
	return sign | uint16((exponent+13)<<10+int(steps)) // a carry of the fraction is one of the exponent
}
