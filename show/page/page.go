// Package page writes runs, sweeps and comparisons as HTML files: one file that needs nothing else, with curves, atoms, images,
// settings and the commands that make it again. It is what `tessera report` writes and `tessera ui` serves.
//
// Texts of runs pass through html/template, which escapes them. A page carries a content security policy that allows its own
// scripts, by their hash, and no request to anywhere. Charts are drawn by uPlot, which is in assets with its licence.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed assets templates
var files embed.FS

// asset is one file of the folder assets.
func asset(name string) string {
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(fmt.Sprintf("page: %s: %v", name, err)) // it is embedded
	}
	return string(text)
}

// script is all scripts of a page, style its style sheets.
var (
	script = "/*!\n" + asset("LICENSE-uplot") + "*/\n" + asset("uplot.min.js") + asset("page.js") + asset("charts.js") + asset("run.js") + asset("sweep.js") + asset("live.js")
	style  = asset("uplot.min.css") + asset("page.css")
)

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"grouped": grouped, "short": short, "plural": plural, "percent": sharePercent,
	"image": func(p picture) template.URL { return template.URL(p.URI()) }, // the base64 of a PNG that this package encoded
	"mean":  meanText,
}).ParseFS(files, "templates/*.html"))

// frame is what surrounds every page.
type frame struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Live   bool // the page is served by `tessera ui`
	Data   any  // for the scripts
	Body   any  // for the template
}

// write renders a page with the template of that name.
func write(w io.Writer, name string, f frame) error {
	hash := sha256.Sum256([]byte(script))
	f.Policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if f.Live {
		f.Policy = strings.Replace(f.Policy, "form-action 'none'", "form-action 'self'; connect-src 'self'", 1)
	}
	f.Style, f.Script = template.CSS(style), template.JS(script) // files of this package
	if err := templates.ExecuteTemplate(w, name, f); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// Report is the page of one or several runs.
type Report struct {
	Runs []*Run
	Live string // the address of the events of `tessera ui`, "" for a file
}

// runData is what the scripts read of one run.
type runData struct {
	ID      string             `json:"id"`
	Units   map[int]unitDetail `json:"units,omitempty"`
	Images  pictures           `json:"images,omitempty"`
	Classes []string           `json:"classes,omitempty"`
	Columns *Columns           `json:"columns,omitempty"`
	Kind    string             `json:"kind,omitempty"`
	Use     string             `json:"use,omitempty"`
	Noun    string             `json:"noun"`
	Samples []sampleData       `json:"samples,omitempty"`
}

// sampleData is one image of the slider.
type sampleData struct {
	Number   int        `json:"number"`
	Class    string     `json:"class"`
	Pictures []picture  `json:"pictures"` // in the order of the template
	MSE      float64    `json:"mse"`
	Approx   float64    `json:"approx"`
	Code     []float64  `json:"code"`
	Most     []UnitLink `json:"most"`
}

// Write renders the page.
func (r *Report) Write(w io.Writer) error {
	if r == nil || len(r.Runs) == 0 || slices.Contains(r.Runs, nil) {
		return errors.New("page: no run to report: give at least one, and no nil")
	}
	charts := &Charts{}
	var all []runData
	var labels []string
	for i, run := range r.Runs {
		run.ID = fmt.Sprintf("run-%d", i+1)
		charts.Runs = append(charts.Runs, run.Curves)
		all = append(all, run.data())
		labels = append(labels, run.Label)
	}
	charts.Panels = panelsOf(charts.Runs)
	title := strings.Join(labels, ", ")
	body := struct {
		*Report
		Charts  *Charts
		Columns []NumberRow
		Title   string
	}{r, charts, r.numbers(), title}
	data := map[string]any{"charts": charts, "runs": all, "live": r.Live}
	return write(w, "report.html", frame{Title: title + " - Tessera", Live: r.Live != "", Data: data, Body: body})
}

// WriteList renders the list of the runs and sweeps of a folder, for `tessera ui`. The rows are data of the script live.js.
func WriteList(w io.Writer, name string, rows any) error {
	return write(w, "list.html", frame{Title: name + " - Tessera", Live: true, Data: map[string]any{"list": rows}, Body: name})
}

// data is what the scripts read of the run.
func (r *Run) data() runData {
	d := runData{ID: r.ID, Noun: r.Noun}
	if u := r.Units; u != nil && u.Used {
		d.Units, d.Images, d.Kind, d.Use, d.Columns = map[int]unitDetail{}, u.Images, u.Kind, u.Use, u.Columns
		for _, cell := range u.Each {
			d.Units[cell.Number] = cell.Detail
		}
	}
	for _, c := range r.Codes {
		d.Classes = append(d.Classes, c.Class)
	}
	if r.Samples != nil {
		for _, s := range r.Samples.Each {
			d.Samples = append(d.Samples, sampleData{s.Number, s.Class,
				[]picture{s.Original, s.Reconstructed, s.Difference, s.Dilated, s.Approximated}, s.MSE, s.ApproxMSE, s.Code, s.Most})
		}
	}
	return d
}

// NumberRow is one metric of all runs of a page.
type NumberRow struct {
	Name, Better, About string
	Values              []string
}

// numbers puts the metrics of the runs side by side.
func (r *Report) numbers() (rows []NumberRow) {
	at := map[string]int{}
	for i, run := range r.Runs {
		for _, n := range run.Numbers {
			if _, ok := at[n.Name]; !ok {
				at[n.Name] = len(rows)
				rows = append(rows, NumberRow{n.Name, n.Better, n.About, make([]string, len(r.Runs))})
			}
			rows[at[n.Name]].Values[i] = n.Value
		}
	}
	return rows
}
