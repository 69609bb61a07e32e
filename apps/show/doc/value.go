package doc

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"tessera/internal/numeral"
)

// Numbers that say how they are read.
type (
	Percent float64 // a share: 0.5 is 50 %
	Seconds float64 // a duration
	Bytes   int64   // a size
	Exact   float64 // a setting: all its digits
	Fixed3  float64 // three decimals, for numbers of one size such as cosines
	Shape   []int   // shape of an array: 28x28
)

// Spread is a mean with its standard deviation.
type Spread struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
}

// Interval is a range of values, such as a confidence interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Shown is a value with a text of its own for people.
type Shown struct {
	Value any // in JSON
	Text  string
}

// Index is a number that serves as a name, as that of a unit: its text has no separators.
func Index(i int) Shown { return Shown{Value: i, Text: strconv.Itoa(i)} }

// Shaded is a count that pages colour by its share of a whole, as in a confusion matrix.
type Shaded struct {
	Count int
	Share float64
	Good  bool // the colour is that of a good value
}

// Best marks the best value of a row or a column.
type Best struct{ Value any }

// Text returns a value as people read it.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return numeral.None
	case string:
		return v
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case int:
		return numeral.Count(v)
	case int64:
		return numeral.Count(int(v))
	case float64:
		return numeral.Float(v)
	case float32:
		return numeral.Float(float64(v))
	case Percent:
		return numeral.Percent(float64(v))
	case Seconds:
		return numeral.Seconds(float64(v))
	case time.Duration:
		return numeral.Duration(v)
	case Bytes:
		return numeral.Bytes(int64(v))
	case Exact:
		return numeral.Exact(float64(v))
	case Fixed3:
		return numeral.Fixed(float64(v), 3)
	case Shape:
		return numeral.Shape(v)
	case Spread:
		return numeral.Spread(v.Mean, v.Deviation)
	case Interval:
		return numeral.Interval(v.Low, v.High)
	case Shown:
		return v.Text
	case Shaded:
		return numeral.Count(v.Count)
	case Best:
		return Text(v.Value) + " *"
	case []string:
		return strings.Join(v, ", ")
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(value)
}

// plain returns the form of a value that encoding/json writes. Numbers that JSON lacks are null.
func plain(value any) any {
	switch v := value.(type) {
	case Best:
		return plain(v.Value)
	case Shown:
		return plain(v.Value)
	case Shaded:
		return v.Count
	case time.Duration:
		return v.Seconds()
	case Interval:
		return map[string]any{"low": plain(v.Low), "high": plain(v.High)}
	case Spread:
		return map[string]any{"mean": plain(v.Mean), "deviation": plain(v.Deviation)}
	}
	if r := reflect.ValueOf(value); r.IsValid() && r.CanFloat() && (math.IsNaN(r.Float()) || math.IsInf(r.Float(), 0)) {
		return nil
	}
	return value
}
