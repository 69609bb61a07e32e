package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// link is a model of a chain of trainings, and the folder of its run.
type link struct {
	model *config.Model
	run   string
}

// chain returns the models whose runs have to exist before the named one can start, and then that one. A model starts from a run; the
// folder runs/MODEL is the place of a run of MODEL. The chain ends with a model that starts at random, or from a run of no model
// of the file. sets apply to every model.
func (f *trainCommand) chain(name string, sets []string) (links []link, err error) {
	models, err := f.load()
	if err != nil {
		return nil, err
	}
	for run := filepath.Clean(cmp.Or(f.Out, train.Place(name))); ; {
		m, err := f.model(name, sets...)
		if err != nil {
			return nil, f.noEpochs(name, f.Epochs, err)
		}
		links = append(links, link{m, run})
		if m.Start == nil {
			break
		}
		run = filepath.Clean(m.Start.Run)
		i := slices.IndexFunc(models.Names(), func(name string) bool { return train.Place(name) == run })
		if i < 0 {
			break
		}
		name = models.Names()[i]
		if f.Out != "" && samePlace(run, f.Out) && links[0].model.Name != name {
			return nil, usagef("--out: %s is the run of model %q, from which %q starts; choose another folder", f.Out, name, m.Name)
		}
		if slices.ContainsFunc(links, func(l link) bool { return l.run == run || l.model.Name == name }) {
			return nil, usagef("--chain: model %q starts from %s, whose model %q starts from a run of the first one: a chain needs a beginning", m.Name, run, name)
		}
	}
	slices.Reverse(links)
	return links, nil
}

// samePlace reports whether two paths, of which one may be absolute, are the same.
func samePlace(a, b string) bool {
	x, xErr := filepath.Abs(a)
	y, yErr := filepath.Abs(b)
	return xErr == nil && yErr == nil && x == y
}

// trainChain trains the models of a chain one after the other. A finished run is used as it is, an unfinished one is resumed, so that
// the same command continues a chain that was interrupted or killed. It returns an error before anything is trained if an existing
// run has other settings, is damaged or in use, or has started from a run that is not finished.
func (f *trainCommand) trainChain(cmd *Call, options tessera.Options, links []link) (err error) {
	states := make([]train.State, len(links)) // "" for no run
	for i, l := range links {
		if states[i], err = l.state(); err != nil {
			return err
		}
		if i > 0 && states[i] != "" && states[i-1] != train.Finished {
			return usagef("--chain: the run %s exists, but %s, from which it starts, is missing or unfinished and would be another one now; "+
				"remove %s to train it again, or continue it alone: `tessera resume %s`", l.run, links[i-1].run, l.run, l.run)
		}
		if i > 0 && states[i] != "" {
			if err := l.startedFrom(links[i-1].run); err != nil {
				return err
			}
		}
	}
	for i, l := range links {
		if states[i] == train.Finished {
			cmd.say("%s is finished", l.run)
			if err := l.draw(cmd); err != nil {
				return err
			}
			continue
		}
		if !f.Quiet {
			cmd.say("model %s, %d of %d", l.model.Name, i+1, len(links))
		}
		warn(cmd, l.model.Warnings()...)
		if err := training(cmd, options, f.progressFlags, f.previewFlag, l.train(states[i])); err != nil {
			return err
		}
	}
	return nil
}

// train returns the function that trains the link, or resumes its run.
func (l link) train(state train.State) func(context.Context, tessera.Options) (*tessera.Run, error) {
	return func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
		if state != "" {
			return tessera.Resume(ctx, l.run, o)
		}
		o.Out = l.run
		r, err := tessera.Train(ctx, l.model, o)
		if errors.Is(err, folder.ErrExists) { // another command has created it meanwhile
			err = fmt.Errorf("%s: %w", l.run, folder.ErrLocked)
		}
		return r, err
	}
}

// state returns the state of the run, "" if there is none. A run that is damaged, in use or has other settings than the model is an
// error.
func (l link) state() (train.State, error) {
	if _, err := os.Lstat(l.run); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err := l.same(); err != nil {
		return "", err
	}
	status := train.StatusOf(l.run)
	switch path := filepath.Join(l.run, folder.State); status.State {
	case train.Damaged:
		return "", checkpoint.Errorf(path, "%s", strings.TrimPrefix(status.Problem, path+": "))
	case train.Training:
		return "", fmt.Errorf("%s: %w", l.run, folder.ErrLocked)
	}
	return status.State, nil
}

// startedFrom returns an error if the run has started from other parameters than those that another run has now: that run was trained
// again since, or continued. A run without such a record cannot be compared.
func (l link) startedFrom(run string) error {
	e, err := train.ReadEnvironment(l.run)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--chain: the record of how %s was started: %w", l.run, err)
	case err != nil || e.Start == nil:
		return nil
	}
	now, err := train.ParametersOf(run)
	if err != nil {
		return fmt.Errorf("--chain: the parameters of %s, from which %s has started: %w", run, l.run, err)
	}
	if now.SHA256 != e.Start.SHA256 {
		return usagef("--chain: the run %s has started from other parameters than %s has now: that run was trained again or continued since; "+
			"remove %s to train it again, or continue it alone: `tessera resume %s`", l.run, run, l.run, l.run)
	}
	return nil
}

// draw draws the atoms of a finished run if its training was killed before it drew them.
func (l link) draw(cmd *Call) error {
	if _, err := os.Stat(filepath.Join(l.run, folder.Picture)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	r, err := tessera.Open(l.run, tessera.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	return atoms(cmd.Context(), cmd, r)
}

// same returns an error if the settings of the run differ from those of the model, except those that change no result.
func (l link) same() error {
	r, err := tessera.Open(l.run, tessera.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	var lines []string
	for _, d := range config.Differences(l.model, r.Model) {
		if d.Key != "about" && d.Key != "train.checkpoint_seconds" {
			lines = append(lines, d.String())
		}
	}
	if len(lines) > 0 {
		return usagef("the run %s has other settings than model %q would have: %s; remove the run and those that start from it, or choose the same settings", l.run, l.model.Name, strings.Join(lines, "; "))
	}
	return nil
}
