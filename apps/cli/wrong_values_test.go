package cli

import (
	"fmt"
	"strings"
	"testing"
)

// check finds errors that the declaration alone does not show: in the named files, and in the graph.
func TestCheckFindsWrongValuesOfColumns(t *testing.T) {
	b := newBench(t)
	rows := "a,b,target,seen,weight,token,dose,comma\n"
	for i := range 12 {
		rows += fmt.Sprintf("0.%d,0.%d,0.%d,%d,%d.5,%d,%s,\"1,%d\"\n", i%3, i%5, i%7, i%2, i%4-1, i%6-1, []string{"1.5", "2.5", "n.d."}[i%3], i)
	}
	b.write("rows.csv", rows)
	model := `
[model.m]
dataset = { name = "csv", file = "rows.csv", columns = { images = ["a", "b"], target = "target", seen = "seen", weight = "weight", token = "token" } }
encoder = [{ kind = "dense", units = 4 }]
decoder = []
head.y.layers = [{ kind = "dense" }]
loss = [{ kind = "mse", on = "y", against = "target", mask = "seen" }]
`
	named := strings.NewReplacer(`columns = {`, `labels = "dose", columns = {`, `against = "target"`, `against = "labels"`, `{ kind = "dense" }]`, `{ kind = "dense", units = 1 }]`).Replace(model)
	b.write("models.toml", named)
	b.contains("labels with a text", b.must(exitData, "check").stderr, `its labels are read as names of 3 classes, so that mse would compare "1.5" as 0`, "columns")
	b.write("models.toml", model)
	b.must(0, "check")
	reads := `head.y.from = ["code", "labels"]` + "\nhead.y.layers"
	embeds := func(from string) string {
		return `[{ kind = "embedding", vocabulary = 4, units = 4, from = "` + from + `" }]`
	}
	for name, c := range map[string]struct {
		old, new string
		exit     int
		want     []string
	}{
		"a mask of other numbers":      {`"seen" }]`, `"token" }]`, exitData, []string{"line 2", `column "token"`, "got -1", "0 or 1"}},
		"a weight below zero":          {`mask = "seen"`, `sample_weight = "weight"`, exitData, []string{"line 2", `column "weight"`, "got -1.5", "a number >= 0"}},
		"labels that there are not":    {`head.y.layers`, reads, exitData, []string{"no labels", "head.y.0 (dense)", "key labels"}},
		"an embedding of numbers":      {`[{ kind = "dense", units = 4 }]`, embeds("images"), exitData, []string{"encoder.0 (embedding)", "whole numbers from 0 to 3", "got 0.1"}},
		"an embedding that is small":   {`[{ kind = "dense", units = 4 }]`, embeds("token"), exitData, []string{`column "token"`, "got -1", "whole numbers from 0 to 3", "vocabulary"}},
		"a number with a text":         {`target = "target"`, `target = "dose"`, exitConfig, []string{"models.toml:7:", `the column "target" is read as 3 classes`, `line 4, column "dose": got "n.d.", want a finite number`, "mse compares with numbers", "where"}},
		"another decimal sign":         {`target = "target"`, `target = "comma"`, exitConfig, []string{"models.toml:7:", `line 2, column "comma": got "1,0"`, `write decimal = ","`}},
		"a mask of classes":            {`mask = "seen"`, `mask = "labels"`, exitData, []string{"no labels", "loss[0] (mse)", "key labels"}},
		"a mask that a model computes": {`mask = "seen"`, `mask = "code"`, exitConfig, []string{`mask: "code" is a value of the model`, "any value", "[0,1]"}},
		"a weight that it computes":    {`mask = "seen"`, `sample_weight = "y"`, exitConfig, []string{`sample_weight: "y" is a value of the model`, "values >= 0"}},
		"a column that there is not":   {`target = "target"`, `target = "aim"`, exitConfig, []string{"models.toml:3:", `model "m": dataset: csv: rows.csv: `, "or give head.y.layers[0].units, which is not known without it", `"aim"`, `"token"`}},
		"a layer without a gradient":   {`units = 4 }]`, `units = 4 }, { kind = "vq", entries = 4 }]` + "\n" + `head.y.from = "encoder.1.index"`, exitConfig, []string{"models.toml:8:8", "loss: has no gradient with respect to encoder.0.weight", "freeze"}},
		"a player that nothing trains": {`loss = [`, `player = { p = { trains = "encoder.*", losses = "mse" }, q = { trains = "head.*", losses = "l2" } }` + "\n" + `loss = [{ kind = "l2", on = "code" }, `, exitConfig, []string{"models.toml:7:", "player.q: its loss depends on no trainable parameter"}},
		"a class that has no unit":     {`mse", on = "y", against = "target"`, `cross_entropy", on = "y", against = "token"`, exitConfig, []string{"head.y.layers[0] (dense)", `missing key "units"`, "number of outputs"}},
		"a term on a column":           {`loss = [`, `loss = [{ kind = "hoyer", on = "target" }, `, exitConfig, []string{"loss[0] (hoyer)", "no training changes"}},
		"a teacher that nothing reads": {`mask = "seen"`, `teacher = "t"`, exitConfig, []string{"loss[0] (mse): teacher: mse reads no teacher"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(model, c.old, c.new, 1)
			if text == model {
				t.Fatal("nothing was changed")
			}
			b.write("models.toml", text)
			b.contains(name, b.must(c.exit, "check").stderr, c.want...)
		})
	}
}

// Unsuitable values are found in every input of a model: labels that are used as numbers, test samples, samples to encode.
func TestWrongValuesAreFoundInEverySplitAndInput(t *testing.T) {
	b := newBench(t)
	rows := func(name string, classes, tokens int) {
		text := "a,b,class,token\n"
		for i := range 12 {
			text += fmt.Sprintf("0.%d,0.%d,%d,%d\n", i%3, i%5, i%classes, i%tokens)
		}
		b.write(name, text)
	}
	rows("rows.csv", 3, 4)
	rows("test.csv", 3, 6)
	model := `
[model.m]
dataset = { name = "csv", file = "rows.csv", test_images = "test.csv", labels = "class", columns = { images = ["a", "b"], token = "token" } }
encoder = [{ kind = "embedding", vocabulary = 4, units = 4, from = "token" }]
decoder = []
head.y.layers = [{ kind = "dense", units = 2 }]
loss = [{ kind = "mse", on = "y", against = "images" }]
train = { epochs = 1 }
`
	b.write("models.toml", model)
	b.contains("training", b.must(0, "train", "m", "--out", "runs/tested").stderr, "not measured", "line 6", `column "token"`, "got 4", "whole numbers from 0 to 3")

	b.contains("eval", b.must(exitData, "eval", "runs/tested").stderr, "line 6", "got 4")

	b.write("models.toml", strings.Replace(model, `test_images = "test.csv", `, "", 1))
	b.must(0, "train", "m")
	b.contains("encode", b.must(exitData, "encode", "runs/m", "--in", "test.csv", "--out", "codes.npy").stderr, `column "token"`, "got 4", "encoder.0 (embedding)")

	for name, c := range map[string]struct{ loss, want string }{
		"a mask of labels":    {`{ kind = "mse", on = "y", against = "images", mask = "labels" }`, "reads the column as mask and wants 0 or 1"},
		"labels as numbers":   {`{ kind = "mse", on = "n", against = "labels" }`, "reads the column as against and wants the number of a sample whose class is known"},
		"weights of unknowns": {`{ kind = "mse", on = "y", against = "images", sample_weight = "labels" }`, "wants a number >= 0 of a sample whose class is known"},
	} {
		text := strings.NewReplacer(`test_images = "test.csv", `, "", `{ kind = "mse", on = "y", against = "images" }`, c.loss, `labels = "class", `, `labels = "class", labelled = 0.5, `,
			`head.y`, `head.n.layers = [{ kind = "dense", units = 1 }]`+"\n"+`head.y`).Replace(model)
		if strings.Contains(c.loss, `"n"`) {
			text = strings.Replace(text, "head.y.layers = [{ kind = \"dense\", units = 2 }]\n", "", 1)
		} else {
			text = strings.Replace(text, "head.n.layers = [{ kind = \"dense\", units = 1 }]\n", "", 1)
		}
		b.write("models.toml", text)
		b.contains(name, b.must(exitData, "train", "m", "--out", "runs/labels").stderr, "the label of line", c.want)
	}
}
