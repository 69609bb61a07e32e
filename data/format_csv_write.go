package data

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
)

// writeCSV writes rows of values with a first line of column names: name and label where they are known, then those of the
// values, by default their numbers. A value has as many digits as a float32 needs.
func writeCSV(w io.Writer, size int, values []float32, about Rows) error {
	out := csv.NewWriter(w)
	labels := about.labelTexts()
	var header []string
	if about.Names != nil {
		header = append(header, nameColumn)
	}
	if labels != nil {
		header = append(header, labelColumn)
	}
	header = headed(header, size, about.Columns)
	if err := out.Write(header); err != nil {
		return err
	}
	for row := range len(values) / size {
		cells := header[:0]
		if about.Names != nil {
			cells = append(cells, about.Names[row])
		}
		if labels != nil {
			cells = append(cells, labels[row])
		}
		for _, v := range values[row*size : (row+1)*size] {
			cells = append(cells, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// headed returns the first line of a .csv file: the columns before the values, then the names of the values. The values are numbered
// if they have no names, if one is named as a column before them, or if the line would be numbers alone, as that of a sample.
func headed(before []string, size int, names []string) []string {
	line := slices.Concat(before, names)
	twice := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(before, name) })
	if names != nil && !twice && isHeader(line) {
		return line
	}
	line = slices.Clone(before)
	for i := range size {
		line = append(line, strconv.Itoa(i))
	}
	return line
}
