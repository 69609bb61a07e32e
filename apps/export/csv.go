package export

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"tessera/internal/train"
	"tessera/metrics"
)

// The parts of a CSV file.
const (
	trainingPart = "training" // one line per epoch
	atomsPart    = "atoms"    // one line per atom
)

func init() {
	Registry.Register("csv", "CSV: the training, one line per epoch, or the atoms", func() Format {
		return Format{Extension: ".csv", Parts: parts(trainingPart, atomsPart), Write: writeCSV}
	})
}

// writeCSV writes comma-separated values. The part "training" contains the values of metrics.jsonl, one line per epoch,
// with empty cells for values that are not applicable. The part "atoms" contains one line per atom: the number of its
// unit and the values of the atom in row-major order, in columns with the names that the values have in the file of the training.
func writeCSV(w io.Writer, r *Run, part string) error {
	lines, err := linesOf(r, part)
	if err != nil {
		return err
	}
	c := csv.NewWriter(w)
	return errors.Join(c.WriteAll(lines), c.Error())
}

func linesOf(r *Run, part string) ([][]string, error) {
	if part == trainingPart {
		epochs, err := r.History()
		if err == nil && len(epochs) == 0 {
			err = errors.New("the run has no metrics.jsonl, or no epoch has finished")
		}
		return trainingLines(epochs), err
	}
	a := r.Atoms()
	if a == nil {
		return nil, errors.New("the model has no atoms")
	}
	return atomLines(a, r.atomNames()), nil
}

func trainingLines(epochs []train.Epoch) [][]string {
	var names []string
	for _, e := range epochs {
		for _, v := range e.Values {
			if !slices.Contains(names, v.Name) && v.Name != "crc32" {
				names = append(names, v.Name)
			}
		}
	}
	lines := [][]string{names}
	for _, e := range epochs {
		line := make([]string, len(names))
		for i, name := range names {
			if number, ok := e.Values.Number(name); ok {
				line[i] = strconv.FormatFloat(number, 'g', -1, 64)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// atomLines returns a line for each atom. Without names of the values they are numbered.
func atomLines(a *metrics.Atoms, names []string) [][]string {
	pixels := len(a.Values) / max(1, a.Count)
	if len(names) != pixels {
		names = nil
		for i := range pixels {
			names = append(names, fmt.Sprint("value_", i))
		}
	}
	lines := [][]string{append([]string{"unit"}, names...)}
	for j := range a.Count {
		line := []string{strconv.Itoa(j)}
		for _, v := range a.Values[j*pixels : (j+1)*pixels] {
			line = append(line, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		lines = append(lines, line)
	}
	return lines
}
