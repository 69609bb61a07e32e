// Package numeral writes numbers for people. Every printer, page and figure takes its digits from here, so that one number has one
// text everywhere. Files for programs (CSV, JSON, TOML) keep all digits and do not use it.
package numeral

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tessera/internal/lists"
)

// None is the text of a number that is unknown or does not apply.
const None = "-"

// Float writes four significant digits, "-" for NaN. From 10,000 to ten millions it writes whole numbers in groups of three digits.
func Float(v float64) string { return Digits(v, 4) }

// Digits writes n significant digits like [Float].
func Digits(v float64, n int) string {
	if math.IsNaN(v) {
		return None
	}
	if v == 0 {
		return "0" // and not -0
	}
	text := strconv.FormatFloat(v, 'g', n, 64)
	if math.Abs(v) < 1e7 && strings.Contains(text, "e+") {
		return Count(int(math.Round(v)))
	}
	return text
}

// Exact writes the fewest digits that identify a setting or a threshold: 0.1 and not 0.1000.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Fixed writes a fixed number of decimals, "-" for NaN, for columns of numbers of one size, such as cosines.
func Fixed(v float64, decimals int) string {
	if math.IsNaN(v) {
		return None
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Count writes a whole number in groups of three digits: 9,999 and 157,684.
func Count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Of writes a number with its noun: "1 image", "10,000 images".
func Of(n int, noun string) string {
	if stem, ok := strings.CutSuffix(noun, "ry"); ok && n != 1 { // entry
		noun = stem + "ries"
	} else if strings.HasSuffix(noun, "ss") && n != 1 { // class
		noun += "es"
	} else if n != 1 {
		noun += "s"
	}
	return Count(n) + " " + noun
}

// Percent writes a share with one decimal at most: 0.932 is "93.2 %", 1 is "100 %".
func Percent(share float64) string {
	if math.IsNaN(share) {
		return None
	}
	return strings.TrimSuffix(Fixed(100*share, 1), ".0") + " %"
}

// Spread writes a mean with its deviation, "0.0788 ± 0.006"; the mean alone where the deviation is 0 or NaN.
func Spread(mean, deviation float64) string {
	if !(deviation > 0) {
		return Float(mean)
	}
	return Float(mean) + " ± " + Digits(deviation, 2)
}

// Interval writes the ends of an interval: "[0.001, 0.0016]".
func Interval(low, high float64) string { return "[" + Float(low) + ", " + Float(high) + "]" }

// P writes a p-value with two digits as it follows the letter p: "= 0.035", "< 0.0001" below that.
func P(p float64) string {
	if p < 1e-4 {
		return "< 0.0001"
	}
	return "= " + Digits(p, 2)
}

// Seconds writes a duration in one unit, with three digits below two minutes: "4.2 ms", "75 s", "12 min", "2.5 h", "4.2 days".
func Seconds(s float64) string {
	const year = 365 * 86400
	rounded := math.Round(s)
	switch {
	case math.IsNaN(s):
		return None
	case s > 100*year:
		return "over 100 years"
	case s > 0 && s < 1e-3:
		return Digits(s*1e6, 3) + " µs"
	case s > 0 && s < 0.1:
		return Digits(s*1e3, 3) + " ms"
	case s < 10:
		return strings.TrimSuffix(Fixed(s, 1), ".0") + " s"
	case rounded < 120:
		return Fixed(s, 0) + " s"
	case rounded < 7200:
		return Fixed(s/60, 0) + " min"
	case s < 48*3600:
		return strings.TrimSuffix(Fixed(s/3600, 1), ".0") + " h"
	}
	return strings.TrimSuffix(Fixed(s/86400, 1), ".0") + " days"
}

// Duration writes a duration like [Seconds].
func Duration(d time.Duration) string { return Seconds(d.Seconds()) }

// Bytes writes a size in decimal units with three digits: "512 B", "3.2 MB".
func Bytes(n int64) string { return scaled(float64(n), "B") }

var byteUnits = []struct {
	name string
	size float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}}

// ParseBytes reads a number of bytes with its unit, such as "2GB", "500 MiB" or "1gb": units of 1000 (KB, MB, GB, TB) or 1024 (KiB, MiB, GiB, TiB).
func ParseBytes(text string) (n int64, ok bool) {
	text = strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	for _, u := range byteUnits {
		number, is := strings.CutSuffix(text, strings.ToUpper(u.name))
		if !is {
			continue
		}
		v, err := strconv.ParseFloat(number, 64)
		size := math.Round(v * u.size)
		return int64(size), err == nil && size >= 0 && size < math.MaxInt64/2 && !strings.ContainsAny(number, "XP_")
	}
	return 0, false
}

// ExactBytes writes a number of bytes in the unit that gives the shortest text without loss, as [ParseBytes] reads it; "" for 0.
func ExactBytes(size int64) string {
	text := ""
	for _, u := range byteUnits {
		n := float64(size) / u.size
		if short := strconv.FormatFloat(n, 'f', -1, 64) + u.name; n >= 1 && int64(math.Round(n*u.size)) == size && (text == "" || len(short) < len(text)) {
			text = short
		}
	}
	return text
}

// Floats writes the size of n float32 values like [Bytes].
func Floats(n int) string { return scaled(4*float64(n), "B") }

// Operations writes a number of floating-point operations: "3.2 MFLOP".
func Operations(n float64) string { return scaled(n, "FLOP") }

func scaled(v float64, unit string) string {
	prefixes := []string{"", "k", "M", "G", "T", "P"}
	i := 0
	for ; math.Abs(v) >= 999.5 && i < len(prefixes)-1; i++ {
		v /= 1000
	}
	return fmt.Sprintf("%.3g %s%s", v, prefixes[i], unit)
}

// Shape writes the shape of an array: "28x28", "40"; "" for a scalar.
func Shape(shape []int) string {
	texts := lists.Map(shape, strconv.Itoa)
	return strings.Join(texts, "x")
}
