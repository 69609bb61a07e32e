package browser

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/sweep"
	"tessera/internal/train"
)

// trainSwimmer trains the shipped model of parts for a few epochs.
func trainSwimmer(t *testing.T, out string, epochs int, report func(train.Progress)) string {
	t.Helper()
	set, err := config.ParseSet(fmt.Sprint("train.epochs=", epochs))
	if err != nil {
		t.Fatal(err)
	}
	m, err := tessera.Shipped().Model("swimmer-parts", set)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tessera.Train(context.Background(), m, tessera.Options{Threads: 1, Out: out, Report: report})
	if err != nil {
		t.Error(err)
		return out
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return out
}

// options are the options of all pages: one thread.
var options = page.Options{Open: tessera.Options{Threads: 1}}

// writer is a page that can be written.
type writer interface{ Write(io.Writer) error }

// address writes a page to a file and returns its address.
func address(t *testing.T, w writer) string {
	t.Helper()
	var text bytes.Buffer
	if err := w.Write(&text); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// report trains the named models and returns the address of their common page.
func report(t *testing.T, names ...string) string {
	t.Helper()
	r, dir := &page.Report{}, t.TempDir()
	for _, name := range names {
		run, err := page.ReadRun(t.Context(), trainSwimmer(t, filepath.Join(dir, name), 3, nil), options)
		if err != nil {
			t.Fatal(err)
		}
		r.Runs = append(r.Runs, run)
	}
	return address(t, r)
}

// weightsSweep runs a sweep of two weights over two seeds and returns its page.
func weightsSweep(t *testing.T) *page.Sweep {
	t.Helper()
	declared, err := config.Load("models.toml", []byte(`
[model.small]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl" }]
train = { epochs = 2, batch = 20 }
[sweep.weights]
model = "small"
seeds = [1, 2]
set.loss.1.weight = [0.001, 10.0]
`))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := declared.Sweep("weights")
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "weights")
	planned, err := sweep.New(t.Context(), spec, sweep.Options{Out: out, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := planned.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := page.ReadSweep(t.Context(), out, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// want fails the test unless a number that the page computes has the expected value.
func want(p *Page, expression string, expected float64) {
	p.Helper()
	if got := p.Number(expression); got != expected {
		p.Errorf("%s: got %v, want %v", expression, got, expected)
	}
}

// slide moves a slider and choose selects an option. Both trigger the same events as an action of a user.
func slide(p *Page, selector string, to int) { change(p, selector, fmt.Sprint(to), "input") }

func choose(p *Page, selector, value string) { change(p, selector, value, "change") }

func change(p *Page, selector, value, event string) {
	p.Helper()
	p.Run(fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event(%q, {bubbles: true})) })(document.querySelector(%q))`, value, event, selector))
}

func TestAReportInTheBrowser(t *testing.T) {
	b := open(t)
	address := report(t, "swimmers")
	p := b.Page(t, address, address, View{Width: 1200, Height: 900})
	want(p, `document.querySelectorAll(".plot canvas").length - document.querySelectorAll(".chart").length`, 0)
	p.Shot("wide-light", true)

	p.Click(`.atom[data-unit="3"]`)
	want(p, `+document.getElementById("unit").open`, 1)
	if title := p.Text(`document.getElementById("unit-title").textContent`); title != "atom 3" {
		t.Errorf("a click on atom 3 shows %q", title)
	}
	want(p, `+(document.querySelectorAll("#unit .pictures img").length > 0)`, 1)
	p.Shot("atom-light", false)
	p.Click(`#unit [data-step="1"]`)
	if title := p.Text(`document.getElementById("unit-title").textContent`); title != "atom 4" {
		t.Errorf("the next of atom 3 is %q, want atom 4", title)
	}
	p.Click(`#unit .close`)
	want(p, `+document.getElementById("unit").open`, 0)

	first := p.Text(`document.querySelector(".row img").src`)
	slide(p, `.slider`, 7)
	if p.Text(`document.querySelector(".row img").src`) == first {
		t.Error("the slider leaves the image")
	}
	choose(p, `.order`, "active")
	want(p, `[...document.querySelectorAll("button.atom")].map(c => page.runs[0].units[c.dataset.unit].active).filter((share, i, all) => i > 0 && all[i - 1] < share).length`, 0)
	p.Click(`.chart .log`)
	p.Resize(380, 800)
	p.Wait(`document.querySelector(".plot canvas").clientWidth < 400`)
	want(p, `+(document.documentElement.scrollWidth > 380)`, 0) // nothing is wider than a phone
	p.Shot("narrow-light", true)
}

func TestAReportInTheDark(t *testing.T) {
	b := open(t)
	address := report(t, "swimmers", `<img src=x onerror=alert(1)>`)
	p := b.Page(t, address, address, View{Width: 1200, Height: 900, Dark: true})
	if color := p.Text(`getComputedStyle(document.body).backgroundColor`); color != "rgb(21, 22, 26)" {
		t.Errorf("the background is %s", color)
	}
	want(p, `page.charts.runs.length`, 2)
	p.Shot("wide-dark", true)
}

func TestASweepInTheBrowser(t *testing.T) {
	b := open(t)
	s := weightsSweep(t)
	at := slices.IndexFunc(s.Measures, func(m page.MeasureColumn) bool { return m.Name == "mse" })
	s.Trials[0].Numbers[at] = nil // as if it were not applicable under the first seed
	address := address(t, s)
	p := b.Page(t, address, address, View{Width: 1200, Height: 900})
	want(p, `document.querySelectorAll("#settings tbody tr").length`, 2)
	want(p, `document.querySelectorAll("#plot .mark").length`, 2)
	want(p, `+(document.querySelectorAll("#plot .error").length > 0)`, 1) // two seeds have a deviation
	order := `[...document.querySelectorAll("#settings tbody th:first-child")].map(e => e.textContent).join(" ")`
	p.Click(`#settings thead th:nth-child(1) button`)
	up := p.Text(order)
	p.Click(`#settings thead th:nth-child(1) button`)
	if down := p.Text(order); up != "0.001 10" || down != "10 0.001" {
		t.Errorf("sorted by the weight: %q, then %q", up, down)
	}
	p.Click(`#settings tbody tr:nth-child(1) td:nth-child(2)`)
	if trial := p.Text(`page.sweep.trials[document.getElementById("trials").value].name`); trial != s.Trials[s.Settings[1].Trials[0]].Name {
		t.Errorf("a click on the second setting shows the atoms of %s", trial)
	}
	want(p, `document.querySelectorAll("#sprite .atom").length`, 5)
	if text := p.Text(`document.getElementById("same").textContent`); !strings.Contains(text, "model small; seeds 2") {
		t.Errorf("what is the same in all settings: %q", text)
	}
	if text := p.Text(`document.querySelector(".summary").textContent`); !strings.Contains(text, "weight of the kl term (loss.1.weight)") || !strings.Contains(text, "none are held out") {
		t.Errorf("the summary does not say what varies, or what was measured: %q", text)
	}
	if table := p.Text(`document.getElementById("settings").textContent`); strings.Count(table, "(1 of 2 seeds)") != 1 {
		t.Errorf("the mean of one seed is not marked: %q", table)
	}
	want(p, `+(document.querySelectorAll("#settings .best").length > 0)`, 1)
	p.Shot("sweep", true)
	p.Type(`#filter`, "weight=10")
	want(p, `document.querySelectorAll("#settings tbody tr").length`, 1)
	want(p, `document.querySelectorAll("#plot .mark").length`, 1)
	p.Resize(380, 800)
	p.Wait(`document.querySelector("#plot svg").viewBox.baseVal.width < 380`) // it is drawn again
	want(p, `+(document.documentElement.scrollWidth > 380)`, 0)
	p.Shot("sweep-narrow", true)
}

func TestSettingsOnOtherImagesHaveNoCommonBest(t *testing.T) {
	b := open(t)
	s := weightsSweep(t)
	s.Settings[1].Images = 1
	address := address(t, s)
	p := b.Page(t, address, address, View{Width: 1200, Height: 900})
	want(p, `document.querySelectorAll("#settings tbody tr").length`, 2)
	want(p, `document.querySelectorAll("#settings .best, #plot .front").length`, 0)
}
