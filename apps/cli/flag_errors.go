package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The errors of the command-line library whose words are not for users.
var (
	together = regexp.MustCompile(`^if any flags in the group \[.*\] are set none of the others can be; \[(.*)\] were all set$`)
	alone    = regexp.MustCompile(`^if any flags in the group \[(.*)\] are set they must all be set; missing \[(.*)\]$`)
	unitless = regexp.MustCompile(`time: (missing unit in duration|unknown unit ".*" in duration|invalid duration) ".*"$`)
)

// plainly says an error of the command-line library in other words.
func plainly(err error) error {
	if err == nil || errors.As(err, new(workError)) {
		return err
	}
	text := err.Error()
	if found := together.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s cannot be given together; give one of them", flagNames(found[1]))
	}
	if found := alone.FindStringSubmatch(text); found != nil {
		return fmt.Errorf("%s is missing: %s are given together", flagNames(found[2]), flagNames(found[1]))
	}
	return err
}

// flagNames are the names of flags as users give them: "--a, --b and --c".
func flagNames(list string) string {
	names := strings.Fields(list)
	for i, name := range names {
		names[i] = "--" + name
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
