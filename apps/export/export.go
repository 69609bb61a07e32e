// Package export writes trained runs in the formats of other programs: ONNX, NumPy, safetensors in PyTorch's layouts,
// TensorBoard, CSV.
//
// A new format is one new file with one call of Registry.Register. The command `tessera export` then offers it.
package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/machine"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/losses"
	"tessera/metrics"
)

// Format writes a run to a single file, or to a folder of one for each part. It does not change the run. Equal runs give equal bytes.
type Format struct {
	// Extension is the extension of the default file name: ".onnx".
	Extension string
	// Parts returns the parts of a run that a file can contain, with the default part first.
	Parts func(r *Run) []string
	// Folder names the file of each part, in the order of the parts, if a run is exported as a folder of all of them; nil for one file.
	Folder []string
	// Write writes the file with one of the parts. It returns an error for a run that the format cannot represent. The
	// error names the part of the run that is the reason.
	Write func(w io.Writer, r *Run, part string) error
}

// parts returns the function Parts of a format whose parts are the same for every run.
func parts(names ...string) func(*Run) []string { return func(*Run) []string { return names } }

// Registry holds every format.
var Registry = part.New[Format]("format")

// Run is a trained run.
type Run struct {
	*train.Trained
	Name string // name of the run's folder
	Path string // path of the folder; "" if the training is not known

	// DrawAtoms draws the atoms, for formats that contain a picture of them. If it is nil, the picture is omitted.
	DrawAtoms func(*metrics.Atoms) (image.Image, error)
}

// Open reads the run in a folder, with the calibrations of its heads. The errors are those of [train.Open] and of
// [train.Trained.ReadPostHoc].
func Open(path string) (*Run, error) {
	r, err := OpenRaw(path)
	if err != nil {
		return nil, err
	}
	return r, r.ReadPostHoc()
}

// OpenRaw is like [Open], but does not read the calibrations.
func OpenRaw(path string) (*Run, error) {
	t, err := train.Open(path)
	if err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(path) // also gives a name to the path "."
	if err != nil {
		return nil, err
	}
	return &Run{Trained: t, Name: filepath.Base(whole), Path: path}, nil
}

// History reads the metrics.jsonl of the run by [train.ReadHistory]. A run without a folder has no epochs.
func (r *Run) History() ([]train.Epoch, error) {
	if r.Path == "" {
		return nil, nil
	}
	return train.ReadHistory(r.Path)
}

// ValueNames returns the names of the values of a sample: those of the columns of a matrix or of the file of the training. It returns
// nil if they have no names, or if the file is missing or has changed.
func (r *Run) ValueNames() []string {
	if r.ColumnNames != nil || r.Path == "" {
		return r.ColumnNames
	}
	e, err := train.ReadEnvironment(r.Path)
	if err != nil {
		return nil
	}
	names, _ := e.ValueNames(context.Background(), r.Spec.Dataset)
	return names
}

// atomNames is [Run.ValueNames] of atoms: names of the target of a transcoder.
func (r *Run) atomNames() []string {
	if r.OutputIsSample() {
		return r.ValueNames()
	}
	for _, t := range r.Spec.Targets(r.Layout) {
		if t.Value == losses.Output {
			return lists.Map(lists.Range(0, t.Size), t.Name)
		}
	}
	return nil
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

// FileName returns the default name of a run's file: the name of the run, followed by the part unless it is the default
// one.
func FileName(r *Run, f Format, part string) string {
	if part == f.Parts(r)[0] {
		return r.Name + f.Extension
	}
	return r.Name + "-" + part + f.Extension
}

// Metadata describes the run by texts: the version that trained it, the declaration with all defaults, the length of the training, and
// as JSON the names of the classes by column, and those of the values of texts and sparse matrices.
func (r *Run) Metadata() map[string]string {
	m := map[string]string{
		"producer":    "tessera " + machine.Release,
		"model":       r.Spec.Name,
		"kind":        r.Spec.Kind,
		"shape":       strings.Join(strings.Fields(fmt.Sprint(r.Shape())), ","),
		"epoch":       strconv.Itoa(r.Epoch),
		"step":        strconv.Itoa(r.Step),
		"declaration": string(r.Spec.Text()),
	}
	classes := map[string][]string{}
	if len(r.Classes) > 0 {
		classes[data.LabelsColumn] = r.Classes
	}
	if r.Baseline == nil {
		for _, c := range r.Layout.Columns {
			if len(c.Names) > 0 {
				classes[c.Name] = c.Names
			}
		}
	}
	if len(classes) > 0 {
		text, _ := json.Marshal(classes) // texts cannot fail
		m["class_names"] = string(text)
	}
	if len(r.ColumnNames) > 0 {
		text, _ := json.Marshal(r.ColumnNames)
		m["value_names"] = string(text)
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

// Tensors returns the scaling of the samples, if any, the calibrations of heads, and the parameters by path. For a
// baseline it returns all tensors of its state by name.
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

// samples returns the tensors of the scaling of the samples, if they are scaled, and those of the calibrations.
func (r *Run) samples() []checkpoint.Tensor {
	var list []checkpoint.Tensor
	r.Scaling.Tensors(func(name string, shape []int, values []float32) {
		list = append(list, checkpoint.Tensor{Name: name, Shape: shape, Data: values})
	})
	return append(list, r.calibrations()...)
}
