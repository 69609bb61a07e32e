package page

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"tessera/metrics"
)

// round keeps four significant digits, so that the data of a page stay small; what is not finite becomes 0.
func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

// short prints a number with four significant digits.
func short(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// grouped prints a whole number with commas: 10,000.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// spent prints seconds in words.
func spent(seconds float64) string {
	switch s := int(math.Round(seconds)); {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return fmt.Sprintf("%d min", (s+30)/60)
	default:
		return fmt.Sprintf("%.1f h", float64(s)/3600)
	}
}

// plain removes the marks of Markdown from a text.
func plain(text string) string { return strings.NewReplacer("`", "", `\|`, "|").Replace(text) }

// elsewhere ends a description with what a reader of a page does not have.
var elsewhere = regexp.MustCompile(`, as in (?:later notebooks|tables)[^;]*$`)

// aboutOf describes a measure.
func aboutOf(m metrics.Measure) string { return elsewhere.ReplaceAllString(plain(m.Summary()), "") }

func compare(a, b float64) int { return cmp.Compare(a, b) }

// nounOf is what one sample of a shape is called: "image", or "sample" of vectors.
func nounOf(shape []int) string {
	if len(shape) == 1 {
		return "sample"
	}
	return "image"
}

// article puts "a" or "an" before a noun of nounOf.
func article(noun string) string {
	if noun == "image" {
		return "an image"
	}
	return "a " + noun
}

// plural is "1 image" or "2 images".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}
