package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

var keys = [][]string{
	{"  units", "required", "an integer > 0", "number of outputs, which are the values of the code"},
	{"  activation", `= "linear"`, `one of "elu", "gelu", "hard_sigmoid", "linear"`, "activation function ᵀ²"},
	{"  bias", "", "true or false", ""},
}

func TestColumnsAreAligned(t *testing.T) {
	want := strings.Join([]string{
		`  units       required    an integer > 0                                  number of outputs, which are the values of the code`,
		`  activation  = "linear"  one of "elu", "gelu", "hard_sigmoid", "linear"  activation function ᵀ²`,
		`  bias                    true or false`,
		``}, "\n")
	if got := inColumns(keys, 0); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := inColumns(nil, 0); got != "" {
		t.Errorf("no rows are %q", got)
	}
}

func TestColumnsAreFoldedToAPage(t *testing.T) {
	for width, want := range map[int]string{
		72: `  units       required    an integer > 0  number of outputs, which are
                                          the values of the code
  activation  = "linear"  one of "elu", "gelu", "hard_sigmoid", "linear"
                                          activation function ᵀ²
  bias                    true or false
`,
		40: `  units       required
          an integer > 0
          number of outputs, which are
          the values of the code
  activation  = "linear"
          one of "elu", "gelu",
          "hard_sigmoid", "linear"
          activation function ᵀ²
  bias    true or false
`} {
		got := inColumns(keys, width)
		if got != want {
			t.Errorf("width %d: got\n%s\nwant\n%s", width, got, want)
		}
		for line := range strings.Lines(got) {
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > width {
				t.Errorf("width %d: %q is longer", width, line)
			}
		}
	}
	if got, want := inColumns([][]string{{"a", strings.Repeat("x", 50)}}, 20), "a  "+strings.Repeat("x", 50)+"\n"; got != want {
		t.Errorf("a long word: got %q, want %q", got, want)
	}
}
