package data

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MatrixMarket (https://math.nist.gov/MatrixMarket/formats.html): a banner, comments, sizes, and entries, of a triangle if symmetric.
func init() {
	RegisterFormat(Format{Dataset: "triples", Sort: EntryFiles, Suffixes: []string{".mtx", ".mtx.gz"}, Is: begins("%%MatrixMarket"), Open: openMTX})
}

var mtxBanner = regexp.MustCompile(`(?i)^%%MatrixMarket matrix coordinate (real|double|integer|pattern) (general|symmetric|skew-symmetric)$`)

func openMTX(ctx context.Context, path string, _ *Files) (Opened, error) {
	m := &Matrix{}
	m.Each = func(ctx context.Context, do eachEntry) error { return m.readMTX(ctx, path, do) }
	return Opened{Matrix: m}, m.readMTX(ctx, path, nil)
}

// readMTX reads the sizes and, unless do is nil, the entries.
func (m *Matrix) readMTX(ctx context.Context, path string, do eachEntry) error {
	text, err := openText(ctx, path)
	if err != nil {
		return err
	}
	defer text.Close()
	lines, line := bufio.NewScanner(text), 0
	next := func(numbers, least int) (cells []string, n [3]int, err error) { // the next line, which begins with whole numbers from least
		for len(cells) == 0 || cells[0][0] == '%' && line > 1 {
			if line++; !lines.Scan() {
				return nil, n, cmp.Or(lines.Err(), fmt.Errorf("line %d: is cut short", line))
			}
			cells = strings.Fields(lines.Text())
		}
		for i := range min(numbers, len(cells)) {
			if n[i], err = strconv.Atoi(cells[i]); err != nil || n[i] < least || n[i] > mostRows {
				return nil, n, fmt.Errorf("line %d: got %.40q, want a whole number from %d to %d", line, cells[i], least, mostRows)
			}
		}
		return cells, n, nil
	}
	cells, _, err := next(0, 0)
	banner := mtxBanner.FindStringSubmatch(strings.ToLower(strings.Join(cells, " ")))
	if err != nil || banner == nil {
		return cmp.Or(err, fmt.Errorf("line 1: got %.80q, want matrix coordinate, real, integer or pattern, general, symmetric or skew-symmetric", strings.Join(cells, " ")))
	}
	want, sign := map[bool]int{true: 2, false: 3}[banner[1] == "pattern"], map[string]float32{"symmetric": 1, "skew-symmetric": -1}[banner[2]]
	_, sizes, err := next(3, 0)
	m.Rows, m.Columns = sizes[0], sizes[1]
	if err = cmp.Or(err, sparseShape(sizes, text.most/2)); do == nil || err != nil {
		return err
	}
	for range sizes[2] {
		cells, n, err := next(2, 1)
		v := float32(1)
		if err == nil && (len(cells) != want || n[0] > sizes[0] || n[1] > sizes[1]) {
			err = fmt.Errorf("line %d: got %.80q, want an entry of %d rows and %d columns", line, lines.Text(), sizes[0], sizes[1])
		} else if err == nil && want == 3 {
			v, err = entryValue(line, cells[2])
		}
		for k := 0; err == nil && k < 2 && (k == 0 || sign != 0 && n[0] != n[1]); k++ { // the entry and, if there is one, its mirror image
			err = do(line, n[k]-1, n[1-k]-1, v)
			v *= sign
		}
		if err != nil {
			return err
		}
	}
	if cells, _, _ := next(0, 0); cells != nil {
		return fmt.Errorf("line %d: has more entries than %d", line, sizes[2])
	}
	return lines.Err()
}
