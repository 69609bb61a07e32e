package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// ratings writes observed entries of a matrix of 60 users and 30 films, which consist of planted factors, biases and noise of
// 0.1, and the other entries as pairs. It declares models for the matrix.
func (b *bench) ratings() {
	b.Helper()
	r := rand.New(rand.NewPCG(2, 7))
	const users, films, k = 60, 30, 2
	w, z := make([]float64, users*(k+1)), make([]float64, films*(k+1))
	for _, values := range [][]float64{w, z} {
		for i := range values {
			values[i] = r.NormFloat64()
		}
	}
	seen, others, fresh := "user;film;stars\n", "user;film;stars\n", "user;film;stars\n"
	for i := range users {
		for j := range films {
			v := 3 + w[i*3+2] + z[j*3+2] + w[i*3]*z[j*3] + w[i*3+1]*z[j*3+1] + 0.1*r.NormFloat64()
			line := fmt.Sprintf("u%d;film %d;%.4f\n", i, j, v)
			switch known := r.Float64() < 0.6; {
			case !known:
				others += line
			case i < 50:
				seen += line
			default: // new users
				fresh += line
			}
		}
	}
	b.write("ratings.csv", seen)
	b.write("pairs.csv", others)
	b.write("new.csv", fresh)
	b.write("models.toml", `
[model.ratings]
kind         = "matrix_factorisation"
components   = 2
ridge_rows   = 0.005
ridge_columns = 0.005
dataset      = { name = "triples", file = "ratings.csv", row = "user", column = "film", value = "stars" }

[model.hidden]
extends = "ratings"
dataset = { name = "triples", file = "ratings.csv", hide = 0.1 }
`)
}

// A matrix is factorised, its entries are predicted, and the entries of new users are predicted from their own. All commands
// that inspect a run work.
func TestAMatrixIsFactorisedAndPredicted(t *testing.T) {
	b := newBench(t)
	b.ratings()
	b.must(0, "check")
	b.contains("summary", b.must(0, "summary", "ratings").stdout, "atoms  matrix_factorisation", " entries of 50 rows and 30 columns")
	b.must(0, "train", "ratings", "--quiet")
	said := b.must(0, "predict", "runs/ratings", "--in", "pairs.csv", "--given", "new.csv", "-o", "out.csv").stderr
	rmse := regexp.MustCompile(`root mean squared error ([0-9.]+), of ([0-9]+) entries`).FindStringSubmatch(said)
	if rmse == nil {
		t.Fatalf("got %q", said)
	}
	if v, _ := strconv.ParseFloat(rmse[1], 64); !(v < 0.2) { // noise 0.1, and 3 parameters of about 18 entries
		t.Errorf("RMSE %v, want about the noise of 0.1", v)
	}
	reader := csv.NewReader(strings.NewReader(b.read("out.csv")))
	reader.Comma = ';' // as in the input
	rows, err := reader.ReadAll()
	if err != nil || fmt.Sprint(len(rows)-1) != rmse[2] || strings.Join(rows[0], "|") != "row|column|prediction" || rows[1][0] != "u0" {
		t.Errorf("got %q, %v", rows[:2], err)
	}
	b.contains("encode", b.must(0, "encode", "runs/ratings", "--in", "new.csv", "-o", "codes.csv").stdout, "codes.csv")
	if lines := strings.Split(b.read("codes.csv"), "\n"); len(lines) != 12 || !strings.HasPrefix(lines[1], "u50,") {
		t.Errorf("codes: %q", lines[:2])
	}
	b.contains("rank", b.must(0, "rank", "ratings", "--ranks", "1,2,5", "--figure", "rank.png").stdout, "components  held-out rmse  standard error  rmse of fitted entries", "least")
	if !b.exists("rank.png") {
		t.Error("no figure")
	}
	b.must(0, "report", "runs/ratings", "-o", "report.html")
	if page := b.read("report.html"); strings.Contains(page, ">NaN") || !strings.Contains(page, "matrix_factorisation") {
		t.Error("the page has NaN, or not the kind of the model")
	}
	b.must(0, "export", "runs/ratings", "--to", "onnx", "--part", "decoder", "-o", "decoder.onnx")
	b.must(0, "export", "runs/ratings", "--to", "safetensors", "-o", "factors.safetensors")
	b.must(0, "train", "hidden", "--quiet")
	var measured struct {
		HeldOut *float64 `json:"mse_held_out"`
	}
	if err := json.Unmarshal([]byte(b.must(0, "eval", "runs/hidden", "--json").stdout), &measured); err != nil || measured.HeldOut == nil || !(*measured.HeldOut < 0.1) {
		t.Errorf("mse_held_out: %+v, %v", measured, err)
	}
}

// Columns are recommended to a row by name, without those that the model saw; entries that were left out measure the ranks.
func TestColumnsAreRecommendedToARow(t *testing.T) {
	b := newBench(t)
	b.ratings()
	b.write("ratings.csv", b.read("ratings.csv")+"few;film 1;3\n")
	said := b.must(0, "train", "ratings", "--set", "dataset.leave=2").stderr
	b.contains("train", said, "leave = 2: 1 of 51 samples, the first of them ", "have no more entries than that")
	b.contains("eval", b.must(0, "eval", "runs/ratings").stdout, "mse_held_out", "ranking_ndcg", "ranking_map", "ranking_precision", "ranking_recall")
	var got struct {
		Row     string
		Known   int
		Columns []struct {
			Column     string
			Prediction float64
		}
	}
	recommend := func(args ...string) {
		t.Helper()
		got.Columns = nil
		fatal.If(t, json.Unmarshal([]byte(b.must(0, append([]string{"recommend", "runs/ratings", "--json"}, args...)...).stdout), &got))
	}
	recommend("--row", "u3", "-n", "30")
	seen := strings.Count(b.read("ratings.csv"), "\nu3;")
	if got.Row != "u3" || got.Known != seen-2 || len(got.Columns) != 30-got.Known {
		t.Errorf("u3 has %d entries, of which 2 were left out, but %d columns are recommended and %d are known", seen, len(got.Columns), got.Known)
	}
	for i := 1; i < len(got.Columns); i++ {
		if got.Columns[i].Prediction > got.Columns[i-1].Prediction {
			t.Error("the predictions are not in descending order")
		}
	}
	recommend("--row", "u3", "-n", "30", "--known")
	expect.Equal(t, len(got.Columns), 30, "--known lists", len(got.Columns), "columns, want all 30")
	expect.Equal(t, got.Known, seen-2, "--known counts", got.Known, "known entries")
	recommend("--row", "u52", "--given", "new.csv")
	if len(got.Columns) != min(10, 30-got.Known) || got.Known != strings.Count(b.read("new.csv"), "\nu52;") {
		t.Errorf("a new row: got %+v", got)
	}
	b.contains("row", b.must(exitUsage, "recommend", "runs/ratings", "--row", "u33x").stderr, `--row: the model was not fitted to a row "u33x"`)
}

// Predictions above all entries of the training order the columns, which is said.
func TestPredictionsBeyondTheScaleAreNamed(t *testing.T) {
	b := newBench(t)
	b.ratings()
	lines := strings.Split(strings.TrimSpace(b.read("ratings.csv")), "\n")
	for i, line := range lines[1:] {
		cells := strings.Split(line, ";")
		v, err := strconv.ParseFloat(cells[2], 64)
		fatal.If(t, err)
		lines[i+1] = fmt.Sprintf("%s;%s;%.4f", cells[0], cells[1], max(1, min(v, 4)))
	}
	b.write("ratings.csv", strings.Join(lines, "\n")+"\n")
	b.must(0, "train", "ratings")
	beyond := 0
	for i := range 12 {
		var got struct {
			Range   string
			Columns []struct{ Prediction float64 }
		}
		fatal.If(t, json.Unmarshal([]byte(b.must(0, "recommend", "runs/ratings", "--row", fmt.Sprintf("u%d", i), "--json").stdout), &got))
		if want := map[bool]string{true: "1 to 4; larger predictions order the columns"}[got.Columns[0].Prediction > 4]; got.Range != want {
			t.Errorf("the prediction is %v: got the range %q, want %q", got.Columns[0].Prediction, got.Range, want)
		} else if want != "" {
			beyond++
		}
	}
	if beyond == 0 || beyond == 12 {
		t.Errorf("%d of 12 users have predictions above all entries", beyond)
	}
}

// The error for a pair that cannot be predicted names the line.
func TestPairsThatAreNotKnownAreReported(t *testing.T) {
	b := newBench(t)
	b.ratings()
	b.must(0, "train", "ratings", "--quiet")
	for text, want := range map[string]string{
		"user;film\nu3;film 2\nu77;film 2\n":          `line 3: the model was not fitted to a row "u77"; give its observed entries (--given)`,
		"user;film\nu3;Alien\n":                       `line 2: the model was not fitted to a column "Alien"`,
		"user;film;stars\nu3;film 2;x\n":              `line 2: value: got "x", want a finite number`,
		"name;film\nu3;film 2\n":                      `has no column "user"`,
		"user;film\n":                                 "has no pairs",
		"user;film;stars\nu3;film 2;1\nu3;film 2;4\n": "", // asked twice is no error
	} {
		b.write("p.csv", text)
		got := b.run("predict", "runs/ratings", "--in", "p.csv")
		expect.Equal(t, (got.code == 0), (want == ""), text, "exit code", got.code)
		b.contains(text, got.stderr, want)
	}
	b.write("g.csv", "user;film;stars\nu99;Alien;3\n")
	b.contains("further entries", b.run("predict", "runs/ratings", "--in", "pairs.csv", "--given", "g.csv").stderr, `g.csv: cannot be read: has no column of the training`)
	b.write("ratings.csv", "user;film;stars\na;b;1\na;c;2\nb;b;2\na;b;3\n")
	b.contains("check", b.run("check").stderr, `line 5: row "a", column "b" is given a second time, first in line 2`)
	b.contains("complete", b.run("complete", "runs/ratings", "--in", "new.csv", "-o", "full.csv").stderr, "tessera predict")
	b.write("ratings.csv", "user;film;stars\na;b;1\na;c;2\nb;b;2\nb;c;3\nc;b;3\n")
	b.contains("too many", b.run("train", "ratings", "--out", "small", "--set", "components=3").stderr, "components: got 3, want at most 2")
}

func TestAKilledMatrixFactorisationResumesToTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, solver := range []string{"als", "sgd"} {
		t.Run(solver, func(t *testing.T) {
			b := benchOf(t)
			b.ratings()
			b.killed(2, "train", "hidden", "--set", "solver="+solver, "--set", "iterations=200", "--set", "tolerance=0.0", "--set", "train.checkpoint_seconds=0.0")
		})
	}
}

// Counts whose absent entries are zero are trained, measured and encoded; rows of a second block too.
func TestAMatrixOfCountsIsFactorisedByItsEntries(t *testing.T) {
	t.Parallel()
	const rows, each = 300, 30 // more rows than a block of 256
	b := benchOf(t)
	text, last := "cell,gene,count\n", "cell,gene,count\n"
	for i := range rows {
		for e := range each {
			line := fmt.Sprintf("%d,%d,%d\n", i, i*each+e, 1+e%3)
			if text += line; i == rows-1 {
				last += line
			}
		}
	}
	b.write("counts.csv", text)
	b.write("last.csv", last)
	b.write("models.toml", `
[model.counts]
kind       = "nmf"
solver     = "mu"
loss       = "kl"
components = 2
iterations = 3
dataset    = { name = "triples", file = "counts.csv", absent = "zero" }
`)
	b.must(0, "check")
	b.must(0, "train", "counts", "--quiet")
	b.contains("eval", b.must(0, "eval", "runs/counts").stdout, "explained_variance")
	codes := map[string][]string{}
	for _, name := range []string{"counts", "last"} {
		b.must(0, "encode", "runs/counts", "--in", name+".csv", "-o", name+"-codes.csv")
		codes[name] = strings.Split(strings.TrimSpace(b.read(name+"-codes.csv")), "\n")
	}
	if all, one := codes["counts"], codes["last"]; len(all) != rows+1 || len(one) != 2 || all[rows] != one[1] {
		t.Errorf("%d and %d lines, the last %q and %q", len(all), len(one), all[len(all)-1], one[len(one)-1])
	}
	b.write("models.toml", strings.ReplaceAll(b.read("models.toml"), `"kl"`, `"itakura_saito"`))
	b.must(0, "train", "counts", "--quiet", "-o", "other") // a loss of all values reads them in blocks
}

func TestCheckSaysWhichMethodsHoldTheZerosOfASparseMatrix(t *testing.T) {
	b := newBench(t)
	b.write("counts.csv", "cell,gene,count\na,u,3\na,v,1\nb,u,2\nc,w,4\nd,v,1\nd,w,2\n")
	b.write("models.toml", "[model.m]\nkind = \"nmf\"\ncomponents = 2\ndataset = { name = \"triples\", file = \"counts.csv\", absent = \"zero\", scale = [\"rows\", \"log1p\"] }\n"+
		"[model.s]\nextends = \"m\"\nkind = \"separable_nmf\"\n")
	r := b.must(0, "check")
	if says := r.stdout + r.stderr; strings.Count(says, "holds all values of the sparse samples") != 1 || !strings.Contains(says, `model "s": separable_nmf`) {
		t.Errorf("check says\n%s", says)
	}
}
