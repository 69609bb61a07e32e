package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// restartsSuffix names the folder of the runs until the best one is known.
const restartsSuffix = ".restarts"

// trainRestarts trains a model from several seeds and keeps the run with the least objective on the samples of [commonSplits]. The trainings
// are runs in a folder beside that run, until the best one takes its place. The same command continues after an interruption.
func (f *trainCommand) trainRestarts(cmd *Call, options tessera.Options, m *config.Model, sets []string) error {
	if t := m.Training(); t.Method != "" {
		return usagef("--restarts: %s is a %s; the key restarts of a method, if it has one, keeps the best of several fits", m.Name, m.Kind)
	}
	place := filepath.Clean(cmp.Or(f.Out, train.Place(m.Name)))
	between := place + restartsSuffix
	if _, err := os.Lstat(place); err == nil {
		before, err := train.ReadRestarts(place)
		if err != nil || before == nil || len(before.Seeds) != f.Restarts || before.Seeds[0].Seed != m.Train.Seed {
			return cmp.Or(err, error(outError{place, fmt.Errorf("%s: %w", place, folder.ErrExists)}))
		}
		best, err := f.model(m.Name, append(slices.Clone(sets), fmt.Sprintf("train.seed=%d", before.Seeds[before.Least()].Seed))...)
		if err != nil {
			return err
		}
		if err := (link{best, place}).same(); err != nil {
			return err
		}
		cmd.say("%s is finished", place)
		return os.RemoveAll(between) // killed before it was removed
	}
	splits := commonSplits(m.Dataset.Selection.Validation)
	of := train.Restarts{Split: strings.Join(lists.Map(splits, func(s data.Split) string { return string(s) }), " and ")}
	warn(cmd, m.Warnings()...)
	var links []link
	var states []train.State
	for i := range uint64(f.Restarts) {
		seed := strconv.FormatUint(m.Train.Seed+i, 10)
		one, err := f.model(m.Name, append(slices.Clone(sets), "train.seed="+seed)...)
		if err != nil {
			return err
		}
		l := link{one, filepath.Join(between, "seed-"+seed)}
		state, err := l.state()
		if err != nil {
			return err
		}
		links, states = append(links, l), append(states, state)
	}
	var diverged error
	for i, l := range links {
		result := train.Restart{Seed: l.model.Train.Seed}
		loss, err := f.restart(cmd, options, l, states[i], splits, i)
		if failed, ok := errors.AsType[*train.Diverged](err); ok {
			diverged, result.Diverged = err, failed.Error()
		} else if err != nil {
			return err
		} else {
			result.Loss = &loss
		}
		of.Seeds = append(of.Seeds, result)
	}
	least := of.Least()
	if least < 0 {
		return diverged
	}
	if err := train.KeepRestarts(links[least].run, of); err != nil {
		return err
	}
	if err := os.Rename(links[least].run, place); err != nil {
		return outError{place, err}
	}
	if err := os.RemoveAll(between); err != nil {
		return err
	}
	r, err := tessera.Open(place, options)
	if err != nil {
		return err
	}
	defer r.Close()
	d := &doc.Document{}
	d.Add(restartsTable(of, least))
	if err := answer(cmd, d, false); err != nil {
		return err
	}
	if err := results(cmd, r); err != nil {
		return err
	}
	return f.previewFlag.show(cmd, r)
}

// commonSplits returns the splits of samples that all seeds have in common. As each seed draws other samples to hold out, these are no measure
// of its training alone.
func commonSplits(held data.Validation) []data.Split {
	switch {
	case held.Test:
		return []data.Split{data.ValidationSplit}
	case held.Fraction > 0:
		return []data.Split{data.TrainSplit, data.ValidationSplit}
	}
	return []data.Split{data.TrainSplit}
}

// restart trains a run, unless it is finished, and returns its objective.
func (f *trainCommand) restart(cmd *Call, options tessera.Options, l link, state train.State, splits []data.Split, i int) (float64, error) {
	if !f.Quiet {
		cmd.say("seed %d, %d of %d", l.model.Train.Seed, i+1, f.Restarts)
	}
	begin := l.train(state)
	if state == train.Finished {
		begin = func(_ context.Context, o tessera.Options) (*tessera.Run, error) { return tessera.Open(l.run, o) }
	}
	r, err := progressing(cmd, options, f.progressFlags, begin)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return objective(cmd, r, splits)
}

// objective returns the mean objective of a run over the samples of some splits.
func objective(cmd *Call, r *tessera.Run, splits []data.Split) (float64, error) {
	chosen, err := metrics.Select("loss")
	if err != nil {
		return 0, err
	}
	sum, images := 0.0, 0.0
	for _, split := range splits {
		measured, err := r.EvaluateOn(cmd.Context(), split, chosen)
		if err != nil {
			return 0, err
		}
		loss, ok := measured.Number("loss")
		if !ok {
			return 0, usagef("--restarts: %s has no objective by which runs can be compared", r.Model.Name)
		}
		n := float64(measured.Images)
		sum, images = sum+n*loss, images+n
	}
	return sum / images, nil
}

// restartsTable is the table of trainings from several seeds.
func restartsTable(of train.Restarts, least int) *doc.Table {
	t := &doc.Table{Key: "restarts", Columns: []doc.Column{{Key: "seed", Title: "seed"}, {Key: "loss", Title: "loss on the " + of.Split + " split"}, {Key: "kept", Title: ""}}}
	for i, s := range of.Seeds {
		var loss, note any
		if s.Loss != nil {
			loss = *s.Loss
		} else {
			note = "diverged"
		}
		if i == least {
			note = "kept"
		}
		t.Row(s.Seed, loss, note)
	}
	return t
}
