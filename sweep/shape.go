package sweep

import (
	"cmp"
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
	measures "tessera/metrics"
	"tessera/parallel/team"
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

// time times the first trial of a shape that does not diverge, and returns the error of the first one if all do.
func (s *Sweep) time(ctx context.Context, one *shape, copies int, o PlanOptions) (err error) {
	for _, t := range one.trials {
		failed := s.timeTrial(ctx, one, t, copies, o)
		if failed == nil {
			return nil
		}
		err = cmp.Or(err, failed)
		var diverged *train.Diverged
		var notFinite *measures.NotFinite
		if !errors.As(failed, &diverged) && !errors.As(failed, &notFinite) {
			return failed
		}
	}
	return err
}

// timeTrial times a trial of a shape, several copies side by side because the trials of the sweep share the memory of the machine,
// and takes the means.
func (s *Sweep) timeTrial(ctx context.Context, one *shape, t *Trial, copies int, o PlanOptions) error {
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
			paces[i], evaluations[i], errs[i] = s.timeOne(ctx, t, filepath.Join(dir, fmt.Sprint(i)), o)
		})
	}
	running.Wait()
	most := peak()
	if err := cmp.Or(errs...); err != nil { // copies have the same one
		return fmt.Errorf("trial %s: %w", t.ID, err)
	}
	one.pace, one.evaluation, one.memory = means(paces), meanOf(evaluations), max(0, most-before)/int64(copies)
	return nil
}

// means are the mean times of several copies.
func means(paces []train.Pace) train.Pace {
	p := paces[0]
	of := func(get func(train.Pace) time.Duration) time.Duration {
		var all []time.Duration
		for _, one := range paces {
			all = append(all, get(one))
		}
		return meanOf(all)
	}
	p.Start = of(func(p train.Pace) time.Duration { return p.Start })
	p.Step = of(func(p train.Pace) time.Duration { return p.Step })
	p.End = of(func(p train.Pace) time.Duration { return p.End })
	p.Checkpoint = of(func(p train.Pace) time.Duration { return p.Checkpoint })
	return p
}

func meanOf(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
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
