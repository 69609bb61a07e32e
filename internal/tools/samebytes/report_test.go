package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// reported adds verdicts to a report and returns the printed text.
func reported(t *testing.T, r *report, verdicts ...verdict) (string, error) {
	t.Helper()
	var out strings.Builder
	r.out, r.commit = &out, "0123456789abcdef"
	for _, v := range verdicts {
		r.add(v)
	}
	err := r.finish(nil)
	return out.String(), err
}

var (
	same    = verdict{subject: "model a", values: 10, added: []string{"eval ece"}}
	changed = verdict{subject: "model b", values: 10, different: []difference{{"eval kl", "1", "2"}}}
)

func TestReport(t *testing.T) {
	expected := exception{"0123456", "model b", "eval kl", "the sum was wrong"}
	for name, c := range map[string]struct {
		r        report
		verdicts []verdict
		ok       bool
		prints   string
	}{
		"equal":              {report{}, []verdict{same}, true, "equal     model a (10 values)"},
		"new value":          {report{}, []verdict{same}, true, "new value, not compared: eval ece (of 1)"},
		"different":          {report{}, []verdict{same, changed}, false, "eval kl: base 1, now 2"},
		"counts":             {report{}, []verdict{same, changed}, false, "1 equal, 1 different, 0 failed, 0 left out"},
		"failed":             {report{}, []verdict{same, {subject: "model c", err: errors.New("broken")}}, false, "model c: base cannot be measured: broken"},
		"left out":           {report{}, []verdict{same, {subject: "model c", leftOut: "no images"}}, true, "left out  model c: data are missing: no images"},
		"nothing":            {report{}, nil, false, "nothing was compared"},
		"all left out":       {report{}, []verdict{{subject: "model c", leftOut: "no images"}}, false, "nothing was compared"},
		"expected":           {report{exceptions: []exception{expected}}, []verdict{changed}, true, "expected: eval kl: base 1, now 2 (the sum was wrong)"},
		"any key":            {report{exceptions: []exception{{"0123456", "model b", "*", "x"}}}, []verdict{changed}, true, "0 exceptions stale"},
		"other key":          {report{exceptions: []exception{{"0123456", "model b", "eval mse", "x"}}}, []verdict{changed}, false, "DIFFERS   model b (1 of 10 values)"},
		"other base":         {report{exceptions: []exception{{"fffffff", "model b", "eval kl", "x"}}}, []verdict{changed}, false, "0 exceptions stale"},
		"stale":              {report{exceptions: []exception{{"0123456", "model a", "eval kl", "x"}}}, []verdict{same}, false, "STALE     exception model a | eval kl"},
		"not compared":       {report{exceptions: []exception{expected}}, []verdict{same}, true, "0 exceptions stale"},
		"unknown":            {report{exceptions: []exception{expected}, complete: true}, []verdict{same}, false, "1 exceptions stale"},
		"left out, no stale": {report{exceptions: []exception{expected}, complete: true}, []verdict{same, {subject: "model b", leftOut: "x"}}, true, "0 exceptions stale"},
		"command":            {report{exceptions: []exception{expected}}, []verdict{{subject: "model b", different: []difference{{"command", "works", "no"}}}}, false, "DIFFERS   model b\n"},
		"command, not stale": {report{exceptions: []exception{expected}}, []verdict{{subject: "model b", different: []difference{{"command", "works", "no"}}}}, false, "0 exceptions stale"},
	} {
		text, err := reported(t, &c.r, c.verdicts...)
		if (err == nil) != c.ok || !strings.Contains(text, c.prints) {
			t.Errorf("%s: got %v and\n%swant %q", name, err, text, c.prints)
		}
	}
}

func TestManyDifferencesAreCutShort(t *testing.T) {
	v := verdict{subject: "model a", values: 20}
	for _, key := range strings.Split("abcdefghij", "") {
		v.different = append(v.different, difference{key, "1", "2"})
	}
	if text, _ := reported(t, &report{}, v); strings.Contains(text, "j: base") || !strings.Contains(text, "and 2 more") {
		t.Errorf("not cut:\n%s", text)
	}
	if text, _ := reported(t, &report{all: true}, v); !strings.Contains(text, "j: base") || strings.Contains(text, "more") {
		t.Errorf("cut with --all:\n%s", text)
	}
}

func TestExceptionsOfTheFileAreReadable(t *testing.T) {
	text, err := os.ReadFile("exceptions.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseExceptions(exceptionsFile, string(text)); err != nil {
		t.Error(err)
	}
}

func TestParseExceptions(t *testing.T) {
	got, err := parseExceptions("f", "# comment\n\n d9ddec3 | model shallow | eval kl | summed | in float64\n")
	if want := (exception{"d9ddec3", "model shallow", "eval kl", "summed | in float64"}); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("got %v, %v", got, err)
	}
	for _, line := range []string{"d9ddec3 | model shallow | eval kl", "d9ddec3 | model shallow | | reason", "d9 | model a | b | c", "d9ddec3 | model a | b |"} {
		if _, err := parseExceptions("f", "#\n"+line); err == nil || !strings.HasPrefix(err.Error(), "f:2: ") {
			t.Errorf("%s: got %v", line, err)
		}
	}
}
