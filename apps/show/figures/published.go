package figures

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
)

// publishedCSV contains the published values of the study.
//
//go:embed published.csv
var publishedCSV []byte

// Published is one published row of the study; published.csv explains the sources and columns. Values lacks metrics that were
// not published.
type Published struct {
	Source   string // "table 1", "table 2", "notebook", "figure 8", "figure 8 deep"
	Dataset  string
	Model    string
	Declared string // the corresponding shipped model, "" if there is none
	Point
	Note string
}

// PublishedRows returns all published rows, in the order of the tables.
func PublishedRows() []Published {
	rows, err := publishedRows()
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return slices.Clone(rows)
}

var publishedRows = sync.OnceValues(func() ([]Published, error) { return parsePublished(publishedCSV) })

// PublishedCurves returns the points of figure 8 of the study: those of the auto-encoders with a convolutional encoder if deep
// is true, otherwise those of the shallow ones.
func PublishedCurves(deep bool) []Point {
	source := "figure 8"
	if deep {
		source += " deep"
	}
	return pointsOf(func(r Published) bool { return r.Source == source })
}

// PublishedTables returns the points of the tables and notebooks for a data set, labelled by model, p and beta.
func PublishedTables(dataset string) []Point {
	return pointsOf(func(r Published) bool {
		return r.Dataset == dataset && (r.Source == "table 1" || r.Source == "table 2" || r.Source == "notebook")
	})
}

func pointsOf(wanted func(Published) bool) []Point {
	var points []Point
	for _, r := range PublishedRows() {
		if wanted(r) {
			points = append(points, r.Point)
		}
	}
	return points
}

func parsePublished(text []byte) ([]Published, error) {
	read := csv.NewReader(bytes.NewReader(text))
	read.Comment = '#'
	records, err := read.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("published.csv: %w", err)
	}
	var rows []Published
	for i, record := range records[1:] {
		row := Published{Source: record[0], Dataset: record[1], Model: record[2], Declared: record[3], Note: record[14]}
		row.P, row.Beta = math.NaN(), math.NaN()
		for j := 4; j < 14; j++ {
			if record[j] == "" {
				continue
			}
			number, err := strconv.ParseFloat(record[j], 64)
			if err != nil {
				return nil, fmt.Errorf("published.csv: row %d, %s: %w", i+1, records[0][j], err)
			}
			switch name := records[0][j]; name {
			case "p":
				row.P = number
			case "beta":
				row.Beta = number
			default:
				row.Values.Set(name, number)
			}
		}
		row.Label = row.Model
		if !math.IsNaN(row.P) {
			row.Label = fmt.Sprintf("%s p=%v β=%v", row.Model, row.P, row.Beta)
		}
		rows = append(rows, row)
	}
	return rows, nil
}
