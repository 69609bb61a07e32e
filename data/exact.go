package data

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cellNumber returns the number of a cell of a table; NaN for a missing one. ok is false for a text.
func cellNumber(cell, decimal string) (v float64, missing, ok bool) {
	cell = strings.TrimSpace(cell)
	plain := cell != "" && decimal != ","
	for i := 0; i < len(cell) && plain; i++ {
		b := cell[i]
		plain = '0' <= b && b <= '9' || b == '.' || b == '-' || b == '+' || b == 'e' || b == 'E'
	}
	if plain {
		if v, err := strconv.ParseFloat(cell, 64); err == nil {
			return v, false, true
		}
	}
	if isMissing(cell) {
		return math.NaN(), true, true
	}
	if v, ok = parseNumber(cell, decimal); !ok {
		v, ok = dateNumber(cell)
	}
	return v, false, ok
}

// dateNumber returns a date, in UTC, as years: 2 July 2023 is 2023.5. Dates of which the day and the month cannot be told apart, 01/02/2006, are no numbers.
func dateNumber(cell string) (years float64, ok bool) {
	for _, layout := range clearLayouts {
		if t, err := time.Parse(layout, cell); err == nil {
			t = t.UTC()
			begin := time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
			return float64(t.Year()) + t.Sub(begin).Hours()/begin.AddDate(1, 0, 0).Sub(begin).Hours(), true
		}
	}
	return 0, false
}

// thousands are numbers with signs between their groups of three digits, by the sign before the fraction. If that one is not declared, 12,345 is none: its
// comma may be that of a fraction.
var thousands = map[string]*regexp.Regexp{
	"":  regexp.MustCompile(`^[-+]?[1-9]\d{0,2}((,\d{3})+(,\d{3}|\.\d+)|(['’]\d{3})+(\.\d+)?|(\p{Zs}\d{3})+(\.\d+)?)$`),
	".": regexp.MustCompile(`^[-+]?[1-9]\d{0,2}((,\d{3})+|(['’]\d{3})+|(\p{Zs}\d{3})+)(\.\d+)?$`),
	",": regexp.MustCompile(`^[-+]?[1-9]\d{0,2}((\.\d{3})+|(['’]\d{3})+|(\p{Zs}\d{3})+)(,\d+)?$`),
}

// parseNumber returns the number that a cell of a text file represents. decimal is the sign before the fraction: "." or ",", "" for a point that was not
// declared. Python's True and False are 1 and 0, (12.00) is -12, as in accounts. Hexadecimal numbers and digits with underscores, which strconv accepts, are not numbers.
func parseNumber(cell, decimal string) (v float64, ok bool) {
	if isBool(cell) {
		return map[bool]float64{true: 1}[strings.EqualFold(cell, "true")], true
	}
	if inner := strings.TrimSuffix(strings.TrimPrefix(cell, "("), ")"); len(inner) == len(cell)-2 && inner != "" && '0' <= inner[0] && inner[0] <= '9' {
		v, ok := parseNumber(inner, decimal)
		return -v, ok
	}
	plain := cell
	if decimal == "," {
		plain = strings.Replace(cell, ",", ".", 1)
	}
	if strings.ContainsAny(cell, "_xX") {
		return 0, false
	}
	v, err := strconv.ParseFloat(plain, 64)
	if err == nil && (decimal != "," || !strings.Contains(cell, ".")) {
		return v, v-v == 0
	}
	if len(cell) < len("1.000") || !thousands[decimal].MatchString(cell) {
		return 0, false
	}
	v, err = strconv.ParseFloat(strings.Map(func(r rune) rune {
		switch {
		case string(r) == cmp.Or(decimal, "."):
			return '.'
		case '0' <= r && r <= '9' || r == '-' || r == '+':
			return r
		}
		return -1
	}, cell), 64)
	return v, err == nil
}

// isBool reports whether a cell is true or false, as pandas and spreadsheets write it.
func isBool(cell string) bool {
	return strings.EqualFold(cell, "true") || strings.EqualFold(cell, "false")
}

// narrow returns the float32 nearest to the number that a cell represents; v is the nearest float64. Rounding twice is wrong only if v
// lies in the middle between two float32 values.
func narrow(cell string, v float64) float32 {
	const fraction, half = 1<<29 - 1, 1 << 28
	if math.Float64bits(v)&fraction == half {
		if exact, err := strconv.ParseFloat(strings.TrimSpace(cell), 32); err == nil {
			return float32(exact)
		}
	}
	return float32(v)
}

// spans contains, for each value of a sample, the range of the numbers in a file that float32 does not represent exactly, and of their
// neighbours. Its zero value is ready to use; numbers are added row by row.
type spans struct {
	low, high []float64
	inexact   []bool
	over      float64 // first number that float32 cannot hold
	zeroed    int     // numbers other than 0 that become 0
}

func newSpans(size int) *spans {
	s := &spans{low: make([]float64, size), high: make([]float64, size), inexact: make([]bool, size)}
	for i := range size {
		s.low[i], s.high[i] = math.Inf(1), math.Inf(-1)
	}
	return s
}

func (s *spans) add(i int, v float64) {
	if v-v != 0 {
		return
	}
	s.low[i], s.high[i] = min(s.low[i], v), max(s.high[i], v)
	rounded := float32(v)
	if float64(rounded) == v {
		return
	}
	s.inexact[i] = true
	switch {
	case math.IsInf(float64(rounded), 0) && s.over == 0:
		s.over = v
	case rounded == 0:
		s.zeroed++
	}
}

func (s *spans) merge(other *spans) {
	if s == nil || other == nil {
		return
	}
	for i := range s.low {
		s.low[i], s.high[i], s.inexact[i] = min(s.low[i], other.low[i]), max(s.high[i], other.high[i]), s.inexact[i] || other.inexact[i]
	}
	s.over, s.zeroed = cmp.Or(s.over, other.over), s.zeroed+other.zeroed
}

// differ reports whether a value of a sample has different numbers, which float32 may not tell apart.
func (s *spans) differ(i int) bool { return s != nil && s.low[i] < s.high[i] }

// coarsest is the smallest accepted ratio between the range of a value and the distance between neighbouring float32 numbers in it.
const coarsest = 1000

// coarse lists the values of a sample whose differences float32 hardly represents.
func (s *spans) coarse() (list []int) {
	for i := range s.low {
		size := max(math.Abs(s.low[i]), math.Abs(s.high[i]))
		if s.inexact[i] && s.high[i] > s.low[i] && coarsest*spacing(size) > s.high[i]-s.low[i] {
			list = append(list, i)
		}
	}
	return list
}

// spacing returns the distance between the float32 number nearest to v and the next one.
func spacing(v float64) float64 {
	f := float32(v)
	return float64(math.Nextafter32(f, float32(math.Inf(1)))) - float64(f)
}

// What keeps differences of numbers that float32 hardly represents.
const (
	remedySaved = "subtract an offset before they are saved"
	remedyScale = `write scale = "standardise" in the dataset table, which subtracts the mean before it rounds, or ` + remedySaved
)

// notes returns warnings about numbers of a file at path that float32 does not represent well. names are the names of the values, if
// they have names. remedy is what keeps differences of rounded numbers; "" if a mean or minimum is subtracted before they are rounded.
func (s *spans) notes(path string, names []string, remedy string) (notes []string) {
	if s == nil {
		return nil
	}
	name := func(i int) string { return valueName(names, i) }
	if list := s.coarse(); len(list) > 0 && remedy != "" {
		i, others := list[0], ""
		if n := len(list) - 1; n > 0 {
			others = fmt.Sprintf(", and %d others", n)
		}
		notes = append(notes, fmt.Sprintf("%s: %s%s: the numbers from %s to %s are rounded to steps of %.3g, the precision of float32: %s", inLine(path), name(i), others,
			long(s.low[i]), long(s.high[i]), spacing(max(math.Abs(s.low[i]), math.Abs(s.high[i]))), remedy))
	}
	if s.zeroed > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d numbers are smaller than float32 represents and become 0: multiply them by a power of ten before they are saved", inLine(path), s.zeroed))
	}
	return notes
}

func long(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// overflow returns the error for a number that float32 cannot hold, nil if there is none.
func (s *spans) overflow() error {
	if s == nil || s.over == 0 {
		return nil
	}
	return fmt.Errorf("got %g, which float32 cannot hold (at most %.4g): divide the numbers before they are saved", s.over, math.MaxFloat32)
}

// closest is the ratio between the size and the range of a value from which scaling needs numbers in float64: rounding them to float32
// would change a scaled value by more than 2^-20.
const closest = 16

// close reports whether values lie so close together, compared with their size, that they are scaled in float64.
func (s statistic) close() bool {
	return s.max > s.min && max(math.Abs(s.min), math.Abs(s.max)) > closest*(s.max-s.min)
}

// setShift sets the number that is subtracted from value i. If exact is set, Rest holds what float32 rounds off.
func (s *Scaling) setShift(i int, shift float64, exact bool) {
	s.Shift[i] = float32(shift)
	if exact {
		if s.Rest == nil {
			s.Rest = make([]float32, len(s.Shift))
		}
		s.Rest[i] = float32(shift - float64(s.Shift[i]))
	}
}

// ShiftOf returns the number that is subtracted from value i, in float64.
func (s *Scaling) ShiftOf(i int) float64 {
	if s.Rest == nil {
		return float64(s.Shift[i])
	}
	return float64(s.Shift[i]) + float64(s.Rest[i])
}

// IsExact reports whether numbers are subtracted in float64, because samples lie close together compared with their size; false for a
// nil scaling.
func (s *Scaling) IsExact() bool { return s != nil && s.Rest != nil }

// Names of the tensors in which a model keeps its scaling.
const (
	ShiftName  = "data/shift"
	RestName   = "data/shift_rest"
	FactorName = "data/factor"
	MixName    = "data/mix"
	UnmixName  = "data/unmix"
)

// Tensors calls add for each tensor of a scaling; none for nil.
func (s *Scaling) Tensors(add func(name string, shape []int, values []float32)) {
	if s == nil {
		return
	}
	n := len(s.Shift)
	add(ShiftName, []int{n}, s.Shift)
	add(FactorName, []int{n}, s.Factor)
	if s.IsExact() {
		add(RestName, []int{n}, s.Rest)
	}
	if s.Mix != nil {
		add(MixName, []int{n, n}, s.Mix)
		add(UnmixName, []int{n, n}, s.Unmix)
	}
}

// Centre writes x - shift, computed in float64, for samples of an exact scaling; see [Scaling.ApplyCentred]. dst has the length of x.
func (s *Scaling) Centre(dst []float32, x []float64) {
	for i, v := range x {
		dst[i] = float32(v - s.ShiftOf(i%len(s.Shift)))
	}
}

// ApplyCentred scales samples, from which the shift has been subtracted, in place.
func (s *Scaling) ApplyCentred(samples []float32) {
	n := len(s.Shift)
	for rest := samples; len(rest) >= n; rest = rest[n:] {
		for i := range n {
			rest[i] *= s.Factor[i]
			if s.Clip {
				rest[i] = min(max(rest[i], 0), 1)
			}
		}
	}
	mixed(samples, s.Mix, n)
}

// Split returns an exact scaling as two: the first subtracts the shift, in float64, the second scales the differences, which float32
// represents well. Any other scaling is the second; the first is nil.
func (s *Scaling) Split() (shift, rest *Scaling) {
	if !s.IsExact() {
		return nil, s
	}
	shift = &Scaling{Shift: s.Shift, Rest: s.Rest, Factor: slices.Repeat([]float32{1}, len(s.Shift))}
	return shift, s.After(shift)
}

// After returns the scaling of samples from which the first part of a [Scaling.Split] has subtracted its shift; s if shift is nil.
func (s *Scaling) After(shift *Scaling) *Scaling {
	if shift == nil {
		return s
	}
	rest := Scaling{Factor: shift.Factor}
	if s != nil {
		rest = *s
	}
	rest.Shift, rest.Rest = make([]float32, len(shift.Shift)), nil
	for i := range rest.Shift {
		if rest.Shift[i] = float32(-shift.ShiftOf(i)); s != nil {
			rest.Shift[i] = float32(s.ShiftOf(i) - shift.ShiftOf(i))
		}
	}
	return &rest
}

// Restore returns samples minus the shift of an exact scaling as numbers of the data set, computed in float64 and rounded to the decimal
// places that float32 has for the differences.
func (s *Scaling) Restore(centred []float32) []float64 {
	all := make([]float64, len(centred))
	for k, v := range centred {
		i := k % len(s.Shift)
		size := math.Max(math.Abs(float64(v)), 1/math.Abs(float64(s.Factor[i])))
		unit := math.Pow(10, math.Floor(-math.Log10(spacing(size))))
		all[k] = float64(v) + s.ShiftOf(i)
		if rounded := math.Round(all[k]*unit) / unit; !math.IsInf(rounded, 0) && rounded == rounded {
			all[k] = rounded
		}
	}
	return all
}

// Coarse lists the values of a sample whose differences float32 hardly represents before an exact scaling; none for another scaling.
func (s *Scaling) Coarse() (list []int) {
	if !s.IsExact() {
		return nil
	}
	for i := range s.Shift {
		if coarsest*spacing(s.ShiftOf(i)) > 1/math.Abs(float64(s.Factor[i])) {
			list = append(list, i)
		}
	}
	return list
}

// wideRow writes the values of sample i to dst: before scaling as they are in the file, in float64. row is memory for a sample.
func (m *Images) wideRow(dst []float64, row []float32, i int) {
	if m.isWide() && m.scaling == nil {
		copy(dst, m.wideOf(m.row(i)))
		return
	}
	m.copyRow(row, i)
	for j, v := range row {
		dst[j] = float64(v)
	}
}

// Centred returns all samples minus the shift of an exact scaling, computed in float64 from the numbers in the file; NaN for missing and
// hidden entries. It returns nil for another scaling.
func (m *Images) Centred(s *Scaling) []float32 {
	if !s.IsExact() {
		return nil
	}
	m = m.Scaled(nil)
	all, row, wide := make([]float32, m.n*m.pixels), make([]float32, m.pixels), make([]float64, m.pixels)
	for i := range m.n {
		dst := all[i*m.pixels : (i+1)*m.pixels]
		m.wideRow(wide, row, i)
		s.Centre(dst, wide)
		m.markMissing(dst, i)
	}
	return all
}
