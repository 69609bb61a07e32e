package cli

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const spectraModel = smallModels + `
[model.spectra]
dataset = { name = "csv", images = "spectra.csv", labels = "species", names = "id", scale = "minmax", validation = 0 }
encoder = [{ kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense" }]
loss = [{ kind = "mse" }]
train = { epochs = 1 }
`

// trainSpectra trains a model on a table with the named columns of values. The columns have different levels: 10, 20, 30, ...
func (b *bench) trainSpectra(values ...string) {
	b.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	fmt.Fprintf(&text, "id,species,%s\n", strings.Join(values, ","))
	for i := range 20 {
		fmt.Fprintf(&text, "s%d,%s", i, species[i%3])
		for j := range values {
			fmt.Fprintf(&text, ",%g", 10*float64(j+1)+r.Float64())
		}
		text.WriteString("\n")
	}
	b.write("models.toml", spectraModel)
	b.write("spectra.csv", text.String())
	b.must(0, "train", "spectra", "--out", "run")
	b.must(0, "encode", "run", "--in", "spectra.csv", "--out", "codes.csv")
}

// firstLine returns the first line of a file.
func (b *bench) firstLine(name string) string {
	b.Helper()
	first, _, _ := strings.Cut(b.read(name), "\n")
	return first
}

func TestDecodedColumnsAreNamedOnlyByTheFileOfTheTraining(t *testing.T) {
	b := newBench(t)
	b.trainSpectra("a", "b", "c")
	r := b.must(0, "decode", "run", "--in", "codes.csv", "--out", "decoded.csv")
	if got := b.firstLine("decoded.csv"); got != "name,label,a,b,c" || r.stderr != "" {
		t.Errorf("the columns are %q, standard error %q", got, r.stderr)
	}
	text := b.read("spectra.csv")
	b.elsewhere(0, "decode", "../run", "--in", "../codes.csv", "--out", "decoded.csv")
	expect.Equal(t, b.firstLine("elsewhere/decoded.csv"), "name,label,a,b,c", "from another folder the columns")
	for name, other := range map[string]string{"reordered": strings.Replace(text, "a,b,c", "b,a,c", 1), "longer": text + "s20,x,1,2,3\n"} {
		b.write("spectra.csv", other)
		r := b.must(0, "decode", "run", "--in", "codes.csv", "--out", "decoded.csv")
		expect.Equal(t, b.firstLine("decoded.csv"), "name,label,0,1,2", name, "the columns")
		b.contains("standard error", r.stderr, "decoded.csv has numbers as names of columns", b.path("spectra.csv")+": is not the file of the training", "restore that file")
	}
	b.write("spectra.csv", text)
	fatal.If(t, os.Remove(b.path("run/env.json")))
	b.contains("without a record", b.must(0, "decode", "run", "--in", "codes.csv", "--out", "decoded.csv").stderr, "is not in the run's env.json")
}

// The names of the columns of a sparse matrix are kept in the run.
func TestDecodedColumnsOfAMatrixAreNamedByTheRun(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.m]
kind = "nmf"
solver = "mu"
components = 2
iterations = 3
dataset = { file = "counts.mtx", column_names = "genes.txt", absent = "zero" }
`)
	b.write("counts.mtx", "%%MatrixMarket matrix coordinate integer general\n4 3 6\n1 1 2\n2 2 1\n3 3 4\n4 1 1\n1 3 1\n2 1 3\n")
	b.write("genes.txt", "abl\nbax\ncdk\n")
	b.must(0, "train", "m", "--quiet")
	b.must(0, "encode", "runs/m", "--in", "counts.mtx", "-o", "codes.csv")
	b.must(0, "decode", "runs/m", "--in", "codes.csv", "-o", "decoded.csv")
	b.must(0, "encode", "runs/m", "--in", "counts.mtx", "--value", "output", "-o", "output.csv")
	for _, name := range []string{"decoded.csv", "output.csv"} {
		expect.Equal(t, b.firstLine(name), "abl,bax,cdk", name)
	}
}

func TestDecodedSpectraAreEncodedAgain(t *testing.T) {
	t.Parallel()
	for _, columns := range [][]string{{"400", "410", "420"}, {"a", "label", "name"}} {
		b := benchOf(t)
		b.trainSpectra(columns...)
		b.must(0, "encode", "run", "--in", "spectra.csv", "--out", "codes.npy")
		for _, codes := range []string{"codes.csv", "codes.npy"} {
			b.must(0, "decode", "run", "--in", codes, "--out", "decoded.csv")
			b.must(0, "encode", "run", "--in", "decoded.csv", "--out", "again.csv")
			if codes == "codes.npy" {
				continue // without names and labels
			}
			lines, again := strings.Split(b.read("codes.csv"), "\n"), strings.Split(b.read("again.csv"), "\n")
			if len(lines) != len(again) || again[0] != lines[0] || again[1][:strings.LastIndex(again[1], species[0])] != "s0," {
				t.Errorf("%q: codes %q, encoded again %q", columns, lines[:2], again[:2])
			}
		}
	}
}

// Pictures of a camera with 12 bits in files of 16 bits are decoded to files of 16 bits: 8 bits would have only twelve levels.
func TestPicturesOf16BitsAreDecodedTo16Bits(t *testing.T) {
	b := newBench(t)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 12 {
		picture := image.NewGray16(image.Rect(0, 0, 4, 4))
		for k := range 16 {
			picture.SetGray16(k%4, k/4, color.Gray16{Y: uint16(129 + r.IntN(3000))})
		}
		var file strings.Builder
		fatal.If(t, png.Encode(&file, picture))
		b.write(fmt.Sprintf("cells/%02d.png", i), file.String())
	}
	b.write("models.toml", strings.Replace(smallModels, "[model.small]", `[model.cells]
dataset = { file = "cells" }
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }]
train = { epochs = 2 }
[model.small]`, 1))
	b.must(0, "train", "cells", "--out", "run")
	b.must(0, "encode", "run", "--in", "cells", "--out", "codes.npy")
	b.must(0, "decode", "run", "--in", "codes.npy", "--out", "decoded")
	b.must(0, "decode", "run", "--in", "codes.npy", "--out", "decoded.npy")
	rows, err := data.ReadRows(t.Context(), b.path("decoded.npy"), []int{4, 4}, nil)
	fatal.If(t, err)
	got, err := png.Decode(strings.NewReader(b.read("decoded/00000.png")))
	fatal.If(t, err)
	for k, v := range rows.Float32()[:16] {
		want := color.Gray16{Y: uint16(math.Round(65535 * float64(min(max(v, 0), 1))))}
		expect.Equal(t, got.At(k%4, k/4), color.Color(want), "pixel", k)
	}
}

func TestColumnsAreEncodedByTheirNames(t *testing.T) {
	b := newBench(t)
	b.trainSpectra("a", "b", "c")
	var turned strings.Builder
	for line := range strings.Lines(b.read("spectra.csv")) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		fmt.Fprintln(&turned, strings.Join([]string{cells[4], cells[0], cells[3], cells[1], cells[2]}, ","))
	}
	b.write("turned.csv", turned.String())
	b.must(0, "encode", "run", "--in", "turned.csv", "--out", "again.csv")
	expect.Equal(t, b.read("again.csv"), b.read("codes.csv"), "columns in another order give the codes")
}
