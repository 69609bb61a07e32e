package cli

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"
	"testing"
)

// Of data of one's own, init writes models that check accepts and that can be trained.
func TestInitDeclaresModelsOfATableAndOfPictures(t *testing.T) {
	b := newBench(t)
	b.shipped()
	rows := "cell,kind,note,a,b,c,d,e,f,g,h\n"
	for i := range 60 {
		rows += fmt.Sprintf("c%d,%s,text %d", i, []string{"x", "y"}[i%2], i%40)
		for k := range 8 {
			rows += fmt.Sprintf(",%d.%d", (i*(k+3))%11, k)
		}
		rows += "\n"
	}
	b.write("My genes.csv", strings.Replace(rows, ",3.1,", ",,", 1))
	out := b.must(0, "init", "My genes.csv").stdout
	b.contains("the guesses", out, "models.toml", `labels: column "kind"`, `names: column "cell"`, "not read, because they are texts: note", "empty cells are missing", "scaled to [0,1]", "values: 8 columns", "tessera train my-genes")
	b.contains("check", b.must(0, "check").stdout, "8 values", "2 models, 2 sweeps, no errors")
	b.must(0, "train", "my-genes", "--epochs", "2")
	b.must(0, "sweep", "units", "--epochs", "1", "--dry-run")
	b.contains("again", b.must(exitUsage, "init", "My genes.csv").stderr, "models.toml exists already")

	if err := os.Remove(b.path("models.toml")); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		picture := image.NewGray(image.Rect(0, 0, 8, 8))
		picture.SetGray(i%8, i/2, color.Gray{Y: 200})
		var text strings.Builder
		if err := png.Encode(&text, picture); err != nil {
			t.Fatal(err)
		}
		b.write(fmt.Sprintf("photos/%d.png", i), text.String())
	}
	b.contains("pictures", b.must(0, "init", "photos").stdout, "32 x 32 pixels", "tessera train photos")
	b.must(0, "check")
	b.must(0, "train", "photos", "--epochs", "1")
	if b.exists("photos/models.toml") {
		t.Error("the file is among the pictures")
	}
	b.must(exitData, "init", "none.csv")
	b.write("notes.txt", "")
	b.must(exitUsage, "init", "notes.txt")
}
