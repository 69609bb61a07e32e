package cli

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"

	"golang.org/x/text/encoding/unicode"
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
	b.contains("the guesses", out, "models.toml", `labels: column "kind"`, `names: column "cell"`, "count the rows: note", "empty cells are missing", "scaled to [0,1]", "values: 8 columns", "tessera train my-genes")
	b.contains("check", b.must(0, "check").stdout, "8 values", "4 models, 2 sweeps, no errors")
	b.must(0, "train", "my-genes", "--epochs", "2")
	b.must(0, "train", "my-genes-classes", "--epochs", "2")
	b.must(0, "sweep", "units", "--epochs", "1", "--dry-run")
	b.contains("again", b.must(exitUsage, "init", "My genes.csv").stderr, "models.toml exists already")

	fatal.If(t, os.Remove(b.path("models.toml")))
	for i := range 12 {
		picture := image.NewGray(image.Rect(0, 0, 8, 8))
		picture.SetGray(i%8, i/2, color.Gray{Y: 200})
		var text strings.Builder
		fatal.If(t, png.Encode(&text, picture))
		b.write(fmt.Sprintf("photos/%d.png", i), text.String())
		b.write(fmt.Sprintf("kinds/%d/%d.png", i%2, i), text.String())
		b.write(fmt.Sprintf("halves/%s/%d/%d.png", []string{"train", "Test"}[i%3/2], i%2, i), text.String())
	}
	b.contains("pictures", b.must(0, "init", "photos").stdout, "all pictures have 8x8 pixels", "tessera train photos")
	b.must(0, "check")
	b.must(0, "train", "photos", "--epochs", "1")
	b.write("photos/x.png", "\x89PNG\r\n\x1a\n\x00")
	broken := b.must(exitData, "check").stderr // of two models, said once
	b.contains("a broken picture", broken, "photos/x.png: cannot be read", "delete it, or move it out of the folder")
	expect.Equal(t, strings.Count(broken, "x.png"), 1)
	if b.exists("photos/models.toml") {
		t.Error("the file is among the pictures")
	}
	fatal.If(t, os.Remove(b.path("models.toml")))
	b.contains("classes", b.must(0, "init", "kinds").stdout, "the folders are 2 classes (labels)")
	b.must(0, "train", "kinds-classes", "--epochs", "1")
	fatal.If(t, os.Remove(b.path("models.toml")))
	b.contains("training and test", b.must(0, "init", "halves").stdout, "the folders are 2 classes (labels)", "the test samples are those of halves/Test")
	b.contains("both are read", b.must(0, "check").stdout, "8 training images", "4 test images")
	fatal.If(t, os.Remove(b.path("models.toml")))
	for i := range 24 {
		b.write(fmt.Sprintf("letters/%d/%d.txt", i%2, i), fmt.Sprintf("the %s is near the %s and the house", []string{"cat", "ship"}[i%2], []string{"dog", "sea", "milk", "wind"}[i%4]))
	}
	b.contains("classes of texts", b.must(0, "init", "letters").stdout, "classes: 0, 1 (labels)")
	b.contains("a classifier of texts", b.must(0, "train", "letters-classes", "--epochs", "20").stdout, "accuracy")
	b.must(exitData, "init", "none.csv")
	b.write("notes.doc", "")
	b.must(exitUsage, "init", "notes.doc")
	b.must(exitData, "init", "none-*.npy")
	b.contains("a folder that is not there", b.must(exitUsage, "init", "photo").stderr, `did you mean "photos"`)
	if b.exists("photo") || b.exists("none-*.npy") {
		t.Error("a folder was made for a name that is misspelt")
	}
}

// A column with the name of a label is preferred to earlier texts, and the others are said: also in the file, where a name with a new line
// stays in its comment.
func TestInitSaysWhichColumnsMayBeLabels(t *testing.T) {
	b := newBench(t)
	b.shipped()
	rows := "smoker,\"blood\ngroup\",Diagnosis,age,cost\n"
	for i := range 40 {
		rows += fmt.Sprintf("%s,%c,%s,%d,%d\n", []string{"yes", "no"}[i%2], 'A'+i%4, []string{"ill", "well"}[i%2], 30+i, 20000+3000*i)
	}
	b.write("patients.csv", rows)
	out := b.must(0, "init", "patients.csv").stdout
	b.contains("the guesses", out, `labels: column "Diagnosis"`, "other columns may be the labels: smoker, blood\ngroup (labels)")
	b.contains("the file", b.read("models.toml"), "#   other columns may be the labels: smoker, blood group (labels)\n")
	b.must(0, "check")
	trained := b.must(0, "train", "patients-numbers").stdout
	found := regexp.MustCompile(`r2 +([^ \n]+)`).FindStringSubmatch(trained)
	if found == nil {
		t.Fatalf("no R² in:\n%s", trained)
	}
	if r2, err := strconv.ParseFloat(found[1], 64); err != nil || r2 < 0.9 { // they begin in the middle of the range
		t.Errorf("R² is %s", found[1])
	}
}

// The flag --target chooses what is predicted; a wrong name is an error that lists the columns. A table with holes gets a model that fills them.
func TestInitTakesTargets(t *testing.T) {
	t.Parallel()
	rows := "flaeche,zimmer,bezirk,miete,balkon\n"
	for i := range 60 {
		rows += fmt.Sprintf("%d,%d,%c,%d,%d\n", 30+i*7%50, 1+i%4, 'A'+i%3, 200+9*(i*7%50), i%2)
	}
	rows += ",2,A,500,1\n"
	for target, want := range map[string][]string{
		"miete":  {"[model.flats-numbers]", "[model.flats-complete]", `columns = ["flaeche", "zimmer", "balkon"], missing`, `target = "miete" }, missing = "nan", scale = "standardise"`}, // a target is no part
		"bezirk": {"[model.flats-classes]", `labels = "bezirk"`},
		"balkon": {"[model.flats-classes]", `labels = "balkon"`, `bezirk = "bezirk" }, missing = "nan", scale = "standardise"`},
	} {
		b := benchOf(t)
		b.shipped()
		b.write("flats.csv", rows)
		said := b.must(0, "init", "flats.csv", "--target", target).stdout
		b.contains(target, b.read("models.toml"), want...)
		b.contains(target, said, "tessera train "+strings.Trim(want[0], "[]")[len("model."):]) // what was asked for is trained first
		expect.Equal(t, strings.Count(b.read("models.toml"), "[model.flats-numbers]")+strings.Count(b.read("models.toml"), "[model.flats-classes]"), 1, target)
	}
	b := benchOf(t)
	b.shipped()
	b.write("flats.csv", rows)
	b.contains("a wrong name", b.must(exitUsage, "init", "flats.csv", "--target", "xxx").stderr, `has no column "xxx"`, `"flaeche", "zimmer", "bezirk", "miete", "balkon"`)
	b.contains("two numbers", b.must(exitUsage, "init", "flats.csv", "--target", "miete", "--target", "zimmer").stderr, "at most one column of numbers")
	b.contains("no target", b.must(0, "init", "flats.csv").stdout, "also from the texts bezirk", "tessera train flats`\n") // guessed: miete
	b.contains("again", b.must(exitUsage, "init", "flats.csv", "--target", "miete").stderr, "remove it first", "tessera init ../flats.csv --target miete")
	b.remove("models.toml")
	b.must(0, "init", "flats.csv", "--target", "miete", "--target", "bezirk")
	b.contains("both", b.read("models.toml"), "[model.flats-numbers]", "[model.flats-classes]")
	b.write("towns.csv", "town,price\n"+strings.Repeat("a,1.5\nb,2.5\na,1.6\n", 10))
	b.contains("texts alone", b.must(exitData, "init", "towns.csv", "--target", "price").stderr, `no column of numbers beside "price" (got town)`)
	b.write("my towns.csv", b.read("towns.csv"))
	b.remove("models.toml")
	b.contains("a name with a space", b.must(0, "init", "my towns.csv").stdout, "tessera init 'my towns.csv' --target NAME", "train my-towns")
	b = benchOf(t)
	b.shipped()
	b.write("rent.csv", strings.ReplaceAll(strings.ReplaceAll(rows, ",", ";"), ";A;", " €;A;"))
	b.must(0, "init", "rent.csv", "--target", "zimmer")
	b.contains("a target with a unit", b.read("models.toml"), `units = { zimmer = "€" }`)
}

// Of several columns with names of labels, the most certain name decides, and of columns with texts the first.
func TestInitTakesTheLabelsOfTheBestName(t *testing.T) {
	for header, want := range map[string]string{
		"species,group,x,z": "species",
		"group,species,x,z": "species",
		"group,class,x,z":   "class",
		"class,group,x,z":   "class",
		"site,ward,x,z":     "site",
		"ward,type,x,z":     "type",
	} {
		t.Run(header, func(t *testing.T) {
			b := newBench(t)
			b.shipped()
			rows := header + "\n"
			for i := range 24 {
				rows += fmt.Sprintf("%c,%c,%d,%d\n", 'a'+i%3, 'A'+i%4, i%7, i%5)
			}
			b.write("rows.csv", rows)
			b.contains(header, b.must(0, "init", "rows.csv").stdout, fmt.Sprintf("labels: column %q", want))
		})
	}
}

// Dates and numbers of rows are neither labels nor values; texts of few kinds are read by the models that predict.
func TestInitReadsTextsButNoDatesAndRowNumbers(t *testing.T) {
	b := newBench(t)
	b.shipped()
	rows := "nr,when,kind,town,size,sales\n"
	for i := range 90 {
		rows += fmt.Sprintf("%d,%d.%d.2025,%s,%s,%d,%d\n", 500+i, 1+i/3%28, 1+i/84, []string{"apple", "pear", "plum"}[i%3], []string{"A", "B", "A", "B", ""}[i%5], i%7, 200+100*(i%3)+10*(i%7))
	}
	b.write("shop.csv", rows)
	b.contains("the guesses", b.must(0, "init", "shop.csv").stdout, `labels: column "kind"`, `names: column "nr"`, "count the rows: when, town (columns)",
		"models that predict read dates as years, such as 2023.5: \"when\"", `shop-numbers predicts column "sales", also from the texts kind, town`, `shop-classes predicts column "kind", also from the texts town`)
	expect.Equal(t, strings.Count(b.must(0, "check").stdout, "\nsize "), 1, "a column is described once")
	trained := b.must(0, "train", "shop-numbers").stdout
	found := regexp.MustCompile(`r2 +([^ \n]+)`).FindStringSubmatch(trained)
	if found == nil {
		t.Fatalf("no R² in:\n%s", trained)
	}
	if r2, err := strconv.ParseFloat(found[1], 64); err != nil || r2 < 0.95 { // size alone explains 0.08
		t.Errorf("R² is %s", found[1])
	}
	b.must(0, "train", "shop-classes", "--set", "train.epochs=2")
	b.write("new.csv", "nr,when,kind,town,size\n1,3.2.2025,apple,,3\n2,3.2.2025,apple,Z,3\n3,3.2.2025,,A,3\n")
	predicted := b.must(0, "predict", "runs/shop-numbers", "--in", "new.csv")
	b.contains("an unseen text", predicted.stderr, `has "Z", which no training sample has (A, B)`)
	lines := strings.Split(predicted.stdout, "\n")
	if _, first, _ := strings.Cut(lines[1], ","); len(lines) < 4 || !strings.HasSuffix(lines[2], ","+first) || strings.HasSuffix(lines[3], ","+first) {
		t.Errorf("a missing and an unseen text are not the same: %q", lines)
	}
	b.write("less.csv", "nr,when,town,size,sales\n1,3.2.2025,A,3,7\n")
	b.contains("a column that the encoder reads", b.must(exitData, "eval", "runs/shop-numbers", "--in", "less.csv").stderr, `less.csv: has no column "kind", from which codes are computed`)
}

// A folder is data if it has pictures or mostly texts; a project with a list of requirements gets its first models.
// A column of texts with the name of labels, and few different texts, is no label of itself.
func TestInitTakesOtherColumnsAsLabelsOfTexts(t *testing.T) {
	b := newBench(t)
	b.shipped()
	rows := "category,mood\n"
	for i := range 40 {
		rows += fmt.Sprintf("the quick brown %s jumps over a lazy dog,%c\n", []string{"fox", "cat", "hen", "owl"}[i%4], 'a'+i%2)
	}
	b.write("texts.csv", rows)
	b.contains("the guesses", b.must(0, "init", "texts.csv").stdout, `texts: column "category"`, `labels: column "mood"`)
}

func TestLongNamesAreCut(t *testing.T) {
	expect.Equal(t, shortName("Kilometerstand laut Tacho (abgelesen)"), "Kilometerstand laut Tacho (abge…")
	expect.Equal(t, shortName("größe"), "größe")
}

func TestInitTakesNoProjectForTexts(t *testing.T) {
	b := newBench(t)
	b.shipped()
	for name, text := range map[string]string{"project/requirements.txt": "numpy\n", "project/src/a.py": "pass\n", "project/src/notes/deep.txt": "some words\n", "project/go.mod": "module a\n"} {
		b.write(name, text)
	}
	b.must(0, "init", "project")
	b.contains("the file of the project", b.read("project/models.toml"), "[model.my-bars]")
}

// A folder of files that are no pictures or texts gets no models of bars; the error says what it has, and what declares it.
func TestInitWritesNoModelsOfBarsBesideData(t *testing.T) {
	b := newBench(t)
	b.shipped()
	for name, want := range map[string]string{"npys/a.npy npys/b.npy": `init: npys holds 2 .npy files: tessera init 'npys/*.npy'`, "notes/a.md notes/b.md notes/c.npy": "notes holds 2 .md files: texts are read from .txt files",
		"table/x.csv": "table holds 1 .csv file: tessera init table/x.csv", "deep/x/y.bin2": "deep holds 1 .bin2 file: pictures and .txt files", "bare/LICENSE": "bare holds 1 file: "} {
		for _, file := range strings.Fields(name) {
			b.write(file, "x\n")
		}
		folder, _, _ := strings.Cut(name, "/")
		b.contains(name, b.must(2, "init", folder).stderr, want)
		expect.AnyError(t, expect.Err(os.Stat(b.path(folder+"/models.toml"))), folder, "models.toml was written")
	}
	for _, name := range []string{"project/go.mod", "checkout/.git/config", "hidden/.keep"} {
		b.write(name, "module a\n")
		b.must(0, "init", filepath.Dir(strings.TrimSuffix(name, "/config")))
	}
}

// Arrays, shards and sparse matrices are declared by what they contain.
func TestInitDeclaresArraysAndSparseMatrices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ path, want string }{
		"array":  {"acts-0.npy", `{ file = "acts-0.npy", scale = "minmax" }`},
		"shards": {"acts-*.npy", `{ file = "acts-*.npy", scale = "minmax" }`},
		"sparse": {"counts.mtx", `{ name = "triples", file = "counts.mtx", absent = "zero" }`},
		"named":  {"both.npz", `{ file = "both.npz", labels = "y", scale = "minmax" }`},
	} {
		t.Run(name, func(t *testing.T) {
			b := benchOf(t)
			b.shipped()
			for i := range 2 {
				values := lists.Of(20*6, func(k int) float32 { return float32(k*(i+7)%11) - 3 })
				fatal.If(t, data.WriteImages(b.path(fmt.Sprintf("acts-%d.npy", i)), []int{6}, values))
			}
			entries := "%%MatrixMarket matrix coordinate integer general\n20 8 40\n"
			for i := range 40 {
				entries += fmt.Sprintf("%d %d %d\n", 1+i/2, 1+(i%2)*4+i/2%4, 1+i%5)
			}
			b.write("counts.mtx", entries)
			b.write("y.npy", "\x93NUMPY\x01\x00\x46\x00"+fmt.Sprintf("%-69s\n", "{'descr': '|i1', 'fortran_order': False, 'shape': (20,), }")+strings.Repeat("\x00\x01\x02\x01", 5))
			var both bytes.Buffer
			archive := zip.NewWriter(&both)
			for name, file := range map[string]string{"X.npy": "acts-0.npy", "y.npy": "y.npy"} {
				entry, err := archive.Create(name)
				fatal.If(t, err)
				_, err = entry.Write([]byte(b.read(file)))
				fatal.If(t, err)
			}
			fatal.If(t, archive.Close())
			b.write("both.npz", both.String())
			b.must(0, "init", c.path)
			b.contains("the file", b.read("models.toml"), c.want)
			b.must(0, "check")
		})
	}
}

// Ratings are found by the names of their columns, in any order.
func TestInitFindsRatingsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"user,item,rating", "rating,user,item", "timestamp,item,rating,user", "timestamp,userId,itemId,rating", "item,user,rating,date"} {
		t.Run(header, func(t *testing.T) {
			b := benchOf(t)
			b.shipped()
			var rows strings.Builder
			rows.WriteString(header + "\n")
			for i := range 90 {
				cells := strings.Split(header, ",")
				for k, name := range cells {
					switch {
					case strings.HasPrefix(name, "user"):
						cells[k] = fmt.Sprint("u", i%12)
					case strings.HasPrefix(name, "item"):
						cells[k] = fmt.Sprint("i", i/12)
					case name == "rating":
						cells[k] = fmt.Sprint(1 + i%5)
					default:
						cells[k] = fmt.Sprint(1700000000 + i)
					}
				}
				rows.WriteString(strings.Join(cells, ",") + "\n")
			}
			b.write("r.csv", rows.String())
			said := strings.ReplaceAll(b.must(0, "init", "r.csv").stdout, "Id", "")
			b.contains("the guess", said, `rows "user", columns "item", values "rating"`)
			b.must(0, "check")
		})
	}
}

// Whatever the separator, the encoding and the columns of a table are, check accepts what init writes.
func TestInitWritesWhatCheckAccepts(t *testing.T) {
	t.Parallel()
	columns := func(head, separator, decimal string) string {
		var b strings.Builder
		b.WriteString(strings.ReplaceAll(head, ",", separator) + "\n")
		for i := range 30 {
			for k := range strings.Count(head, ",") + 1 {
				if k > 0 {
					b.WriteString(separator)
				}
				fmt.Fprintf(&b, "%d%s%d", i*(k+2)%7, decimal, i)
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	entries := func(head, value string) string {
		text := head + "\n"
		for i := range 20 {
			for k := range 12 {
				if (i+k)%3 > 0 {
					text += fmt.Sprintf("%d,m%d,"+value+"\n", 3*i+7, k, 1+(i*k)%5)
				}
			}
		}
		return text
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(columns("a,b,c", ";", ",")))
	if err == nil {
		err = w.Close()
	}
	fatal.If(t, err)
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(columns("a,b,c", "\t", "."))
	fatal.If(t, err)
	late := strings.Repeat("1,2\n0.5,0.1\n", 600)
	for _, c := range []struct {
		file, text     string
		says, declares []string
	}{
		{"semicolons.csv", columns("a,b,c", ";", "."), []string{"values: 3 columns", "each column is scaled to [0,1] (scale)"}, []string{`{ name = "csv", file = "semicolons.csv", scale`}},
		{"commas.csv", columns("a,b,c", ";", ","), []string{"comma before their fraction"}, []string{`decimal = ","`}},
		{"german.csv", "m;w" + strings.Repeat("\r\n1.347,5;12 kg\r\n5,25;unbekannt\r\n7;-\r\n12,5;1.000 kg", 5), []string{`units are left out of the numbers: w = "kg"`, `empty cells and "unbekannt" are missing`},
			[]string{`decimal = ","`, `units = { w = "kg" }`, `missing = ["unbekannt"]`}},
		{"english.csv", "m,w" + strings.Repeat("\n\"1,347\",2\n\"5,250,000\",3.5\n7,1", 5), []string{"commas between thousands"}, []string{`decimal = "."`}},
		{"tabs.tsv", columns("a,b,c", "\t", "."), []string{"values: 3 columns"}, nil},
		{"packed.csv.gz", packed.String(), []string{"tessera train packed"}, []string{`decimal = ","`}},
		{"wide.csv", wide, []string{"values: 3 columns"}, nil},
		{"declared.csv", "sep=;\n" + columns("a,b", ";", "."), []string{"values: 2 columns"}, nil},
		{"one.csv", columns("a", ",", "."), []string{"values: 1 column of numbers"}, []string{"components = 1"}},
		{"large.csv", strings.Replace(columns("a,b", ",", "."), "0.0", "5400004.726", 1), []string{"each column is scaled to [0,1] (scale)"}, nil},
		{"us.csv", "when,a,label" + strings.Repeat("\n03/14/2025,1,x\n1/2/2024,0.5,y\n12/31/2023,0.1,x", 4), []string{"dates with slashes are month/day"}, []string{`dates = "month/day"`, `images = ["a", "when"]`}},
		{"unclear.csv", "when,a" + strings.Repeat("\n03/04/2025,1\n1/2/2024,0.5\n2/3/2023,0.1", 4), []string{`day and month of "when" can be exchanged`}, nil},
		{"late.csv", "a,b\n" + late + ",1\n", []string{"empty cells are missing"}, []string{`missing = "nan"`}},
		{"texts.csv", "a,b,c\n" + strings.ReplaceAll(late, "\n", ",1\n") + "1,1,other\n", []string{"no numbers or count the rows: c"}, []string{`columns = ["a", "b"]`}},
		{"typo.csv", strings.Replace(columns("a,b", ",", "."), "0.", "0..", 1), []string{`column "a" has numbers, but "0..`, "in line 2: correct that and run init again"}, nil},
		{"id.csv", "who,a,b,id\n" + "ann,1,2,1\nbob,1,3,2\ncid,2,2,3\ndot,4,1,4\neve,1,1,5\nfay,0,1,6\n", []string{`names: column "who"`, "count the rows: id"}, nil},
		{"ratings.csv", entries("userId,movieId,rating", "%d.0"), []string{`rows "userId", columns "movieId", values "rating"`, "(hide)"}, []string{`name = "triples"`, `"matrix_factorisation"`}},
		{"counts.csv", entries("doc,word,count", "%d"), []string{"the values are counts"}, []string{`name = "triples"`, `absent = "zero"`, `"nmf"`}},
	} {
		t.Run(c.file, func(t *testing.T) {
			b := benchOf(t)
			b.shipped()
			b.write(c.file, c.text)
			b.contains("the guesses", b.must(0, "init", c.file).stdout, c.says...)
			b.contains("the file", b.read("models.toml"), c.declares...)
			if c.file == "german.csv" { // a run keeps its keys, and reads other files by them
				b.must(0, "train", "german-nmf")
				b.must(0, "complete", "runs/german-nmf", "--in", c.file, "--out", "full.csv")
				b.contains("the completed table", b.read("full.csv"), "1.347,5;12 kg\r\n5,25;", " kg\r\n7;", " kg\r\n12,5;1.000 kg")
			}
			expect.Equal(t, b.must(0, "check").stderr, "", "check warns")
		})
	}
	b := benchOf(t)
	b.shipped()
	b.write("few.csv", "a,b\n1,2\n")
	b.contains("one sample", b.must(exitConfig, "init", "few.csv").stderr, "models.toml is not written", "at least one must be held out")
	b.write("words.csv", "a,b\nx,y\nz,y\n")
	b.contains("no numbers", b.must(exitData, "init", "words.csv").stderr, "has no column of numbers")
	if b.exists("models.toml") {
		t.Error("init wrote a file that check refuses")
	}
}

// Colours and the size of small pictures are kept; large ones are scaled.
func TestInitKeepsColoursAndSmallSizes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		width, height int
		colour        color.Color
		want          string
	}{
		{"coloured", 20, 16, color.RGBA{R: 200, A: 255}, "size = [16, 20], channels = 3 }"},
		{"grey", 20, 16, color.RGBA{R: 9, G: 9, B: 9, A: 255}, "size = [16, 20], scale = \"minmax\" }"},
		{"large", 65, 64, color.RGBA{G: 200, A: 255}, "size = [32, 32], channels = 3 }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := benchOf(t)
			b.shipped()
			for i := range 12 {
				picture := image.NewRGBA(image.Rect(0, 0, c.width, c.height))
				picture.Set(i, 1, c.colour)
				var text strings.Builder
				fatal.If(t, png.Encode(&text, picture))
				b.write(fmt.Sprintf("photos/%d.png", i), text.String())
			}
			b.must(0, "init", "photos")
			b.contains("the file", b.read("models.toml"), c.want)
			b.must(0, "check")
		})
	}
}

// A sparse dictionary of another program is declared for its activations; its run is evaluated, encoded, looked at and trained further.
func TestInitDeclaresASparseDictionary(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.own]\ndataset = { name = \"superposition\", features = 12, values = 8, count = 300 }\n"+
		"encoder = [{ kind = \"dense\", units = 16 }, { kind = \"batch_top_k\", k = 3 }]\ndecoder = [{ kind = \"dense\" }]\ntrain = { epochs = 2 }\n")
	b.must(0, "train", "own", "-o", "own")
	expect.Equal(t, b.must(0, "export", "own", "--to", "saelens").stdout, "own-saelens\n", "export")
	b.contains("again", b.must(exitUsage, "export", "own", "--to", "saelens").stderr, "own-saelens exists already")
	b.must(0, "export", "own", "--to", "saelens", "-o", "own-saelens")
	b.contains("another architecture", b.must(exitUsage, "export", "own", "--to", "sparsify").stderr, "got batchtopk")
	fatal.If(t, os.Remove(b.path("models.toml")))
	rows := lists.Of(50*8, func(i int) float32 { return float32(i*i%17) - 8 })
	for name, width := range map[string]int{"acts-0.npy": 8, "acts-1.npy": 8, "narrow.npy": 5} {
		fatal.If(t, data.WriteImages(b.path(name), []int{width}, rows))
	}
	b.contains("without activations", b.must(exitUsage, "init", "own-saelens").stderr, "name the activations")
	b.contains("no dictionary", b.must(exitUsage, "init", "own", "acts-0.npy").stderr, "got no sparse dictionary", "cfg.json")
	b.contains("other activations", b.must(exitConfig, "init", "own-saelens", "narrow.npy").stderr, "decoder")
	b.contains("init", b.must(0, "init", "own-saelens", "acts-*.npy").stdout, "a jumprelu dictionary of 16 units for samples of 8 values", "tessera train own-saelens")
	b.must(0, "check")
	b.must(0, "train", "own-saelens", "-o", "again")
	b.contains("runs", b.must(0, "runs", ".").stdout, "finished at 0")
	b.must(0, "eval", "again")
	b.must(0, "atoms", "again", "-n", "2")
	b.must(0, "report", "again")
	for _, run := range []string{"own", "again"} {
		b.must(0, "encode", run, "--in", "acts-0.npy", "--out", run+".csv")
	}
	expect.Equal(t, b.read("own.csv"), b.read("again.csv"), "the imported dictionary has other codes")
	b.must(0, "resume", "again", "--epochs", "1")
	b.must(0, "train", "own-saelens", "--epochs", "1", "-o", "further")
}

// Names in the files that 10x writes beside a matrix are declared, with its rows and columns exchanged; parts are then named by genes.
func TestInitFindsTheNamesBesideAMatrix(t *testing.T) {
	t.Parallel()
	b := benchOf(t)
	b.shipped()
	const genes, cells = 70, 30
	entries, names, barcodes := "", "", ""
	for gene := range genes {
		names += fmt.Sprintf("ENSG%d\tgene%d\tGene Expression\n", gene, gene)
		for cell := range cells {
			if gene%3 == cell%3 {
				entries += fmt.Sprintf("%d %d %d\n", gene+1, cell+1, 1+(gene*cell)%7)
			}
		}
	}
	for cell := range cells {
		barcodes += fmt.Sprintf("CELL%d-1\n", cell)
	}
	b.write("run/s1_matrix.mtx", fmt.Sprintf("%%%%MatrixMarket matrix coordinate integer general\n%d %d %d\n%s", genes, cells, strings.Count(entries, "\n"), entries))
	b.write("run/s1_features.tsv", names)
	b.write("run/s1_barcodes.tsv", barcodes)
	b.contains("the guesses", b.must(0, "init", "run").stdout, "30 samples of shape 70", "with the names in the files beside the matrix")
	b.contains("the file", b.read("models.toml"), `row_names = "run/s1_barcodes.tsv", column_names = "run/s1_features.tsv", transpose = true`)
	b.contains("check", b.must(0, "check").stdout, "30 training samples of 70")
	parts := b.must(0, "train", "s1_matrix", "--set", "components=3").stdout
	for _, line := range strings.Split(parts[strings.Index(parts, "largest columns"):], "\n")[1:4] {
		if n := strings.Count(line, "gene"); n != 8 {
			t.Errorf("got the part %q, want 8 genes", line)
		}
	}
}

// The topics of texts have no words of most texts, if enough others are left; their classifier reads all.
func TestTopicsHaveNoWordsOfMostTexts(t *testing.T) {
	t.Parallel()
	b := benchOf(t)
	b.shipped()
	r := rand.New(rand.NewPCG(1, 2))
	text := "text,label\n"
	for i := range 160 {
		group := i % 4
		for range 60 {
			if r.IntN(2) == 0 {
				text += fmt.Sprintf("the%d ", r.IntN(12))
			} else {
				text += fmt.Sprintf("w%dx%d ", group, r.IntN(80))
			}
		}
		text += fmt.Sprintf(",g%d\n", group)
	}
	b.write("news.csv", text)
	b.contains("the guesses", b.must(0, "init", "news.csv").stdout, "160 texts of 320 words", "more than a fifth of them, are left out of the topics (least, most)")
	expect.Equal(t, strings.Count(b.read("models.toml"), "most = 0.2"), 1, "the topics alone")
	said := b.must(0, "train", "news", "--set", "components=4").stdout
	for _, line := range strings.Split(said[strings.Index(said, "largest words"):], "\n")[1:5] {
		words := strings.Fields(line)[1:]
		for _, word := range words {
			if len(words) != 8 || word[:3] != words[0][:3] {
				t.Errorf("got the topic %q, want 8 words of one group", line)
				break
			}
		}
	}
}
