//go:build unix

package cli

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
)

// kinds contains testdata/kinds.toml.
//
//go:embed testdata/kinds.toml
var kinds string

var killKinds = flag.Int("kill-kinds", 0, "how many times TestEveryKindSurvivesKills kills the training of each model; 0: one kill of three of the models")

// kindsOfModels lists the models of testdata/kinds.toml that are trained.
func kindsOfModels() (names []string) {
	for _, match := range regexp.MustCompile(`(?m)^\[model\.(.*)\]$`).FindAllStringSubmatch(kinds, -1) {
		if name := match[1]; name != "base" && name != "images" {
			names = append(names, name)
		}
	}
	return names
}

// kindsBench returns a bench with the models of testdata/kinds.toml and the table that some of them read.
func kindsBench(t *testing.T, swept string) *bench {
	b := benchOf(t)
	r := rand.New(rand.NewPCG(7, 7))
	table := "id,a,b,c,d,age,dose,seen1,seen2,w,sex,tag1,tag2,tag3,word,illness,t1,t2,t3,t4,t5,n\n"
	for i := range 120 {
		x := []float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()}
		bit := func(on bool) string { return map[bool]string{false: "0", true: "1"}[on] }
		table += fmt.Sprintf("p%d,%.4f,%.4f,%.4f,%.4f,%.3f,%.3f,%d,%d,%.3f,%s,%s,%s,%s,%d,%s,%s,%d\n", i, x[0], x[1], x[2], x[3], x[0]+x[1], x[2]*x[3],
			r.IntN(2), r.IntN(2), r.Float64(), []string{"f", "m"}[r.IntN(2)], bit(x[0] > 0.5), bit(x[1] > x[2]), bit(x[3] > 0.3), r.IntN(5), []string{"flu", "none"}[i%2], tokensOf(i), 1+i%5)
	}
	b.write("patients.csv", table)
	for _, cell := range []string{"\np3,", "\np17,", "\np40,"} { // their first cells, and an age
		at := strings.Index(table, cell) + len(cell)
		row := table[at:]
		table = table[:at] + row[strings.Index(row, ","):]
	}
	b.write("holes.csv", regexp.MustCompile(`(?m)^(p5\d,(?:[^,]*,){4})[^,]*`).ReplaceAllString(table, "$1"))
	b.write("words.txt", "The sailors steer the raft near a pier.")
	b.write("images.npy", npyText("|u1", "(2, 32, 32)", make([]byte, 2*32*32)))
	b.write("models.toml", strings.ReplaceAll(kinds, "SWEPT", swept))
	return b
}

// tokensOf returns a sequence of five tokens.
func tokensOf(i int) string {
	tokens := lists.Of(5, func(j int) string { return strconv.Itoa((i*3 + j*j) % 6) })
	return strings.Join(tokens, ",")
}

// answer returns a function that reads the JSON of a response, and fails the test unless its status is 200.
func (b *bench) answer(into any) func(r *http.Response, err error) {
	return func(r *http.Response, err error) {
		b.Helper()
		fatal.If(b, err)
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d: %s", r.StatusCode, text)
		}
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		fatal.If(b, err)
	}
}

// noOutput has the models of testdata/kinds.toml whose codes cannot be decoded, with a part of the reason.
var noOutput = map[string]string{
	"regression": "no decoder", "multi-label": "no decoder", "two-classes": "no decoder", "two-encoders": "no decoder", "embedding": "no decoder",
	"masked-text": "no decoder", "drawn": "no decoder", "gan": "no decoder", "dino": "no decoder", "vectors": "no decoder", "independent": "no decoder", "two-views": "no decoder",
	"skip": "reads encoder.0", "masked-images": "reads encoder.4",
}

// refused returns why a model of testdata/kinds.toml makes no images by a command, "" if it makes them.
func refused(model, command string) string {
	if model == "gan" && command == "sample" { // its forger does
		return ""
	}
	return noOutput[model]
}

// images makes images of a run by the commands sample and traverse.
func (b *bench) images(run, model string) {
	b.Helper()
	for command, args := range map[string][]string{"sample": {"--count", "2"}, "traverse": {"--units", "0", "--steps", "2"}} {
		args = append([]string{command, run, "-o", command + ".npy"}, args...)
		if why := refused(model, command); why == "" {
			b.must(0, args...)
		} else if stderr := b.must(2, args...).stderr; !strings.Contains(stderr, why) {
			b.Errorf("%s: got %q, want the reason %q", command, stderr, why)
		}
	}
}

// served requests all values of a run from a server, for two rows of each input, and returns their names. It also requests images
// that the model makes.
func (b *bench) served(run, model string) (names []string) {
	b.Helper()
	url, cmd, _ := b.serving("kind="+run, "--generate")
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	type tensor struct {
		Name     string    `json:"name"`
		Datatype string    `json:"datatype"`
		Shape    []int     `json:"shape"`
		Data     []float64 `json:"data"`
	}
	var about struct {
		Inputs, Outputs []tensor
		NotServed       map[string]string `json:"not_served"`
	}
	b.answer(&about)(http.Get(url))
	for i := range about.Inputs {
		in := &about.Inputs[i]
		in.Shape[0] = 2
		in.Data = make([]float64, volume.Of(in.Shape)) // 0 is a token, a class and a length
	}
	body, err := json.Marshal(map[string]any{"inputs": about.Inputs})
	fatal.If(b, err)
	var answer struct{ Outputs []struct{ Name string } }
	b.answer(&answer)(http.Post(url+"/infer", "application/json", bytes.NewReader(body)))
	for _, o := range answer.Outputs {
		names = append(names, o.Name)
	}
	for command, input := range map[string]string{
		"sample":   `{"name":"seed","shape":[1,1],"datatype":"INT64","data":[7]}`,
		"traverse": `{"name":"unit","shape":[1,1],"datatype":"INT64","data":[0]},{"name":"position","shape":[1,1],"datatype":"FP32","data":[0.5]}`,
	} {
		why := refused(model, command)
		if got := about.NotServed["kind."+command]; (got == "") != (why == "") || !strings.Contains(got, why) {
			b.Errorf("%s: the reason is %q, want %q", command, got, why)
		} else if why == "" {
			var made struct{ Outputs []tensor }
			b.answer(&made)(http.Post(url+"."+command+"/infer", "application/json", strings.NewReader(`{"inputs":[`+input+`]}`)))
			if len(made.Outputs) != 1 || len(made.Outputs[0].Data) == 0 {
				b.Errorf("%s: got %v, want an image", command, made)
			}
		}
	}
	if len(names) < 1 || len(names) > len(about.Outputs) {
		b.Errorf("the server answers with %q of %v", names, about.Outputs)
	}
	return names
}

// Every kind of model can be checked, trained, measured, encoded, served, swept, compared, drawn, reported and exported. Images are
// drawn from it and its units are traversed, or the command says why not.
func TestEveryKindOfModelIsUsedEverywhere(t *testing.T) {
	t.Parallel()
	for _, name := range kindsOfModels() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := kindsBench(t, name)
			b.must(0, "train", name, "--epochs", "2", "--quiet")
			run := "runs/" + name
			var measured map[string]any
			if err := json.Unmarshal([]byte(b.must(0, "eval", run, "--json").stdout), &measured); err != nil || len(measured) < 5 {
				t.Errorf("eval prints %v, %v", measured, err)
			}
			b.must(0, "summary", name)
			samples := "patients.csv"
			if strings.Contains(b.read(run+"/config.toml"), "swimmer") {
				samples = "images.npy"
			} else if name == "missing" {
				samples = "holes.csv"
			} else if name == "vectors" {
				samples = "words.txt"
			}
			for _, value := range b.served(run, name) {
				b.must(0, "encode", run, "--in", samples, "--value", value, "-o", "codes.csv")
			}
			b.images(run, name)
			b.must(0, "sweep", "kinds")
			b.must(0, "compare", "sweeps/kinds")
			b.must(0, "report", run, "-o", "report.html")
			if page := b.read("report.html"); strings.Contains(page, ">NaN") || !strings.Contains(page, name) {
				t.Error("the page has NaN, or not the name of the model")
			}
			b.must(0, "export", run, "--to", "onnx", "-o", "model.onnx")
		})
	}
}

// A model of any kind that is killed at random moments resumes to the bytes of an uninterrupted training.
func TestEveryKindSurvivesKills(t *testing.T) {
	t.Parallel()
	names := kindsOfModels()
	if *killKinds == 0 {
		names = []string{"regression", "players", "muon"}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kindsBench(t, name).killed(max(1, *killKinds), "train", name)
		})
	}
}
