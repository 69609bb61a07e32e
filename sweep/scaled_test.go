package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTrialsAreMeasuredOnSamplesUnderTheirScale(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,b\n")
	for i := range 40 {
		fmt.Fprintf(&text, "%d,%d\n", 1000+i%7, -5000*(i%5))
	}
	path := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, declared, Options{Out: t.TempDir()}, "dataset={ name = \"csv\", images = \""+filepath.ToSlash(path)+"\", scale = \"minmax\" }", "train.epochs=1")
	for _, trial := range r.Trials {
		if mse, ok := trial.Metrics.Values.Number("mse"); !ok || mse > 3 {
			t.Errorf("%s: mse %g, %v", trial.Trial, mse, ok)
		}
	}
	if len(r.Trials) == 0 {
		t.Error("no trial was measured")
	}
}
