package data

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	schema "github.com/parquet-go/parquet-go/format"
)

func init() {
	RegisterFormat(Format{Dataset: "csv", Sort: CellFiles, Suffixes: []string{".parquet"}, Is: begins("PAR1"), Open: openParquet})
}

// openParquet opens a Parquet file as a file of columns. The cells of columns of lists and structures have no values: they are the text [nested].
func openParquet(ctx context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	defer func() {
		if r := recover(); r != nil { // of the library, at a damaged file
			err = fmt.Errorf("is a damaged Parquet file: %v", r)
		}
	}()
	var end [8]byte // the length of the footer, for which the library would take memory
	size := o.contents.info.Size()
	if _, err := o.contents.ReadAt(end[:], size-8); err != nil || int64(binary.LittleEndian.Uint32(end[:])) > size-12 || string(end[4:]) != "PAR1" {
		return o, errors.New("is a Parquet file without its end: it was cut short or changed; copy it or save it again")
	}
	p, err := parquet.OpenFile(o.contents, size)
	if err != nil {
		return o, fmt.Errorf("is not a Parquet file: %w", err)
	}
	t := &parquetTable{ctx: ctx, file: p, at: map[int]int{}, halves: map[int]bool{}}
	leaf := 0
	for _, element := range p.Metadata().Schema {
		if _, half := element.LogicalType.Value.(*schema.Float16Type); half {
			t.halves[leaf] = true
		}
		if element.Type.Valid {
			leaf++
		}
	}
	f := &csvFile{rows: func(do func(tableRow) error) (string, error) {
		return "", eachOf((&parquetRows{parquetTable: t}).next, do)
	}}
	for i, column := range p.Root().Columns() {
		if column.Leaf() && !column.Repeated() {
			t.at[int(column.Index())] = i
		}
		t.columns = append(t.columns, column)
		f.header = append(f.header, column.Name())
	}
	o.csv = f
	cells, unpacked := float64(p.NumRows())*float64(len(f.header)), 0.0
	for _, group := range p.Metadata().RowGroups {
		for _, chunk := range group.Columns {
			unpacked += max(float64(chunk.MetaData.TotalUncompressedSize), 0)
		}
	}
	switch most := max(textFrom, bestRatio*float64(size)); {
	case len(t.at) == 0:
		err = errors.New("has no columns of single values")
	case unpacked > most:
		err = fmt.Errorf("claims %.0f bytes of uncompressed values, more than a file of %d bytes can hold", unpacked, size)
	case 4*cells > most:
		err = fmt.Errorf("claims %d rows of %d columns, more than a file of %d bytes can hold", p.NumRows(), len(f.header), size)
	}
	return o, err
}

// nested is the cell of a list or a structure.
const nested = "[...]"

type parquetTable struct {
	ctx     context.Context
	file    *parquet.File
	columns []*parquet.Column
	at      map[int]int  // index in columns of those with one value for each row, by the index of the leaf
	halves  map[int]bool // leaves of floats of 16 bits, which have no type in the library
}

// parquetRows reads the rows of a file as texts, by row groups.
type parquetRows struct {
	*parquetTable
	group int
	rows  parquet.Rows
	block []parquet.Row // those that were read, without the rows that next has returned
	read  int           // rows that next has returned
}

func (r *parquetRows) next() (row tableRow, err error) {
	defer func() {
		if p := recover(); p != nil { // of the library, at a damaged file
			err = fmt.Errorf("row %d: is damaged: %v", r.read, p)
		}
	}()
	for len(r.block) == 0 {
		if err := r.fill(); err != nil {
			return row, err
		}
	}
	if int64(r.read) >= r.file.NumRows() {
		return row, fmt.Errorf("is damaged: it has more rows than its footer says, %d", r.file.NumRows())
	}
	found, cells := 0, make([]string, len(r.columns))
	for i, column := range r.columns {
		if !column.Leaf() || column.Repeated() {
			cells[i] = nested
		}
	}
	for _, v := range r.block[0] {
		i, ok := r.at[v.Column()]
		if ok {
			found++
		}
		if ok && !v.IsNull() {
			if cells[i], err = cellOf(r.columns[i], r.halves[v.Column()], v); err != nil {
				return row, fmt.Errorf("column %.60q: %w", r.columns[i].Name(), err)
			}
		}
	}
	if r.block, r.read = r.block[1:], r.read+1; found < len(r.at) {
		return row, fmt.Errorf("row %d: is damaged: a column has fewer rows than the others", r.read)
	}
	return tableRow{cells: cells, line: r.read + 1}, nil // below a line of names
}

// fill reads the next block of rows.
func (r *parquetRows) fill() error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.rows == nil {
		if r.group == len(r.file.RowGroups()) {
			if int64(r.read) != r.file.NumRows() {
				return fmt.Errorf("is damaged: it has %d rows, its footer says %d", r.read, r.file.NumRows())
			}
			return io.EOF
		}
		r.rows = r.file.RowGroups()[r.group].Rows()
		r.group++
	}
	const rows = 256
	block := make([]parquet.Row, rows)
	n, err := r.rows.ReadRows(block)
	r.block = block[:n]
	if err == io.EOF || err == nil && n == 0 {
		err = r.rows.Close()
		r.rows = nil
	}
	return err
}

// momentLayout writes a date with its time as a .csv does, so that both have the same numbers: those of [dateNumber].
const momentLayout = "2006-01-02 15:04:05.999999999"

// momentText returns the moment n units after the beginning of 1970, in UTC.
func momentText(n int64, unit schema.TimeUnit) string {
	t := time.UnixMilli(n)
	switch unit.Value.(type) {
	case *schema.MicroSeconds:
		t = time.UnixMicro(n)
	case *schema.NanoSeconds:
		t = time.Unix(0, n)
	}
	return t.UTC().Format(momentLayout)
}

// cellOf returns a value as a cell of a text. Dates are texts, which become numbers as those of a .csv; durations are numbers in the unit of the file.
// half says that it is a float of 16 bits.
func cellOf(column *parquet.Column, half bool, v parquet.Value) (string, error) {
	var logical schema.LogicalTypeValue
	if of := column.Type().LogicalType(); of != nil {
		logical = of.Value
	}
	switch v.Kind() {
	case parquet.Boolean:
		return strconv.FormatBool(v.Boolean()), nil
	case parquet.Int32, parquet.Int64:
		n := v.Int64()
		if v.Kind() == parquet.Int32 {
			n = int64(v.Int32())
		}
		switch of := logical.(type) {
		case *schema.DateType:
			return time.Unix(86400*n, 0).UTC().Format(time.DateOnly), nil
		case *schema.TimestampType:
			return momentText(n, of.Unit), nil
		case *schema.TimeType: // of day, a text, as in a .csv
			_, clock, _ := strings.Cut(momentText(n, of.Unit), " ")
			return clock, nil
		case *schema.DecimalType:
			return decimalText(big.NewInt(n), of.Scale)
		case *schema.IntType:
			if !of.IsSigned && v.Kind() == parquet.Int32 {
				return strconv.FormatUint(uint64(uint32(n)), 10), nil
			} else if !of.IsSigned {
				return strconv.FormatUint(uint64(n), 10), nil
			}
		}
		return strconv.FormatInt(n, 10), nil
	case parquet.Int96: // of old writers, a timestamp: nanoseconds of the day, then the Julian day
		const epoch = 2440588
		words := v.Int96()
		days := int64(words[2]) - epoch
		return time.Unix(86400*days, int64(words[1])<<32|int64(words[0])).UTC().Format(momentLayout), nil
	case parquet.Float:
		return strconv.FormatFloat(float64(v.Float()), 'g', -1, 32), nil
	case parquet.Double:
		return strconv.FormatFloat(v.Double(), 'g', -1, 64), nil
	}
	b := v.ByteArray()
	switch of := logical.(type) {
	case *schema.DecimalType: // the two's complement, from its first byte
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return decimalText(n, of.Scale)
	case *schema.UUIDType: // of 16 bytes; a panic for others is that of a damaged file
		text := hex.EncodeToString(b)
		return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-"), nil
	}
	switch {
	case half && len(b) == 2:
		return strconv.FormatFloat(float64(fromHalf(binary.LittleEndian.Uint16(b))), 'g', -1, 32), nil
	case v.Kind() == parquet.FixedLenByteArray: // bytes of no known meaning
		return hex.EncodeToString(b), nil
	}
	return string(b), nil
}

// decimalText returns n / 10^scale, exactly.
func decimalText(n *big.Int, scale int32) (string, error) {
	const most = 1000 // of which a power takes no room
	if scale < 0 || scale > most {
		return "", fmt.Errorf("decimals of %d places are not read, only of 0 to %d", scale, most)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(n, power).FloatString(int(scale)), nil
}
