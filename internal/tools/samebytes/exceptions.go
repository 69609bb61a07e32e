package main

import (
	"fmt"
	"strings"
)

// An exception is a difference that is expected when the working tree is compared with one commit.
type exception struct {
	base    string // first digits of the commit
	subject string // name of the subject in reports: "model shallow"
	key     string // name of the value: "eval kl"
	reason  string
}

// minCommitDigits is the minimum number of digits of a commit, so that an exception applies to only one commit.
const minCommitDigits = 7

// parseExceptions reads a line for each exception: BASE | KIND NAME | KEY | REASON. Lines that begin with # are comments.
func parseExceptions(file, text string) ([]exception, error) {
	var all []exception
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(line, "|", 4)
		for j := range fields {
			fields[j] = strings.TrimSpace(fields[j])
		}
		if len(fields) != 4 || fields[1] == "" || fields[2] == "" || fields[3] == "" {
			return nil, fmt.Errorf("%s:%d: incomplete exception (got %q, want BASE | KIND NAME | KEY | REASON)", file, i+1, line)
		}
		if len(fields[0]) < minCommitDigits {
			return nil, fmt.Errorf("%s:%d: ambiguous commit (got %q, want at least %d digits)", file, i+1, fields[0], minCommitDigits)
		}
		all = append(all, exception{fields[0], fields[1], fields[2], fields[3]})
	}
	return all, nil
}

// holds reports whether the exception covers a difference from a commit. The key * is any key.
func (e exception) holds(commit, subject, key string) bool {
	return e.about(commit, subject) && (e.key == key || e.key == "*")
}

// about reports whether the exception covers a subject in a comparison with a commit.
func (e exception) about(commit, subject string) bool {
	return strings.HasPrefix(commit, e.base) && e.subject == subject
}
