package train

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/part"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// initialise gives all processes the same first parameters: those of rank 0, which alone reads the run to start from.
func (n *trainee) initialise() error {
	if n.processes.leads() {
		if err := n.start(); err != nil {
			return err
		}
	}
	return n.processes.shareWeights(n.stepper.views)
}

// start initialises a new run with the parameters of another run, and projects them. A resumed run reads them from its
// state: the other run may have been deleted.
//
// A folder that is not a run, or a run that has no parameters, is an error of the declaration ([part.KeyError]);
// parameters that are missing or of another shape are a [*checkpoint.Error] that names each of them.
func (n *trainee) start() error {
	s := n.spec.Start
	if s == nil {
		return nil
	}
	run := cmp.Or(n.options.Start, s.Run)
	from, err := Open(run)
	switch {
	case errors.Is(err, folder.ErrNotRun):
		return n.refuse(fmt.Sprintf("%s is not the folder of a run", s.Run))
	case err != nil:
		return fmt.Errorf("model %q: start: %w", n.spec.Name, err)
	case from.Model == nil:
		return n.refuse(fmt.Sprintf("%s is a run of kind %q, which has no network parameters", s.Run, from.Spec.Kind))
	}
	if err := n.take(from, s.On); err != nil {
		return fmt.Errorf("model %q: start: %w", n.spec.Name, err)
	}
	n.stepper.Project()
	n.started, err = ParametersOf(run)
	return err
}

// StartOf returns the file from which a new run of a model takes its initial parameters; nil if the model has no start.
func StartOf(spec *config.Model) (*data.File, error) {
	if spec == nil || spec.Start == nil {
		return nil, nil
	}
	return ParametersOf(spec.Start.Run)
}

// ParametersOf names the file of a run that [Open] would read the parameters from.
func ParametersOf(run string) (*data.File, error) {
	path, contents, err := folderOf(run).parameters()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(contents)
	return &data.File{Path: path, SHA256: hex.EncodeToString(sum[:])}, nil
}

// refuse is the error for a run without suitable parameters.
func (n *trainee) refuse(problem string) error {
	return fmt.Errorf("model %q: start: %w", n.spec.Name, part.KeyError{Key: "run", Problem: problem})
}

// take copies every parameter that matches the glob, or none if one of them does not fit.
func (n *trainee) take(from *Trained, glob string) error {
	var problems []string
	taken := map[*graph.Parameter]*graph.Parameter{}
	for _, p := range n.model.Parameters {
		if !config.MatchPath(glob, p.Path) {
			continue
		}
		if q, err := from.Parameter(p.Path); err != nil {
			problems = append(problems, p.Path+" is missing")
		} else if !slices.Equal(q.Shape, p.Shape) {
			problems = append(problems, fmt.Sprintf("%s has shape %v, want %v", p.Path, q.Shape, p.Shape))
		} else {
			taken[p] = q
		}
	}
	if len(problems) > 0 {
		return checkpoint.Mismatchf(from.Path, "does not match: %s; exclude parameters with `on`", strings.Join(problems, "; "))
	}
	for p, q := range taken {
		copy(p.Data, q.Data)
	}
	return nil
}
