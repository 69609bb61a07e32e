package export

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tessera/apps/export/onnx"
	"tessera/classical"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/machine"
	"tessera/losses"
)

// The parts of a model. A head is also a part, with the name of the head.
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

// onnxParts returns the parts of a run. Only models that are not baselines have heads.
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

// writeONNX writes the format onnx: opset 17, float32. The first axis of the inputs and outputs is named batch and can
// have any length. The inputs and outputs have the names of Tessera's values: "input", "code", "output", and the heads.
// Images have the shape of the model's images. The metadata contain the name, the version and the complete declaration
// of the model.
//
// The part "model" computes all values from images, "encoder" the code from images, "decoder" the output from codes,
// "heads" all heads from codes. The name of a head as the part computes this head from codes.
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

// ends returns the value that is the input of a part, and the values that the part computes.
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

// module returns the program of a part for one batch size. Its inputs and outputs are samples in their original scale.
func (r *Run) module(batch int, given string, wanted []string) (*ir.Module, error) {
	m, err := r.program(batch, given, wanted)
	if err != nil {
		return nil, err
	}
	if err := r.read(m); err != nil {
		return nil, err
	}
	return m, r.calibrated(m)
}

// program returns the program of the model, without scaling and calibrations.
func (r *Run) program(batch int, given string, wanted []string) (*ir.Module, error) {
	if r.Baseline != nil {
		return classical.Program(r.Baseline, batch, given, wanted...)
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
