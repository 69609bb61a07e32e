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
	// Parts lists what a file can contain for that run, the default part first.
	Parts func(r *Run) []string
	// Write writes the file with one of the parts. It returns an error for a run that the format cannot represent; the error
	// names the part of the run that is the reason.
	Write func(w io.Writer, r *Run, part string) error
}

// parts returns a function for a format whose parts are the same for every run.
func parts(names ...string) func(*Run) []string { return func(*Run) []string { return names } }

// Registry holds every format.
var Registry = part.New[Format]("format")

// Run is a trained run.
type Run struct {
	*train.Trained
	Name string // of the run's folder
	Path string // of the folder; empty where the training is not known

	// DrawAtoms draws the atoms for formats with a picture of them; nil omits the picture.
	DrawAtoms func(*metrics.Atoms) (image.Image, error)
}

// Open reads the run of a folder, with the calibrations of its heads. The errors are those of [train.Open] and of [train.Trained.ReadPostHoc].
func Open(path string) (*Run, error) {
	r, err := OpenRaw(path)
	if err != nil {
		return nil, err
	}
	return r, r.ReadPostHoc()
}

// OpenRaw is [Open] without the calibrations.
func OpenRaw(path string) (*Run, error) {
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

// Write writes a run in the named format. An empty part selects the default part. It returns an error for an unknown format
// or part.
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

// ErrUnknown is the error for an unknown format or part.
var ErrUnknown = errors.New("unknown")

// Choose returns the named format and the part; an empty part selects the default one.
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

// FileName returns the default name of a run's file: the name of the run, then the part unless it is the default one.
func FileName(r *Run, f Format, part string) string {
	if part == f.Parts(r)[0] {
		return r.Name + f.Extension
	}
	return r.Name + "-" + part + f.Extension
}

// Metadata describes the run by strings: the version that trained it, the declaration with all defaults, and the length of
// the training.
func (r *Run) Metadata() map[string]string {
	m := map[string]string{
		"producer":    "tessera " + machine.Release,
		"model":       r.Spec.Name,
		"kind":        r.Spec.Kind,
		"shape":       strings.Join(strings.Fields(fmt.Sprint(r.Shape())), ","),
		"epoch":       strconv.Itoa(r.Epoch),
		"step":        strconv.Itoa(r.Step),
		"declaration": string(config.Fill(r.Spec)),
	}
	for name, h := range r.PostHoc {
		m["calibration/"+name] = h.String()
	}
	return m
}

// Shape returns the shape of one image.
func (r *Run) Shape() []int {
	if r.Baseline != nil {
		return r.Baseline.Shape()
	}
	return slices.Clone(r.Trained.Shape)
}

// Tensors lists the scaling of the samples, if any, the calibrations of heads, and the parameters by path. For a baseline it
// lists all tensors of its state by name.
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

// samples returns the tensors of the scaling of the samples, none where they are not scaled, and those of the
// calibrations.
func (r *Run) samples() []checkpoint.Tensor {
	list := r.calibrations()
	if r.Scaling == nil {
		return list
	}
	shape := []int{len(r.Scaling.Shift)}
	return append([]checkpoint.Tensor{{Name: shiftName, Shape: shape, Data: r.Scaling.Shift}, {Name: factorName, Shape: shape, Data: r.Scaling.Factor}}, list...)
}

// Atoms returns the atoms of the run, nil if it has none.
func (r *Run) Atoms() *metrics.Atoms {
	if r.Baseline != nil {
		return r.Baseline.Atoms()
	}
	return r.Model.Atoms()
}
