package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/team"
	"tessera/train"
)

// shape is the trials of a sweep that cost the same per step.
type shape struct {
	trials     []*Trial
	pace       train.Pace
	evaluation time.Duration
	memory     int64
}

// shapes groups the trials that are not done.
func (s *Sweep) shapes() (all []*shape) {
	by := map[string]*shape{}
	for _, t := range s.Trials {
		if s.kept(t) != nil {
			continue
		}
		key := costKey(t.Model)
		if by[key] == nil {
			by[key] = &shape{}
			all = append(all, by[key])
		}
		by[key].trials = append(by[key].trials, t)
	}
	return all
}

var (
	// costless are the lines of a declaration that change no step's cost.
	costless = regexp.MustCompile(`^(about|seed|epochs|iterations|patience|min_delta|checkpoint_seconds) = `)
	// costlessTables have numbers, such as weights and rates, whose size does not matter, unless they are 0.
	costlessTables = regexp.MustCompile(`^\[+model(\.(loss|optimizer|constraint|encoder|decoder|train).*)?\]+$`)
	fraction       = regexp.MustCompile(`\b\d+\.\d+(e[+-]?\d+)?\b|\b\d+e[+-]?\d+\b`)
	zero           = regexp.MustCompile(`^[0.]+(e[+-]?\d+)?$`)
)

// costKey is equal for models whose steps cost the same.
func costKey(m *config.Model) string {
	unnamed := *m
	unnamed.Name = "m"
	var b strings.Builder
	table := ""
	for line := range strings.Lines(string(config.Fill(&unnamed))) {
		if strings.HasPrefix(line, "[") {
			table = strings.Replace(strings.TrimSpace(line), "[model.m", "[model", 1)
		}
		if costless.MatchString(line) {
			continue
		}
		if costlessTables.MatchString(table) && !strings.Contains(line, `"`) {
			line = fraction.ReplaceAllStringFunc(line, func(number string) string {
				if zero.MatchString(number) {
					return number
				}
				return "#"
			})
		}
		b.WriteString(line)
	}
	return b.String()
}

// duration is the estimated time of a trial of the shape; epochs that are done already are not repeated.
func (one *shape) duration(t *Trial) time.Duration {
	pace := one.pace
	return pace.Training(t.Model, max(0, train.MostEpochs(t.Model)-train.StatusOf(t.Path).Epoch)) + one.evaluation
}

// described is the shape as a part of the plan.
func (one *shape) described() ShapePlan {
	first := one.trials[0]
	p := ShapePlan{Values: first.Texts(), Trials: len(one.trials),
		Step: one.pace.Step.Seconds(), Steps: one.pace.Steps, Timed: one.pace.Timed,
		Epoch: float64(one.pace.Steps)*one.pace.Step.Seconds() + one.pace.End.Seconds(), Evaluation: one.evaluation.Seconds(),
		Trial: one.duration(first).Seconds(), Memory: one.memory}
	for _, t := range one.trials {
		if !slices.Contains(p.Models, t.Model.Name) {
			p.Models = append(p.Models, t.Model.Name)
		}
		for i, text := range t.Texts() {
			if text != p.Values[i] {
				p.Values[i] = "..."
			}
		}
	}
	return p
}

// time times the first trial of a shape, several copies side by side because the trials of the sweep share the memory of the machine,
// and takes the means.
func (s *Sweep) time(ctx context.Context, one *shape, copies int, o PlanOptions) error {
	dir, err := os.MkdirTemp("", "tessera-plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	before := liveBytes(true)
	paces, evaluations := make([]train.Pace, copies), make([]time.Duration, copies)
	peak := watchMemory()
	var running team.Group
	errs := make([]error, copies)
	for i := range copies {
		running.Go(func() {
			paces[i], evaluations[i], errs[i] = s.timeOne(ctx, one.trials[0], filepath.Join(dir, fmt.Sprint(i)), o)
		})
	}
	running.Wait()
	most := peak()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("trial %s: %w", one.trials[0].ID, err)
	}
	one.pace = paces[0]
	mean := func(of func(int) time.Duration) (sum time.Duration) {
		for i := range copies {
			sum += of(i)
		}
		return sum / time.Duration(copies)
	}
	one.pace.Start = mean(func(i int) time.Duration { return paces[i].Start })
	one.pace.Step = mean(func(i int) time.Duration { return paces[i].Step })
	one.pace.End = mean(func(i int) time.Duration { return paces[i].End })
	one.pace.Checkpoint = mean(func(i int) time.Duration { return paces[i].Checkpoint })
	one.evaluation = mean(func(i int) time.Duration { return evaluations[i] })
	one.memory = max(0, most-before) / int64(copies)
	return nil
}

// timeOne times a trial in a temporary folder: some steps, then the evaluation of the untrained model.
func (s *Sweep) timeOne(ctx context.Context, t *Trial, dir string, o PlanOptions) (p train.Pace, evaluation time.Duration, err error) {
	team := team.New(1)
	defer team.Close()
	backend := engine.Backend{Team: team}
	p, err = train.Time(ctx, t.Model, train.Options{Backend: backend, Team: team, Dirs: s.options.Dirs, Out: dir,
		Load: func(context.Context, *config.Dataset) (*data.Set, error) { return t.fitted, nil }}, o.Now, o.Budget)
	if err != nil {
		return p, 0, err
	}
	run := s.One(t)
	run.Path = dir
	from := o.Now()
	_, err = run.evaluate(ctx, backend, s.split)
	return p, o.Now().Sub(from), err
}

// watchMemory reads the memory that is in use every hundredth of a second, until the returned function is called, which returns the
// most.
func watchMemory() (stop func() int64) {
	var most int64
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			most = max(most, liveBytes(false))
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(ended)
		<-done
		return max(most, liveBytes(false))
	}
}

// liveBytes is the memory of the objects on the heap; collected: without garbage.
func liveBytes(collected bool) int64 {
	if collected {
		runtime.GC()
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
