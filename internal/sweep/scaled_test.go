package sweep

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestTrialsAreMeasuredOnSamplesUnderTheirScale(t *testing.T) {
	var text strings.Builder
	text.WriteString("a,b\n")
	for i := range 40 {
		fmt.Fprintf(&text, "%d,%d\n", 1000+i%7, -5000*(i%5))
	}
	path := filepath.Join(t.TempDir(), "x.csv")
	fatal.If(t, os.WriteFile(path, []byte(text.String()), 0o600))
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

// The samples of a sparse matrix are not expanded to all of their values: few are measured.
func TestASparseMatrixIsNotExpanded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.csv")
	var text strings.Builder
	text.WriteString("row,column,value\n")
	for i := range 60 {
		fmt.Fprintf(&text, "u%d,v%d,%d\n", i%12, i%7, 1+i%5)
	}
	fatal.If(t, os.WriteFile(path, []byte(text.String()), 0o600))
	s := open(t, spec(t, "[model.m]\nkind = \"matrix_factorisation\"\ncomponents = 2\niterations = 2\ndataset = { name = \"triples\", file = \""+filepath.ToSlash(path)+"\" }\n[sweep.s]\nmodel = \"m\"\nseeds = [1, 2]\n", "s"), Options{Out: t.TempDir()})
	expect.Equal(t, len(s.rows), 0, "sets are expanded")
	if r, err := s.Run(t.Context()); err != nil || len(r.Trials) != 2 || r.Trials[0].Metrics == nil {
		t.Errorf("%+v, %v", r, err)
	}
}
