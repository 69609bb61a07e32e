package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// shownDifferences is the number of differences printed for one subject without --all.
const shownDifferences = 8

// A report prints verdicts as they arrive, and counts them.
type report struct {
	out        io.Writer
	commit     string // commit of base
	exceptions []exception
	all        bool // print every difference
	complete   bool // every subject is compared, so that each exception must apply

	met                               map[exception]bool
	compared                          map[string]bool // false if the subject failed or was omitted
	added                             map[string]int
	equal, different, failed, leftOut int
}

// add prints the verdict on one subject.
func (r *report) add(v verdict) {
	if r.met == nil {
		r.met, r.compared, r.added = map[exception]bool{}, map[string]bool{}, map[string]int{}
	}
	for _, name := range v.added {
		r.added[name]++
	}
	r.compared[v.subject] = v.values > 0
	switch {
	case v.err != nil:
		r.failed++
		fmt.Fprintf(r.out, "FAILED    %s: base cannot be measured: %v\n", v.subject, v.err)
	case v.leftOut != "":
		r.leftOut++
		fmt.Fprintf(r.out, "left out  %s: data are missing: %s\n", v.subject, v.leftOut)
	default:
		r.judge(v)
	}
}

// judge prints the differences of a subject, including expected ones.
func (r *report) judge(v verdict) {
	lines, unexpected := r.differences(v)
	switch {
	case unexpected == 0:
		r.equal++
		fmt.Fprintf(r.out, "equal     %s (%d values)\n", v.subject, v.values)
	case v.values == 0: // a command of the working tree failed
		r.different++
		fmt.Fprintf(r.out, "DIFFERS   %s\n", v.subject)
	default:
		r.different++
		fmt.Fprintf(r.out, "DIFFERS   %s (%d of %d values)\n", v.subject, unexpected, v.values)
	}
	for _, line := range lines {
		fmt.Fprintf(r.out, "            %s\n", line)
	}
}

// differences returns a line for each difference to print, and the number of those that no exception covers.
func (r *report) differences(v verdict) (lines []string, unexpected int) {
	for _, d := range v.different {
		text := fmt.Sprintf("%s: base %s, now %s", d.key, d.base, d.now)
		if e, ok := r.exception(v.subject, d.key); ok {
			r.met[e] = true
			lines = append(lines, fmt.Sprintf("expected: %s (%s)", text, e.reason))
			continue
		}
		if unexpected++; r.all || unexpected <= shownDifferences {
			lines = append(lines, text)
		}
	}
	if hidden := unexpected - shownDifferences; hidden > 0 && !r.all {
		lines = append(lines, fmt.Sprintf("and %d more; --all prints them", hidden))
	}
	return lines, unexpected
}

// exception returns the exception that covers a difference.
func (r *report) exception(subject, key string) (exception, bool) {
	i := slices.IndexFunc(r.exceptions, func(e exception) bool { return e.holds(r.commit, subject, key) })
	if i < 0 {
		return exception{}, false
	}
	return r.exceptions[i], true
}

// finish prints the new models and sweeps, the new values, the stale exceptions and the counts. It returns errUnequal if anything
// differs, failed or is stale, or if nothing was compared.
func (r *report) finish(added []string) error {
	if len(added) > 0 {
		fmt.Fprintf(r.out, "new, not compared: %s\n", strings.Join(added, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(r.added)) {
		fmt.Fprintf(r.out, "new value, not compared: %s (of %d)\n", name, r.added[name])
	}
	stale := r.stale()
	for _, e := range stale {
		fmt.Fprintf(r.out, "STALE     exception %s | %s: the value does not differ; delete the line in %s\n", e.subject, e.key, exceptionsFile)
	}
	fmt.Fprintf(r.out, "%d equal, %d different, %d failed, %d left out; %d differences expected, %d exceptions stale\n",
		r.equal, r.different, r.failed, r.leftOut, len(r.met), len(stale))
	switch {
	case r.equal+r.different == 0:
		fmt.Fprintln(r.out, "nothing was compared")
		return errUnequal
	case r.different+r.failed+len(stale) > 0:
		return errUnequal
	}
	return nil
}

// stale returns the exceptions for this commit whose value no longer differs.
func (r *report) stale() []exception {
	var left []exception
	for _, e := range r.exceptions {
		compared, known := r.compared[e.subject]
		if strings.HasPrefix(r.commit, e.base) && !r.met[e] && (compared || r.complete && !known) {
			left = append(left, e)
		}
	}
	return left
}
