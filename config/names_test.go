package config

import (
	"fmt"
	"strings"
	"testing"
)

// The folder of a run or sweep has the name of its model or sweep. File systems limit names to 255 bytes.
func TestCheckFindsNamesThatAreTooLongForAFolder(t *testing.T) {
	for _, what := range []string{"model", "sweep"} {
		for length, problem := range map[int]string{240: "", 241: "got 241 bytes, want at most 240", 4000: "got 4000 bytes"} {
			name := strings.Repeat("é", length/2) + strings.Repeat("n", length%2)
			text := fmt.Sprintf("[model.m]\n%s[model.%q]\nextends = \"m\"\n", oneLayer, name)
			if what == "sweep" {
				text = fmt.Sprintf("[model.m]\n%s[sweep.%q]\nmodel = \"m\"\n", oneLayer, name)
			}
			err := load(t, text).Check()
			if (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), "the name of the "+what+" is too long ("+problem) {
				t.Errorf("%s of %d bytes: got %v, want %q", what, length, err, problem)
			}
		}
	}
}
