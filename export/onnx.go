package export

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tessera/baselines"
	"tessera/engine/ir"
	"tessera/export/onnx"
	"tessera/graph"
	"tessera/internal/machine"
	"tessera/losses"
)

// The parts of a model. A head is a part with the name of the head.
const (
	wholePart   = "model"   // from "input" to every value
	encoderPart = "encoder" // from "input" to "code"
	decoderPart = "decoder" // from "code" to "output"
	headsPart   = "heads"   // from "code" to the heads
)

func init() {
	Registry.Register("onnx", "ONNX, opset 17: the whole model, its encoder, its decoder or a head, for batches of any size", func() Format {
		return Format{Extension: ".onnx", Parts: onnxParts, Write: writeONNX}
	})
}

// onnxParts lists the parts of a run: only a model has heads.
func onnxParts(r *Run) []string {
	parts := []string{wholePart, encoderPart, decoderPart}
	if r.Baseline != nil || len(r.Layout.Heads) == 0 {
		return parts
	}
	parts = append(parts, headsPart)
	for _, h := range r.Layout.Heads {
		if !slices.Contains(parts, h.Name) {
			parts = append(parts, h.Name)
		}
	}
	return parts
}

// writeONNX writes the format onnx: opset 17, float32. The first axis of the inputs and outputs is named batch and takes any length. The
// inputs and outputs have the names of Tessera's values: "input", "code", "output", heads; images have the shape of the
// model's images. The metadata hold the name, version and whole declaration of the model.
//
// Parts: "model" computes all values of images, "encoder" the code of images, "decoder" the output of codes, "heads" all heads
// of codes, the name of a head that head of codes.
func writeONNX(w io.Writer, r *Run, part string) error {
	m, err := Model(r, part)
	if err != nil {
		return err
	}
	b, err := m.Append(nil)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// Model returns the ONNX model of a part.
func Model(r *Run, part string) (*onnx.Model, error) {
	given, wanted := r.ends(part)
	g, err := onnx.Translate(onnx.Program{
		Module: func(batch int) (*ir.Module, error) { return r.module(batch, given, wanted) },
		Rows:   map[string][]int{losses.Output: r.Shape()},
	})
	if err != nil && (part == wholePart || part == encoderPart) {
		if _, failed := Model(r, decoderPart); failed == nil {
			err = fmt.Errorf("%w; the part %s has an ONNX form", err, decoderPart)
		}
	}
	if err != nil {
		return nil, err
	}
	g.Name = strings.TrimSpace(r.Spec.Name + " " + part)
	m := &onnx.Model{FormatVersion: onnx.FormatVersion, Producer: "tessera", ProducerVersion: machine.Release,
		Doc: r.Spec.About, Graph: g, Opsets: []onnx.Opset{{Version: onnx.OpsetVersion}}}
	metadata := r.Metadata()
	metadata["part"] = part
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		m.Metadata = append(m.Metadata, onnx.Property{Key: key, Value: metadata[key]})
	}
	return m, nil
}

// ends returns the value that a part is given, and those that it computes.
func (r *Run) ends(part string) (given string, wanted []string) {
	switch part {
	case encoderPart:
		return graph.Images, []string{losses.Code}
	case decoderPart:
		return losses.Code, []string{losses.Output}
	case wholePart:
		if r.Baseline != nil {
			return graph.Images, []string{losses.Code, losses.Output}
		}
		return graph.Images, r.Layout.Values()
	case headsPart:
		for _, h := range r.Layout.Heads {
			wanted = append(wanted, h.Name)
		}
		return losses.Code, wanted
	}
	return losses.Code, []string{part}
}

// module returns the program of a part for one batch size, between samples as the data set has them.
func (r *Run) module(batch int, given string, wanted []string) (*ir.Module, error) {
	m, err := r.program(batch, given, wanted)
	if err != nil {
		return nil, err
	}
	scaled(m, r.Scaling)
	return m, r.calibrated(m)
}

// program returns the program of the model. Its inputs and outputs are samples in their original scale.
func (r *Run) program(batch int, given string, wanted []string) (*ir.Module, error) {
	if r.Baseline != nil {
		return baselines.Program(r.Baseline, batch, given, wanted...)
	}
	request := graph.Request{Batch: batch, Want: wanted}
	if given != graph.Images {
		request.Given = []string{given}
	}
	p, err := r.Program(request)
	if err != nil {
		return nil, err
	}
	return p.Module()
}
