package data

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Units are the units of columns of a table, by the names of the columns: the cell `12 kg` is the number 12.
type Units map[string]string

// FromTOML sets u from a TOML value.
func (u *Units) FromTOML(value any) error {
	all, ok := value.(map[string]any)
	*u = Units{}
	for name, unit := range all {
		text, isText := unit.(string)
		if ok = ok && isText && text != ""; !ok {
			break
		}
		(*u)[name] = text
	}
	if !ok {
		return fmt.Errorf(`got %s, want the units of columns, such as { weight = "kg" }`, valueText(value))
	}
	return nil
}

// TOML returns the value in a declaration.
func (u Units) TOML() any {
	if len(u) == 0 {
		return nil
	}
	all := map[string]any{}
	for name, unit := range u {
		all[name] = unit
	}
	return all
}

// measured sets which units and texts are left out of the cells. A file that belongs to no data set need not have the columns.
func (f *csvFile) measured(r reading) error {
	f.absent, f.units, f.dates = without(r.Missing, []string{missingNaN}), nil, r.Dates // "nan" and others are missing in columns of numbers alone
	f.decimal, f.absentAs = r.Decimal, nil
	for _, text := range f.absent {
		if v, missing, ok := cellNumber(text, r.Decimal); ok && !missing {
			f.absentAs = append(f.absentAs, v)
		}
	}
	for name, unit := range r.Units {
		at := slices.Index(f.header, name)
		switch {
		case at >= 0 && f.units == nil:
			f.units = make([]string, len(f.header))
		case at < 0 && r.loose:
			continue
		case at < 0:
			return fmt.Errorf("units: %w", f.missing(name))
		}
		f.units[at] = unit
	}
	return nil
}

// bare leaves the units out of the cells of a row, empties those whose texts are missing, and puts the year of dates first.
func (f *csvFile) bare(cells []string) {
	for i := range cells {
		if f.dates == "" {
			break
		}
		cells[i] = yearFirst(cells[i], f.dates)
	}
	for i := range min(len(cells), len(f.units)) {
		cells[i] = withoutUnit(strings.TrimSpace(cells[i]), f.units[i])
	}
	if len(f.absent) == 0 {
		return
	}
	for i, cell := range cells {
		is := slices.Contains(f.absent, strings.TrimSpace(cell))
		if !is && f.absentAs != nil { // -999.0 is -999
			v, _, ok := cellNumber(cell, f.decimal)
			is = ok && slices.Contains(f.absentAs, v)
		}
		if is {
			cells[i] = ""
		}
	}
}

func withoutUnit(cell, unit string) string {
	if unit == "" {
		return cell
	}
	if rest, ok := strings.CutSuffix(cell, unit); ok {
		if last, _ := utf8.DecodeLastRuneInString(rest); unicode.IsLetter(last) { // that of another unit
			return cell
		}
		return strings.TrimSpace(rest)
	}
	if bare := strings.TrimLeft(cell, "+-"); strings.HasPrefix(bare, unit) {
		return cell[:len(cell)-len(bare)] + strings.TrimSpace(bare[len(unit):])
	}
	return strings.TrimSpace(cell)
}

// unitOf returns what follows the number in a cell, or the sign of a currency before it, as in -$5.
func unitOf(cell string) string {
	const number, longest = "+-0123456789.,'’ \u00a0\u202f", 12
	if first, _ := utf8.DecodeRuneInString(strings.TrimLeft(cell, "+-")); unicode.Is(unicode.Sc, first) {
		return string(first)
	}
	unit := strings.TrimLeft(cell, number)
	if len(unit) > longest || len(unit) == len(cell) || strings.ContainsAny(unit, "0123456789") {
		return ""
	}
	return unit
}
