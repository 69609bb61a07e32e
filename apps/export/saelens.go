package export

import (
	"fmt"
	"io"

	"tessera/internal/train/checkpoint"
	"tessera/internal/train/sae"
)

func init() {
	for _, f := range []struct {
		name, of, weights string
		files             func(*sae.Dictionary) (cfg []byte, tensors []checkpoint.Tensor, err error)
	}{{"saelens", "SAELens", sae.LensFile, (*sae.Dictionary).Lens}, {"sparsify", "EleutherAI's sparsify", sae.EleuthFile, (*sae.Dictionary).Eleuth}} {
		Registry.Register(f.name, "a folder with a sparse dictionary for "+f.of, func() Format {
			write := func(w io.Writer, r *Run, part string) error { return writeDictionary(w, r, part, f.files) }
			return Format{Extension: "-" + f.name, Parts: parts(parametersPart, configPart), Folder: []string{f.weights, sae.ConfigFile}, Write: write}
		})
	}
}

const configPart = "config"

// writeDictionary writes the tensors or the configuration of a sparse dictionary.
func writeDictionary(w io.Writer, r *Run, part string, files func(*sae.Dictionary) ([]byte, []checkpoint.Tensor, error)) error {
	if r.Baseline != nil {
		return fmt.Errorf("a run of kind %q is no sparse dictionary", r.Spec.Kind)
	}
	d, err := sae.Of(r.Model, r.Scaling)
	if err != nil {
		return err
	}
	b, tensors, err := files(d)
	if err == nil && part == parametersPart {
		f := &checkpoint.File{Metadata: r.Metadata(), Tensors: tensors}
		f.Metadata["format"] = "pt"
		b, err = checkpoint.Encode(f, nil)
	}
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}
