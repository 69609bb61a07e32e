package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/parallel/team"
	"tessera/internal/train/folder"
)

// SelectedFile is the name of the file with one row per selected setting and its metrics on the test images. Only a
// sweep with `select` has this file.
const SelectedFile = "selected.csv"

// testFile is the name of the file with the metrics of a trial of a selected setting on the test images.
const testFile = "test.json"

// front returns the Pareto front: the settings for which no other setting is at least as good by every criterion and
// better by one. Equal settings are all in the front. For a single criterion it contains the best settings. Settings
// with a failed trial, or without a value for a criterion, are left out.
func front(settings []Setting, criteria []config.Criterion) []Setting {
	var whole []Setting
	var costs [][]float64
	for _, s := range settings {
		if c, ok := costsOf(s, criteria); ok && len(s.Seeds) == len(s.Trials) {
			whole, costs = append(whole, s), append(costs, c)
		}
	}
	var best []Setting
	for i, s := range whole {
		if !slices.ContainsFunc(costs, func(other []float64) bool { return dominates(other, costs[i]) }) {
			best = append(best, s)
		}
	}
	return best
}

// costsOf returns the means by which a setting is compared, with signs such that smaller is better. ok is false if a
// mean is missing.
func costsOf(s Setting, criteria []config.Criterion) (costs []float64, ok bool) {
	for _, c := range criteria {
		mean, ok := s.Mean.Number(c.Metric)
		if !ok {
			return nil, false
		}
		if c.Largest {
			mean = -mean
		}
		costs = append(costs, mean)
	}
	return costs, len(criteria) > 0
}

func dominates(a, b []float64) bool {
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

// selected returns the selected settings with their metrics on the test images. It returns none until all trials have
// ended.
func (s *Sweep) selected(settings []Setting) []Setting {
	if slices.ContainsFunc(s.Trials, func(t *Trial) bool { return t.measured == nil && t.err == nil }) {
		return nil
	}
	list := front(settings, s.criteria)
	for i, one := range list {
		var rows []Row
		for _, id := range one.Trials {
			t := s.Trials[slices.IndexFunc(s.Trials, func(t *Trial) bool { return t.ID == id })]
			rows = append(rows, Row{Trial: t.ID, Seed: t.Model.Train.Seed, Metrics: t.onTest})
		}
		list[i] = Setting{Model: one.Model, Values: one.Values}
		list[i].fill(rows)
	}
	return list
}

// unmeasured returns a criterion that no setting has been measured by in all its trials, "" if there is none.
func unmeasured(settings []Setting, criteria []config.Criterion) string {
	if !slices.ContainsFunc(settings, func(s Setting) bool { return len(s.Seeds) > 0 }) {
		return ""
	}
	for _, c := range criteria {
		if !slices.ContainsFunc(settings, func(s Setting) bool { _, ok := s.Mean.Number(c.Metric); return ok }) {
			return c.Metric
		}
	}
	return ""
}

// test measures the trials of the selected settings on the test images, unless they have been measured before.
func (w *work) test(ctx context.Context) {
	settings := w.results().Settings
	if c := unmeasured(settings, w.criteria); c != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fail(fmt.Errorf("sweep %s: nothing can be selected by %q: no setting has this metric for all its seeds; select by one of the columns of %s",
			w.Name, c, SummaryFile))
		return
	}
	var left []*Trial
	for _, s := range w.selected(settings) {
		for _, t := range w.Trials {
			if t.onTest == nil && slices.Contains(s.Trials, t.ID) {
				left = append(left, t)
			}
		}
	}
	var running team.Group
	var begun atomic.Int64
	for range min(w.options.Jobs, len(left)) {
		running.Go(func() {
			team := team.New(1)
			defer team.Close()
			for i := begun.Add(1); i <= int64(len(left)); i = begun.Add(1) {
				w.measureOnTest(ctx, left[i-1], team)
			}
		})
	}
	running.Wait()
}

// measureOnTest measures one trial on the test images and stores the result.
func (w *work) measureOnTest(ctx context.Context, t *Trial, team *team.Team) {
	w.mu.Lock()
	stopped := w.fatal != nil
	w.mu.Unlock()
	if stopped {
		return
	}
	measured, err := w.Standalone(t).measure(ctx, engine.Backend{Team: team}, data.TestSplit, testFile)
	if err == nil {
		measured, err = w.stored(t, testFile, data.TestSplit)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := errors.AsType[*folder.WriteError](err); err != nil && ctx.Err() != nil && !ok {
		err = &Interrupted{w.Path}
	}
	if err != nil {
		w.fail(err)
		return
	}
	t.onTest = measured
	if err := w.write(); err != nil {
		w.fail(err)
	}
}

// selectionTable returns selected.csv, with one row per selected setting. A row contains the means on the validation
// images by which the setting was selected, followed by its metrics on the test images.
func (r *Results) selectionTable() []byte {
	names := r.ofSelected()
	head := slices.Concat([]string{"model"}, r.Keys, []string{"seeds"})
	for _, c := range r.Select {
		head = append(head, "validation_"+c.Metric)
	}
	rows := [][]string{append(head, columns(names)...)}
	for _, s := range r.Selected {
		row := slices.Concat([]string{s.Model}, texts(s.Values, r.Keys), []string{seedCount(s)})
		at := slices.IndexFunc(r.Settings, func(one Setting) bool { return slices.Equal(one.Trials, s.Trials) })
		for _, c := range r.Select {
			row = append(row, number(r.Settings[at].Mean, c.Metric))
		}
		rows = append(rows, append(row, s.numbers(names)...))
	}
	return csvText(rows)
}

// ofSelected returns the names of the metrics of the selected settings, in the order of the trials' metrics.
func (r *Results) ofSelected() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool {
		return !slices.ContainsFunc(r.Selected, func(s Setting) bool { _, ok := s.Mean.Number(name); return ok })
	})
}

// removeSelection removes an outdated table of selected settings. A table is outdated if it belongs to an earlier
// declaration, or if trials have been added since.
func (w *work) removeSelection() error {
	path := filepath.Join(w.Path, SelectedFile)
	if _, err := os.Stat(path); err != nil || len(w.results().Selected) > 0 {
		return nil
	}
	return w.options.Disk.Remove(path)
}
