package cli

import (
	"strings"
	"testing"
)

func TestExportWritesEveryFormatAndRefusesWhatHasNoForm(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	for format, file := range map[string]string{"onnx": "small.onnx", "npz": "small.npz", "safetensors": "small.safetensors",
		"tensorboard": "small.tfevents", "csv": "small.csv"} {
		if got := b.must(0, "export", "runs/small", "--to", format).stdout; got != file+"\n" || !b.exists(file) {
			t.Errorf("%s: printed %q", format, got)
		}
	}
	b.must(0, "export", "runs/small", "--to", "csv", "--part", "atoms")
	b.must(0, "export", "runs/small", "--to", "onnx", "--part", "encoder", "-o", "deep/er/e.onnx")
	if !b.exists("small-atoms.csv") || !b.exists("deep/er/e.onnx") {
		t.Error("a part has another name")
	}
	b.write("models.toml", "[model.few]\nkind = \"nmf\"\ndataset = \"swimmer\"\ncomponents = 4\niterations = 2\n")
	b.must(0, "train", "few")
	for want, args := range map[string]string{
		"the encoder is not a closed expression":                                                   "runs/few --to onnx",
		`--part: part "head" is unknown for onnx of this run, want one of model, encoder, decoder`: "runs/small --to onnx --part head",
		"--out: runs is a folder; give a file name":                                                "runs/small --to npz -o runs",
		"export: a.npz: the name is that of a file of --to npz; want a name that ends in .csv":     "runs/small --to csv -o a.npz",
		"export: small.npz exists already and is not replaced; name the file with -o":              "runs/small --to npz",
	} {
		b.contains(args, b.must(exitUsage, append([]string{"export"}, strings.Fields(args)...)...).stderr, want)
	}
	if b.exists("few.onnx") {
		t.Error("a failed export left a file")
	}
	b.must(0, "export", "runs/few", "--to", "onnx", "--part", "decoder")
	b.write("holes.csv", "a,b,c\n1,2,3\n2,,6\n3,6,8\n4,8,12\n5,1,7\n")
	b.write("models.toml", "[model.holes]\nkind = \"pca\"\ndataset = { file = \"holes.csv\", missing = \"nan\", validation = 0 }\ncomponents = 1\n")
	b.must(0, "train", "holes")
	b.contains("a solver of missing values", b.must(0, "export", "runs/holes", "--to", "onnx").stderr, "the codes of a sample with a missing value (NaN) are NaN there")
}
