package data

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// Where are conditions that the rows of a table must meet, all of them: `tissue = lung`, `age >= 18`, `tissue in lung, heart`. Numbers are
// compared as numbers, other cells as texts. An empty cell is not equal to a number, and neither less nor greater.
type Where []string

// FromTOML sets w from a TOML value.
func (w *Where) FromTOML(value any) error {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	*w = nil
	for _, one := range list {
		text, _ := one.(string)
		if len(conditions(text)) == 0 {
			return fmt.Errorf(`got %s, want conditions on columns, such as "tissue = lung", "age >= 18" (a number) or "tissue in lung, heart"`, valueText(one))
		}
		*w = append(*w, text)
	}
	return nil
}

// TOML returns the value in a declaration.
func (w Where) TOML() any {
	switch len(w) {
	case 0:
		return nil
	case 1:
		return w[0]
	}
	return []string(w)
}

// condition is one condition on the cells of a row.
type condition struct {
	name    string
	column  int
	sign    string
	texts   []string
	decimal string
	list    []string // the texts in a list after !=, which are no list; nil if there is none, or if a cell is this text
	listed  bool     // a cell is in the list
}

var signs = regexp.MustCompile(`<=|>=|!=|=|<|>|\sin\s`)

// conditions returns the ways to read a text as a condition: names of columns and values may have signs in them.
func conditions(text string) (list []condition) {
	for _, at := range signs.FindAllStringIndex(text, -1) {
		c := condition{name: strings.TrimSpace(text[:at[0]]), sign: strings.TrimSpace(text[at[0]:at[1]])}
		than := strings.TrimSpace(text[at[1]:])
		if c.texts = []string{than}; c.sign == "in" {
			c.texts = strings.Split(than, ",")
		}
		if _, missing, number := cellNumber(than, "."); c.name != "" && than != "" && (number && !missing || !c.orders()) {
			list = append(list, c)
		}
	}
	return list
}

func (c condition) orders() bool { return c.sign[0] == '<' || c.sign[0] == '>' }

// only leaves out the rows of a table that do not meet the conditions.
func (f *csvFile) only(r reading) error {
	f.where = nil
	for _, text := range r.Where {
		list := conditions(text)
		i := slices.IndexFunc(list, func(c condition) bool { return slices.Contains(f.header, c.name) })
		if i < 0 {
			return fmt.Errorf("where %q: %w", text, f.missing(append(list, condition{name: text})[0].name))
		}
		c := list[i]
		for _, other := range list[i+1:] {
			const and = " and "
			if k := strings.LastIndex(other.name, and); k >= 0 && slices.Contains(f.header, strings.TrimSpace(other.name[k+len(and):])) {
				return fmt.Errorf("where %q: has two conditions: want a list of them, such as where = [%q, ...]", text, strings.TrimSpace(other.name[:k]))
			}
		}
		if c.list = nil; c.sign == "!=" && strings.Contains(c.texts[0], ",") {
			c.list = lists.Map(strings.Split(c.texts[0], ","), strings.TrimSpace)
		}
		c.column, c.decimal = slices.Index(f.header, c.name), r.Decimal
		f.where = append(f.where, c)
	}
	return nil
}

// keeps reports whether a row meets the conditions, and counts it.
func (f *csvFile) keeps(row tableRow) (bool, error) {
	for i := range f.where {
		f.where[i].look(strings.TrimSpace(row.cells[f.where[i].column]))
	}
	for _, c := range f.where {
		ok, err := c.holds(row.cells[c.column])
		if err != nil {
			return false, fmt.Errorf("line %d, column %.60q: %w", row.line, f.header[c.column], err)
		}
		if !ok {
			f.left++
			return false, nil
		}
	}
	f.kept++
	return true, nil
}

// look compares a cell with the list after !=.
func (c *condition) look(cell string) {
	switch {
	case c.list == nil:
	case cell == c.texts[0]:
		c.list = nil
	default:
		c.listed = c.listed || slices.Contains(c.list, cell)
	}
}

// misread returns the error for a list after !=, which a cell is not equal to as a whole, but to one of its texts.
func (f *csvFile) misread() error {
	for _, c := range f.where {
		if c.list != nil && c.listed {
			return fmt.Errorf("where \"%s != %s\": no cell is %q, and != takes no list: want where = [%s]", c.name, c.texts[0], c.texts[0],
				strings.Join(lists.Map(c.list, func(text string) string { return strconv.Quote(c.name + " != " + text) }), ", "))
		}
	}
	return nil
}

func (c condition) holds(cell string) (bool, error) {
	cell = strings.TrimSpace(cell)
	v, missing, number := cellNumber(cell, c.decimal)
	if c.orders() {
		if !number {
			return false, fmt.Errorf("got %.40q, but where compares it with a number", cell)
		}
		than, _, _ := cellNumber(c.texts[0], ".")
		at := order(cell, c.texts[0], v, than)
		return !missing && (at < 0 && c.sign[0] == '<' || at > 0 && c.sign[0] == '>' || at == 0 && len(c.sign) > 1), nil
	}
	equal := slices.ContainsFunc(c.texts, func(text string) bool {
		text = strings.TrimSpace(text)
		than, _, numbers := cellNumber(text, ".")
		return cell == text || numbers && number && !missing && order(cell, text, v, than) == 0
	})
	return equal == (c.sign != "!="), nil
}

// order compares the numbers v and than of two texts: whole ones exactly, also those that float64 rounds, such as long identifiers.
func order(cell, text string, v, than float64) int {
	if exact := float64(1 << 53); math.Abs(v) >= exact && math.Abs(than) >= exact {
		a, whole := new(big.Int).SetString(cell, 10)
		b, also := new(big.Int).SetString(text, 10)
		if whole && also {
			return a.Cmp(b)
		}
	}
	return cmp.Compare(v, than)
}

// keptRows says how many rows the conditions of a table keep.
func (f *csvFile) keptRows(w Where) string {
	return fmt.Sprintf("%s of %d, where %s", numeral.Of(f.kept, "row"), f.kept+f.left, strings.Join(w, " and "))
}
