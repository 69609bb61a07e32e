package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/data"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// results reports a training: the run with its numbers, the true parts that were found (if the data set has true parts), and the
// path of the picture of the atoms.
func results(cmd *Call, r *tessera.Run) error {
	ctx := cmd.Context()
	measured, err := measure(ctx, cmd, r)
	if err != nil {
		return err
	}
	d := show.RunDocument(r, measured, false)
	debug.FreeOSMemory() // frees the measured samples
	found, err := r.Parts(ctx)
	if err != nil {
		return err
	}
	d.Add(partsTable(found))
	if err := addAtoms(ctx, d, r); err != nil {
		return err
	}
	return answer(cmd, d, false)
}

// measure measures a trained run. It returns nil if the images are missing, which is not an error: the run is complete.
func measure(ctx context.Context, to streams, r *tessera.Run) (*evaluation.Report, error) {
	names := r.Model.Measures()
	if r.Model.Training().Method == "" {
		names = append(names, "error_component") // of a poor optimum
	}
	chosen, err := metrics.Select(names...)
	if err != nil {
		return nil, err
	}
	for i := range chosen {
		chosen[i].Optional = true
	}
	measured, err := r.Report(ctx, chosen)
	if missing, ok := errors.AsType[*data.Error](err); ok {
		complain(to.ErrOrStderr(), doc.Hint, "tessera: not measured: "+missing.Error())
		return nil, nil
	}
	return measured, err
}

// partsTable says for each kind of true part how many were found.
func partsTable(found []tessera.FoundPart) *doc.Table {
	t := &doc.Table{Key: "parts", Columns: []doc.Column{{Key: "kind", Title: "parts"}, {Key: "found", Title: "found"}, {Key: "least_cosine", Title: "least cosine"}, {Key: "as", Title: "as", Wrap: true}}}
	for len(found) > 0 {
		var kind, others []tessera.FoundPart
		there := 0
		for _, p := range found {
			if p.Kind != found[0].Kind {
				others = append(others, p)
				continue
			}
			if kind = append(kind, p); p.Found {
				there++
			}
		}
		least := slices.MinFunc(kind, func(a, b tessera.FoundPart) int { return cmp.Compare(a.Cosine, b.Cosine) })
		t.Row(kind[0].Kind, doc.Shown{Value: there, Text: fmt.Sprintf("%d of %d", there, len(kind))}, doc.Fixed3(least.Cosine), foundAs(kind))
		found = others
	}
	return t
}

// foundAs lists the atoms, or the bias, that match the true parts.
func foundAs(parts []tessera.FoundPart) any {
	var names []string
	for _, p := range parts {
		switch {
		case !p.Found:
		case p.Atom == metrics.BiasAtom:
			names = append(names, "bias")
		default:
			names = append(names, fmt.Sprint("atom ", p.Atom))
		}
	}
	if len(names) == 0 {
		return nil
	}
	text := func(names []string) string { return strings.ReplaceAll(strings.Join(names, ", "), ", atom", "") }
	if len(names) <= mostNamed {
		return text(names)
	}
	return doc.Shown{Value: text(names), Text: text(names[:mostNamed]) + " ..."}
}

// mostNamed is the largest number of atoms that are named for people.
const mostNamed = 24

// addAtoms draws the run's atoms, if it has some, into its folder and adds the picture to the document.
func addAtoms(ctx context.Context, d *doc.Document, r *tessera.Run) error {
	a := r.Atoms()
	if a == nil {
		return nil
	}
	names := show.OutputNames(ctx, r)
	bars, err := effects(ctx, r)
	if err != nil {
		return err
	}
	figure, err := figures.WeighedAtoms(a, bars, names...)
	if err != nil {
		return err
	}
	path := filepath.Join(r.Path, folder.Picture)
	if err := figure.Save(path); err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	d.Add(&doc.Figure{Key: "atoms", Title: "atoms", Path: path})
	return nil
}

// atoms draws the atoms of a run and prints the path of the picture.
func atoms(ctx context.Context, to streams, r *tessera.Run) error {
	d := &doc.Document{}
	if err := addAtoms(ctx, d, r); err != nil {
		return err
	}
	return answer(to, d, false)
}
