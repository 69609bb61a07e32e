// Package export writes trained runs in the formats of other programs: ONNX, NumPy, safetensors in PyTorch's layouts,
// TensorBoard, CSV.
//
// A new format is one new file with one call of Registry.Register; the command `tessera export` finds it there.
package export

import (
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/config"
	"tessera/internal/machine"
	"tessera/metrics"
	"tessera/part"
	"tessera/train"
	"tessera/train/checkpoint"
)

// Format writes one file per run. It does not change the run, and equal runs give equal bytes.
type Format struct {
	// Extension is the end of the file's usual name: ".onnx".
	Extension string
	// Parts lists what a file can hold of that run, the usual part first.
	Parts func(r *Run) []string
	// Write writes the file with one of the parts. It returns an error for a run that the format cannot hold; the error says
	// which part of the run is the reason.
	Write func(w io.Writer, r *Run, part string) error
}

// parts are those of a format that are the same for every run.
func parts(names ...string) func(*Run) []string { return func(*Run) []string { return names } }

// Registry holds every format.
var Registry = part.New[Format]("format")

// Run is a trained run.
type Run struct {
	*train.Trained
	Name string // of the run's folder
	Path string // of the folder; empty where the training is not known

	// DrawAtoms draws the atoms for formats that have a picture of them; nil leaves the picture out.
	DrawAtoms func(*metrics.Atoms) (image.Image, error)
}

// Open reads the run of a folder. The errors are those of [train.Open].
func Open(path string) (*Run, error) {
	t, err := train.Open(path)
	if err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(path) // "." has a name too
	if err != nil {
		return nil, err
	}
	return &Run{Trained: t, Name: filepath.Base(whole), Path: path}, nil
}

// History reads the metrics.jsonl of the run, as [train.ReadHistory] does; a run without a folder has no epochs.
func (r *Run) History() ([]train.Epoch, error) {
	if r.Path == "" {
		return nil, nil
	}
	return train.ReadHistory(r.Path)
}

// Write writes a run in the format of that name. An empty part is the usual one of the format. It returns an error for an
// unknown format or part.
func Write(w io.Writer, r *Run, format, part string) error {
	f, part, err := Choose(r, format, part)
	if err != nil {
		return err
	}
	if err := f.Write(w, r, part); err != nil {
		return fmt.Errorf("run %s: %s of the part %s: %w", r.Name, format, part, err)
	}
	return nil
}

// ErrUnknown says that a format or a part does not exist.
var ErrUnknown = errors.New("unknown")

// Choose returns the format of that name, and the part: the usual one of the format where part is empty.
func Choose(r *Run, format, part string) (Format, string, error) {
	e, ok := Registry.Lookup(format)
	if !ok {
		return Format{}, "", fmt.Errorf("format %q is %w, want one of %s", format, ErrUnknown, strings.Join(Registry.Names(), ", "))
	}
	f := e.New()
	known := f.Parts(r)
	if part == "" {
		part = known[0]
	}
	if !slices.Contains(known, part) {
		return Format{}, "", fmt.Errorf("part %q is %w for %s of this run, want one of %s", part, ErrUnknown, format, strings.Join(known, ", "))
	}
	return f, part, nil
}

// FileName is the usual name of a run's file: that of the run, then the part where it is not the usual one.
func FileName(r *Run, f Format, part string) string {
	if part == f.Parts(r)[0] {
		return r.Name + f.Extension
	}
	return r.Name + "-" + part + f.Extension
}

// Metadata describes the run by texts: what trained it, how its model is declared, with every default, and for how long.
func (r *Run) Metadata() map[string]string {
	return map[string]string{
		"producer":    "tessera " + machine.Release,
		"model":       r.Spec.Name,
		"kind":        r.Spec.Kind,
		"shape":       strings.Join(strings.Fields(fmt.Sprint(r.Shape())), ","),
		"epoch":       strconv.Itoa(r.Epoch),
		"step":        strconv.Itoa(r.Step),
		"declaration": string(config.Fill(r.Spec)),
	}
}

// Shape is the shape of one image.
func (r *Run) Shape() []int {
	if r.Baseline != nil {
		return r.Baseline.Shape()
	}
	return slices.Clone(r.Trained.Shape)
}

// Tensors lists the scaling of the samples, if there is one, then the parameters by path; of a baseline, everything that its state
// holds, by name.
func (r *Run) Tensors() []checkpoint.Tensor {
	list := r.samples()
	if r.Baseline == nil {
		for _, p := range r.Parameters {
			list = append(list, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: p.Data})
		}
		return list
	}
	all := r.Baseline.State().Tensors
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, checkpoint.Tensor{Name: name, Shape: all[name].Shape, Data: all[name].Values})
	}
	return list
}

// samples are the tensors of the scaling of the samples, none where they are not scaled.
func (r *Run) samples() []checkpoint.Tensor {
	if r.Scaling == nil {
		return nil
	}
	shape := []int{len(r.Scaling.Shift)}
	return []checkpoint.Tensor{{Name: shiftName, Shape: shape, Data: r.Scaling.Shift}, {Name: factorName, Shape: shape, Data: r.Scaling.Factor}}
}

// Atoms are the atoms of the run, nil if it has none.
func (r *Run) Atoms() *metrics.Atoms {
	if r.Baseline != nil {
		return r.Baseline.Atoms()
	}
	return r.Model.Atoms()
}
