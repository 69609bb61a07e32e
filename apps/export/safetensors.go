package export

import (
	"fmt"
	"io"

	"tessera/internal/train/checkpoint"
	"tessera/internal/train/torch"
)

func init() {
	Registry.Register("safetensors", "safetensors in the layouts of PyTorch's modules", func() Format {
		return Format{Extension: ".safetensors", Parts: parts(parametersPart), Write: writeSafetensors}
	})
}

// writeSafetensors writes the format safetensors. The parameters are in the layouts of PyTorch's modules, under their
// paths, so that load_state_dict accepts them. docs/python.md describes the differences from Tessera's layout, and
// contains a loader. The metadata contain the complete declaration. The tensors of a baseline are not converted.
func writeSafetensors(w io.Writer, r *Run, _ string) error {
	f := &checkpoint.File{Metadata: r.Metadata(), Tensors: r.Tensors()}
	f.Metadata["format"] = "pt" // Hugging Face's libraries require this key
	if r.Baseline == nil {
		tensors, err := torch.Tensors(r.Model)
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
