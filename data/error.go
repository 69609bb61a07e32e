package data

import (
	"strconv"
	"strings"
)

// Error is for data that are missing, fail their checksum or have the wrong size or format. It has the place, the problem
// and what to do.
type Error struct {
	Dataset string // the name of the data set, "" for a file that belongs to none
	Path    string // the file or folder
	Problem string // what is wrong with it
	Hint    string // what to do, "" where nothing is known
	Err     error  // the cause, nil where there is none
}

// NotFound is the problem of a file or folder that is not there.
const NotFound = "not found"

// Error implements error: `fashion-mnist: PATH: PROBLEM: CAUSE; HINT`.
func (e *Error) Error() string {
	var parts []string
	for _, s := range []string{e.Dataset, inLine(e.Path), e.Problem} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	text := strings.Join(parts, ": ")
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// inLine returns a name for a message of one line: quoted if it holds a line feed.
func inLine(name string) string {
	if strings.Contains(name, "\n") {
		return strconv.Quote(name)
	}
	return name
}
