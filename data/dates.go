package data

import (
	"fmt"
	"strings"
	"time"
)

// Orders of dates with slashes, the key dates.
const monthDay, dayMonth = "month/day", "day/month"

// yearFirst returns a date with slashes as the ISO date, with its time of day, and every other cell unchanged.
func yearFirst(cell, order string) string {
	date, clock, _ := strings.Cut(strings.TrimSpace(cell), " ")
	layout := "1/2/2006"
	if order == dayMonth {
		layout = "2/1/2006"
	}
	if !strings.Contains(date, "/") {
		return cell
	}
	t, err := time.Parse(layout, date)
	if err != nil {
		return cell
	}
	return strings.TrimSpace(t.Format(time.DateOnly) + " " + clock)
}

// datesHint returns what to do with a date of another order than the declared one, or of which none is declared.
func (r reading) datesHint(text string) string {
	var orders []string
	for _, order := range []string{monthDay, dayMonth} {
		if yearFirst(text, order) != text {
			orders = append(orders, fmt.Sprintf("dates = %q", order))
		}
	}
	switch {
	case orders == nil:
		return "a time of day is no number: write the hours as one, or leave the column out"
	case r.Dates != "":
		return fmt.Sprintf("dates are declared as %s: write all of them in one order, or as 2024-12-31", r.Dates)
	case r.loose:
		return "write it as in the training, or as 2024-12-31"
	}
	return fmt.Sprintf("write %s in the dataset table, the order of its day and month, or leave the column out", strings.Join(orders, " or "))
}
