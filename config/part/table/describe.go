package table

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Description describes one registered part.
type Description struct {
	Name  string           `json:"name"`
	About string           `json:"about"`
	Keys  []KeyDescription `json:"keys"`
}

// KeyDescription is one key of a part's table.
type KeyDescription struct {
	Key      string   `json:"key"`
	Want     string   `json:"want"`              // "an integer > 0"
	Default  string   `json:"default,omitempty"` // TOML text of the default; "" if the key is required or has no default
	Required bool     `json:"required,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	About    string   `json:"about"`
}

// Describe lists the parts of one vocabulary with their keys and defaults, sorted by name. ok is false if there is no
// such vocabulary.
func (l *Language) Describe(title string) (list []Description, ok bool) {
	i := slices.IndexFunc(l.Vocabularies, func(v *Vocabulary) bool { return v.Title == title })
	if i < 0 {
		return nil, false
	}
	v := l.Vocabularies[i]
	for _, name := range v.Names() {
		list = append(list, Description{Name: name, About: v.About(name), Keys: l.keysOf(v, name)})
	}
	return list, true
}

// keysOf describes the keys in the table of one part: the keys of the part and of the struct around it. It omits keys
// that the struct's method Refused() []string lists.
func (l *Language) keysOf(v *Vocabulary, name string) []KeyDescription {
	part, _ := v.New(name)
	fields := Fields(part)
	if v.Around != nil {
		table := reflect.New(v.Around)
		own, s := l.fieldsOf(table.Elem(), name)
		s.value.Set(reflect.ValueOf(part))
		setDefaults(table.Interface())
		not := append(refusedOf(table.Interface()), s.selector.Key)
		fields = append(fields, slices.DeleteFunc(own, func(f Field) bool { return slices.Contains(not, f.Key) })...)
	}
	keys := []KeyDescription{}
	w := &Writer{Language: l}
	for _, f := range fields {
		k := KeyDescription{Key: f.Key, Want: f.wanted(), Required: f.Required, Choices: f.Choices(), About: f.Doc}
		if c := w.field(f, ""); c != nil && !c.header && !f.Required {
			k.Default = c.String()
		}
		keys = append(keys, k)
	}
	return keys
}

// bounds is the set of values of a `want` tag: "> 0", ">= 0", "< 1", "<= 1", "in (0,1)", or an interval with square
// brackets for ends that are included. The empty tag allows every number except NaN. No tag allows infinities.
type bounds struct {
	low, high         float64
	openLow, openHigh bool
	infinite          bool
	malformed         error
}

var wants = regexp.MustCompile(`^(>|>=|<|<=) (\S+)$|^in ([\[(])([^,]+),([^,]+)([\])])$`)

func boundsOf(want string) bounds {
	b := bounds{low: math.Inf(-1), high: math.Inf(1), infinite: want == ""}
	m := wants.FindStringSubmatch(want)
	switch {
	case b.infinite:
		return b
	case m == nil:
		b.malformed = fmt.Errorf("malformed want %q", want)
		return b
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if d, other := time.ParseDuration(text); err != nil && other == nil { // of a [time.Duration]
			return float64(d)
		}
		if err != nil {
			b.malformed = fmt.Errorf("malformed want %q", want)
		}
		return v
	}
	switch m[1] {
	case ">", ">=":
		b.low, b.openLow = number(m[2]), m[1] == ">"
	case "<", "<=":
		b.high, b.openHigh = number(m[2]), m[1] == "<"
	default:
		b.low, b.openLow, b.high, b.openHigh = number(m[4]), m[3] == "(", number(m[5]), m[6] == ")"
	}
	return b
}

// hold reports whether v is in the set.
func (b bounds) hold(v float64) bool {
	return (v > b.low || v == b.low && !b.openLow) && (v < b.high || v == b.high && !b.openHigh) && (b.infinite || !math.IsInf(v, 0)) && b.malformed == nil
}
