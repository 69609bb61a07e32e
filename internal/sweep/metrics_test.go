package sweep

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/metrics"
)

// withSVM returns the default metrics and the SVM.
func withSVM(t *testing.T) metrics.Selection {
	t.Helper()
	svm, err := metrics.Select("svm")
	fatal.If(t, err)
	return metrics.Default().Add(svm)
}

// Missing labels are reported before any results are written again.
func TestTheSVMNeedsLabels(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, "train.epochs=1")
	before := files(t, out)
	again := open(t, spec(t, declared, "s", "train.epochs=1"), Options{Out: out, Metrics: withSVM(t)})
	expect.As[*data.Error](t, expect.Err(again.Run(context.Background())), "bars: its samples have no labels, but svm_accuracy needs them")
	same(t, "refused", files(t, out), before)
}

// The images are read only once. The SVM is measured on finished trials without training them again.
func TestTheSVMIsAddedToTrialsThatAreDone(t *testing.T) {
	if os.Getenv(data.EnvDir) == "" || testing.Short() {
		t.Skipf("left out: -short is set, or %s is not", data.EnvDir)
	}
	text := strings.Replace(declared, `{ name = "bars", count = 100 }`, `{ name = "fashion-mnist", limit = 200 }`, 1)
	text = strings.Replace(text, "[sweep.s]", "[sweep.s]\nsplit = \"test\"", 1)
	out := filepath.Join(t.TempDir(), "s")
	o := Options{Out: out, Dirs: data.SearchDirs("")}
	set := []string{"loss.1.target=0.1", "train.seed=1", "encoder.1.units=2", "train.epochs=1"}
	run(t, text, o, set...)
	before := files(t, out)
	o.Metrics = withSVM(t)
	epochs := 0
	o.Report = func(e Event) {
		if e.Progress != nil {
			epochs++
		}
	}
	r := run(t, text, o, set...)
	accuracy, _ := r.Settings[0].Mean.Number("svm_accuracy")
	if each, ok := r.Trials[0].Metrics.Number("svm_accuracy"); epochs > 0 || len(r.Trials) != 1 || !ok || each != accuracy || accuracy < 0.2 {
		t.Errorf("%d reports of training, %+v", epochs, r.Settings)
	}
	o.Metrics = nil
	run(t, text, o, set...)
	after := files(t, out)
	for _, name := range []string{ResultsFile, TableFile, SummaryFile} {
		expect.Equal(t, after[name], before[name], "without the SVM again", name, "is another")
	}
}

// late is a context whose deadline has passed once its channel is closed.
type late struct {
	context.Context
	over chan struct{}
}

func (l late) Done() <-chan struct{} { return l.over }
func (l late) Err() error {
	select {
	case <-l.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// waiting is a slow metric: when it is measured, the deadline of the sweep passes.
type waiting struct{ over chan struct{} }

func (waiting) Describe() metrics.Description {
	return metrics.Description{Measures: []metrics.Measure{{Name: "waiting"}}}
}
func (w waiting) Start(*metrics.Subject) (metrics.Meter, error) { return w, nil }
func (waiting) Add(*metrics.Batch) error                        { return nil }
func (w waiting) Values(ctx context.Context) ([]metrics.Value, error) {
	close(w.over)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestADeadlineInterruptsASweepAndFailsNoTrial(t *testing.T) {
	out, over := filepath.Join(t.TempDir(), "s"), make(chan struct{})
	o := Options{Out: out, Jobs: 1, Metrics: metrics.Selection{{Metric: waiting{over}}}}
	last := []string{"train.epochs=1", "loss.1.target=0.1", "train.seed=1"} // a single trial, because a further trial would notice the deadline
	_, err := open(t, spec(t, declared, "s", last...), o).Run(late{context.Background(), over})
	expect.Is(t, err, train.ErrInterrupted)
	run(t, declared, Options{Out: out}, last...)
}
