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

	"github.com/spf13/cobra"
	"tessera"
	"tessera/config"
	"tessera/train"
)

// link is a model of a chain of trainings, and the folder of its run.
type link struct {
	model *config.Model
	run   string
}

// chain returns the models whose runs have to exist before the named one can start, and then that one. A model starts from a run; the
// folder runs/MODEL is the place of a run of MODEL. The chain ends with a model that starts at random, or from a run of no model
// of the file. sets apply to every model.
func (f *trainFlags) chain(name string, sets []string) (links []link, err error) {
	models, err := f.load()
	if err != nil {
		return nil, err
	}
	for run := cmp.Or(f.out, train.Place(name)); ; {
		m, err := f.model(name, sets...)
		if err != nil {
			return nil, f.noEpochs(name, f.epochs, err)
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
		if slices.ContainsFunc(links, func(l link) bool { return l.run == run || l.model.Name == name }) {
			return nil, usagef("--chain: model %q starts from %s, whose model %q starts from a run of the first one: a chain needs a beginning", m.Name, run, name)
		}
	}
	slices.Reverse(links)
	return links, nil
}

// trainChain trains the models of a chain one after the other. A finished run is used as it is, an unfinished one is resumed, so that
// the same command continues a chain that was interrupted or killed. It returns a usage error before anything is trained if the
// settings of an existing run differ.
func (f *trainFlags) trainChain(cmd *cobra.Command, options tessera.Options, links []link) error {
	states := make([]train.State, len(links)) // "" for no run
	for i, l := range links {
		if _, err := os.Lstat(l.run); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if states[i] = train.StatusOf(l.run).State; states[i] == train.Finished || states[i] == train.Interrupted {
			if err := l.same(); err != nil {
				return err
			}
		}
	}
	for i, l := range links {
		if states[i] == train.Finished {
			fmt.Fprintf(cmd.ErrOrStderr(), "tessera: %s is finished\n", l.run)
			continue
		}
		if !f.quiet {
			fmt.Fprintf(cmd.ErrOrStderr(), "tessera: model %s, %d of %d\n", l.model.Name, i+1, len(links))
		}
		warn(cmd, l.model.Warnings()...)
		err := training(cmd, options, f.progressFlags, f.preview, func(ctx context.Context, o tessera.Options) (*tessera.Run, error) {
			if states[i] != "" {
				return tessera.Resume(ctx, l.run, o)
			}
			o.Out = l.run
			return tessera.Train(ctx, l.model, o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// same returns an error if the settings of the run differ from those of the model.
func (l link) same() error {
	r, err := tessera.Open(l.run, tessera.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	var lines []string
	for _, d := range config.Differences(l.model, r.Model) {
		if d.Key != "about" {
			lines = append(lines, d.String())
		}
	}
	if len(lines) > 0 {
		return usagef("--chain: the run %s has other settings than model %q would have: %s; remove the run, or choose the same settings", l.run, l.model.Name, strings.Join(lines, "; "))
	}
	return nil
}
