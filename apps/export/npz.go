package export

import (
	"archive/zip"
	"encoding/json"
	"io"

	"tessera/data"
)

// parametersPart is the only part of formats that contain tensors.
const parametersPart = "parameters"

func init() {
	Registry.Register("npz", "NumPy: the parameters by path, in Tessera's layout", func() Format {
		return Format{Extension: ".npz", Parts: parts(parametersPart), Write: writeNPZ}
	})
}

// writeNPZ writes NumPy's format npz. Every parameter is an array under its path, in Tessera's layout (see
// docs/python.md). The member metadata.json contains [Run.Metadata] as JSON; NumPy returns its bytes. Members are not
// compressed.
func writeNPZ(w io.Writer, r *Run, _ string) error {
	z := zip.NewWriter(w)
	for _, t := range r.Tensors() {
		member, err := z.CreateHeader(&zip.FileHeader{Name: t.Name + ".npy"})
		if err != nil {
			return err
		}
		if err := data.WriteNPY(member, t.Shape, t.Data); err != nil {
			return err
		}
	}
	member, err := z.CreateHeader(&zip.FileHeader{Name: "metadata.json"})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.Metadata(), "", "  ") // encoding/json sorts the keys
	if err != nil {
		return err
	}
	if _, err := member.Write(text); err != nil {
		return err
	}
	return z.Close()
}
