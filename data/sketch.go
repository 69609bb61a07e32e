package data

import (
	"context"
	"errors"
	"fmt"
	"image"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TableSketch says which columns a file has, for a first declaration of a data set. The file is read like that of the data set csv.
type TableSketch struct {
	Rows    int
	Decimal string // sign before the fraction of its numbers, "." or ","; "" if all are numbers without it
	Dates   string // order of its dates with slashes, the key dates; "" if it has none of which a day above 12 shows the order
	Columns []ColumnSketch

	Sentinels string // warning about numbers that may mean a missing value; "" without any
}

// ColumnSketch says what the cells of a column are. Cells that mean a missing value have no part in Numeric, Whole, Low and High.
type ColumnSketch struct {
	Name           string
	Numeric, Whole bool     // all cells are numbers, or whole numbers; false without any
	Unit           string   // of these numbers
	Absent         []string // texts between the numbers, which mean a missing value
	Missing        bool     // some cells mean a missing value
	Repeats        bool     // two cells are equal and not missing
	Different      int      // number of different cells that are not missing; of numbers, among the first 1,000 rows
	Low, High      float64
	Alike          []string // different texts of which only letter case and spaces differ, one after the other
	Words          float64  // mean number of words of a cell, by its spaces
	Dates          bool     // all cells are dates or times of day
	Ambiguous      bool     // their order of day and month is not clear
	Odd            string   // of at least nine tenths numbers: the text and the place of the first cell that is none, "" without any
}

// columnReader collects a column for both signs before the fraction of a number.
type columnReader struct {
	seen     map[string]bool
	cells    int // that are not missing
	numbers  int
	odd      string // the first cell that is no number, with its line
	words    [3]bool
	absent   []string // texts without digits, which may mean a missing value
	void     int      // number of cells with them
	unit     string
	spaces   int
	fraction bool
	missing  bool
	repeats  bool
	ends     [3]ends
	other    bool            // a cell is no date
	slashed  map[string]bool // orders of day and month of dates with slashes: true if one of them has no other order
}

// dateLayouts are the dates and times that a table is searched for.
var dateLayouts = append([]string{"15:04", time.TimeOnly}, clearLayouts...)

// clearLayouts are dates of which the day cannot be taken for the month.
var clearLayouts = []string{time.DateOnly, time.DateTime, time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z07", "2006-01-02 15:04", "2006-01-02 3:04 PM", "2006-01-02 3:04:05 PM", "2006-01-02T15:04:05", "2006/01/02", "2.1.2006", "2.1.2006 15:04", "2006-01",
	"Jan 2, 2006", "2 Jan 2006"}

// isDate reports whether a text is a date or a time of day.
func isDate(text string) bool {
	text = yearFirst(yearFirst(text, monthDay), dayMonth)
	return slices.ContainsFunc(dateLayouts, func(layout string) bool { _, err := time.Parse(layout, text); return err == nil })
}

var decimals = [3]string{"", ".", ","}

// SketchTable reads all cells of a file of columns. The error is that of a training that reads the file, [*Error].
func SketchTable(ctx context.Context, path string) (*TableSketch, error) {
	o, err := reading{Files: Files{Kind: "csv", File: path}}.openTable(ctx)
	defer o.close()
	if err != nil {
		return nil, err
	}
	f, s := o.csv, &TableSketch{}
	columns, err := s.read(f)
	if s.Dates = orderOf(columns); err == nil && s.Dates != "" {
		f.dates = s.Dates
		columns, err = s.read(f)
	}
	if err == nil && s.Rows == 0 {
		err = errors.New("has no line after the first one")
	}
	if err != nil {
		return nil, FileError("csv", path, err)
	}
	var numbers [len(decimals)]int
	for d := range decimals {
		for i := range columns {
			if columns[i].numeric(d) {
				numbers[d]++
			}
		}
	}
	d := 0
	if max(numbers[1], numbers[2]) > numbers[0] {
		if d = 1; numbers[2] > numbers[1] || numbers[2] == numbers[1] && f.comma != ',' {
			d = 2
		}
	}
	s.Decimal = decimals[d]
	var numeric []string
	var spans []ends
	for i, c := range columns {
		one := ColumnSketch{Name: f.header[i], Numeric: c.numeric(d), Whole: c.numeric(d) && !c.fraction, Missing: c.missing,
			Repeats: c.repeats, Different: len(c.seen), Low: c.ends[d].low.value, High: -c.ends[d].high.value, Words: 1 + float64(c.spaces)/float64(max(1, c.cells)),
			Dates: c.cells > 0 && !c.other, Ambiguous: !c.other && len(c.slashed) > 0}
		if !one.Numeric && 10*c.numbers >= 9*c.cells {
			one.Odd = c.odd
		}
		if !one.Numeric {
			one.Alike = alike(slices.Sorted(maps.Keys(c.seen)))
		}
		if one.Numeric {
			one.Unit, one.Absent, one.Missing = c.unit, c.absent, c.missing || c.void > 0
			numeric, spans = append(numeric, one.Name), append(spans, c.ends[d])
		}
		s.Columns = append(s.Columns, one)
	}
	s.Sentinels = sentinelNote(numeric, spans, nil)
	return s, nil
}

// read reads all cells.
func (s *TableSketch) read(f *csvFile) ([]columnReader, error) {
	columns := make([]columnReader, len(f.header))
	for i := range columns {
		columns[i].seen, columns[i].slashed = map[string]bool{}, map[string]bool{}
		for d := range decimals {
			columns[i].ends[d] = newEnds()
		}
	}
	s.Rows = 0
	_, err := f.eachRow(func(row tableRow) error {
		for i := range columns {
			columns[i].add(strings.TrimSpace(row.cells[i]), s.Rows < 1000, row.line)
		}
		s.Rows++
		return nil
	})
	return columns, err
}

// orderOf returns the order of day and month in the columns of dates with slashes, "" if no day above 12 shows it, or if two show different ones.
func orderOf(columns []columnReader) string {
	shown := map[string]bool{}
	for _, c := range columns {
		for order, alone := range c.slashed {
			shown[order] = shown[order] || alone && !c.other
		}
	}
	switch {
	case shown[monthDay] == shown[dayMonth]:
		return ""
	case shown[monthDay]:
		return monthDay
	}
	return dayMonth
}

func (c *columnReader) numeric(decimal int) bool {
	return 2*c.void < c.cells && !c.words[decimal] && (c.void == 0 || c.ends[decimal].low.value < -c.ends[decimal].high.value)
}

// mostAbsent is the largest number of different texts between the numbers of a column.
const mostAbsent = 3

// add reads one cell. Different cells of numbers are counted only in the first rows.
func (c *columnReader) add(cell string, first bool, line int) {
	if isMissing(cell) {
		c.missing = true
		return
	}
	if first || !c.numeric(0) && !c.numeric(1) && !c.numeric(2) {
		if c.seen[cell] {
			c.repeats = true
		} else {
			c.seen[strings.Clone(cell)] = true
		}
	}
	c.cells++
	c.spaces += strings.Count(cell, " ")
	c.other = c.other || !isDate(cell)
	if !c.other {
		if first, second := yearFirst(cell, monthDay) != cell, yearFirst(cell, dayMonth) != cell; first || second {
			c.slashed[monthDay] = c.slashed[monthDay] || !second
			c.slashed[dayMonth] = c.slashed[dayMonth] || !first
		}
	}
	if !strings.ContainsAny(cell, "0123456789") && !isBool(cell) {
		if c.void++; len(c.absent) <= mostAbsent && !slices.Contains(c.absent, cell) {
			c.absent = append(c.absent, strings.Clone(cell))
		}
		c.words = [len(decimals)]bool{len(c.absent) > mostAbsent, len(c.absent) > mostAbsent, len(c.absent) > mostAbsent}
		return
	}
	if c.unit == "" && c.cells == c.void+1 {
		c.unit = unitOf(cell)
	}
	if !c.numeric(0) && !c.numeric(1) && !c.numeric(2) && c.cells > 20 && 2*c.numbers < c.cells { // texts
		return
	}
	given, numbers := cell, c.numbers
	cell = withoutUnit(cell, c.unit)
	if _, err := strconv.ParseInt(cell, 10, 64); err != nil {
		c.fraction = true
	}
	for d, decimal := range decimals {
		v, _, ok := cellNumber(cell, decimal)
		if ok {
			c.numbers = numbers + 1
		}
		if c.words[d] = c.words[d] || !ok; !c.words[d] {
			c.ends[d].add(v)
		}
	}
	if c.numbers == numbers && c.odd == "" {
		c.odd = fmt.Sprintf("%.40q in line %d", given, line)
	}
}

// PictureSketch says what the pictures in a folder are, for a first declaration of a data set.
type PictureSketch struct {
	Count    int     // number of pictures
	Classes  int     // number of class folders, 0 for pictures without labels
	Size     Size    // of all pictures; the zero value if they differ
	Coloured bool    // a pixel is not grey; of many pictures, about 100 are read
	High     float64 // largest value of a pixel of these pictures, 1 for white
	HighDeep float64 // that of the pictures of 16 bits per channel, 0 without any
	Depths   string  // warning about pictures of which some have 16 bits per channel, "" if all have one depth
}

// SketchPictures reads the headers of all pictures in a folder and its class folders, which are those of the data set images.
func SketchPictures(ctx context.Context, folder string) (*PictureSketch, error) {
	l, err := (pictures{}).list(folder)
	if err != nil {
		return nil, FileError("images", folder, err)
	}
	files, err := imageHeaders(ctx, l.paths)
	if err != nil {
		return nil, err
	}
	s, deep := &PictureSketch{Count: len(files), Classes: len(l.classes), Size: files[0].size}, 0
	for _, f := range files {
		if f.size != files[0].size {
			s.Size = Size{}
		}
		if f.deep {
			deep++
		}
	}
	s.Depths = depthsNote(folder, deep, len(files))
	step := max(1, len(l.paths)/100) // from all classes
	for i := 0; i < len(l.paths) && !(s.Coloured && s.High == 1); i += step {
		err := useImage(l.paths[i], func(m image.Image) error {
			coloured, high := sketched(m)
			s.Coloured, s.High = s.Coloured || coloured, max(s.High, high)
			if files[i].deep {
				s.HighDeep = max(s.HighDeep, high)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, FileError("images", l.paths[i], err)
		}
	}
	return s, nil
}

// sketched reports whether a pixel of an image is not grey, and the largest value of its pixels.
func sketched(m image.Image) (coloured bool, high float64) {
	var most uint32
	b := m.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue, _ := m.At(x, y).RGBA()
			coloured = coloured || red != green || green != blue
			most = max(most, red, green, blue)
		}
	}
	return coloured, float64(most) / 65535
}

// IsPicture reports whether a file has the extension of a picture that the data set images reads.
func IsPicture(path string) bool { return (pictures{}).reads(path) }

// IsTable reports whether a file is one that the data set csv reads, by its content or its extension.
func IsTable(path string) bool { return reads(path) == "csv" }
