package export

import (
	"fmt"
	"io"

	"tessera/train/checkpoint"
)

func init() {
	Registry.Register("safetensors", "safetensors in the layouts of PyTorch's modules", func() Format {
		return Format{Extension: ".safetensors", Parts: parts(parametersPart), Write: writeSafetensors}
	})
}

// writeSafetensors writes the format safetensors: the parameters as modules of PyTorch hold them, under their paths, so that
// load_state_dict takes them; docs/python.md says what differs from Tessera's layout, and shows a loader. The metadata hold the
// whole declaration. The tensors of a baseline are not changed.
func writeSafetensors(w io.Writer, r *Run, _ string) error {
	f := &checkpoint.File{Metadata: r.Metadata(), Tensors: r.Tensors()}
	f.Metadata["format"] = "pt" // what Hugging Face's libraries ask for
	if r.Baseline == nil {
		tensors, err := pytorch(r.Model)
		if err != nil {
			return err
		}
		f.Tensors = append(r.samples(), tensors...)
	}
	b, err := checkpoint.Encode(f, nil)
	if err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	_, err = w.Write(b)
	return err
}
