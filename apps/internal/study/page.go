package study

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show/comparison"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/lists"
	"tessera/internal/regular"
	"tessera/internal/sweep"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// The files of a page.
const (
	Folder    = "page"      // folder of the page, below the folder of the sweep
	PageFile  = "README.md" // the page
	TableFile = "table.csv" // rows of the tables of the page
	NotesFile = "notes.md"  // notes of the author, which the page includes; this file is only read
)

// Options are the settings of a page.
type Options struct {
	Data    string // as in tessera.Options
	Threads int    // as in tessera.Options

	// Flags are further flags of the command on which the page depends, as words of a command line. They follow those that
	// changed the declaration.
	Flags []string

	rows []figures.Published // published rows; nil for all
}

// Page is a written page.
type Page struct {
	Reproduction
	Path   string        // folder of the page
	Rows   []ComparedRow // of a comparison
	Survey *doc.Table    // of a page without published rows

	split     data.Split // split of the measured images
	flags     []string   // flags that changed the declaration, as words of a command line
	further   []string   // Options.Flags
	notes     string
	first     string   // name of the trained model with which the others are compared, "" if no model was trained
	tests     int      // number of comparisons that are corrected together
	differing []string // metrics that are compared; empty without two common seeds
	failed    []sweep.Row
	unfit     []config.Unfit // models without a trial
	figures   []figure       // figures that are drawn
}

// Write writes the page of a completed sweep, with its table and its figures, into the folder page of the sweep. It replaces
// the files of an older page. It returns a [*folder.WriteError] for a file that cannot be written.
func (r Reproduction) Write(ctx context.Context, s *sweep.Sweep, results *sweep.Results, o Options) (*Page, error) {
	if s == nil || results == nil {
		return nil, errors.New("study: no sweep, or no results of it, to write a page of")
	}
	if o.rows == nil {
		o.rows = figures.PublishedRows()
	}
	all, err := settings(s, results)
	if err != nil {
		return nil, err
	}
	p := &Page{Reproduction: r, Path: filepath.Join(s.Path, Folder), split: data.Split(results.Split), flags: results.Flags(), further: o.Flags, unfit: s.Unfit}
	if r.Columns != nil {
		if p.Survey, err = r.survey(ctx, s, results, all, tessera.Options{Data: o.Data, Threads: o.Threads}); err != nil {
			return nil, err
		}
	} else {
		measured := lists.Map(all, func(one shown) Measured { return one.Measured })
		p.Rows = pair(r.published(o.rows, measured), measured)
		if err := p.differ(s.Path, results, measured, all); err != nil {
			return nil, err
		}
	}
	for _, row := range results.Trials {
		if row.Error != "" {
			p.failed = append(p.failed, row)
		}
	}
	if err := os.MkdirAll(p.Path, 0o777); err != nil {
		return nil, &folder.WriteError{Path: p.Path, Err: err}
	}
	if err := p.readNotes(); err != nil {
		return nil, err
	}
	g, err := r.newGallery(ctx, s.Path, all, tessera.Options{Data: o.Data, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if err := p.drawAll(g); err != nil {
		return nil, err
	}
	table := comparisonCSV(p.Rows)
	if r.Columns != nil {
		table = csvOf(p.Survey)
	}
	if err := p.write(TableFile, table); err != nil {
		return nil, err
	}
	return p, p.write(PageFile, p.markdown())
}

// drawAll draws the figures that have data.
func (p *Page) drawAll(g *gallery) error {
	for _, f := range drawings {
		path := filepath.Join(p.Path, f.name+".png")
		if p.Figures != nil && !slices.Contains(p.Figures, f.name) {
			continue
		}
		drawn, err := f.draw(g)
		if err != nil {
			return err
		}
		if drawn == nil {
			continue
		}
		if err := drawn.Save(path); err != nil {
			return &folder.WriteError{Path: path, Err: err}
		}
		p.figures = append(p.figures, f)
	}
	return nil
}

// readNotes reads the explanations of the user.
func (p *Page) readNotes() error {
	text, err := regular.ReadFile(filepath.Join(p.Path, NotesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.notes = string(text)
	return nil
}

func (p *Page) write(name string, text []byte) error {
	path := filepath.Join(p.Path, name)
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}

// Document returns what a command shows of the page: its tables, its answer and where it is.
func (p *Page) Document() *doc.Document {
	d := &doc.Document{}
	place := &doc.Facts{Facts: []doc.Fact{{Key: "page", Title: "page", Value: filepath.Join(p.Path, PageFile)}}}
	if p.Columns != nil {
		d.Add(p.Survey, place)
		return d
	}
	shown, _ := shownTable(p.Rows)
	d.Add(judgedTable(p.Rows), shown, doc.Remark("%s", p.Summary()))
	if t, text := p.Differences(); text != "" {
		g := &doc.Group{Title: text}
		if t != nil {
			g.Blocks = []doc.Block{t}
		}
		d.Add(g)
	}
	d.Add(place)
	return d
}

func (p *Page) markdown() []byte {
	d := &doc.Document{Title: p.Title}
	d.Add(doc.Remark("%s", p.About))
	p.changes(d)
	if p.Columns != nil {
		p.surveyed(d)
	} else {
		d.Add(doc.Remark("**Answer.** %s", p.Summary()))
		p.judged(d)
		p.shown(d)
		p.differences(d)
	}
	p.remarks(d)
	if len(p.figures) > 0 {
		drawn := &doc.Group{Title: "Figures"}
		for _, f := range p.figures {
			drawn.Blocks = append(drawn.Blocks, &doc.Figure{Title: f.title, Path: f.name + ".png"})
		}
		d.Add(drawn)
	}
	contents := "means"
	if p.Columns != nil {
		contents = "table"
	}
	d.Add(doc.Remark("---\n\nThis page was written by %s; [%s](%s) has its %s, `results.csv` of the sweep the values of every seed. All values are measured on %s.", code(p.command()), TableFile, TableFile, contents, p.images()))
	var b bytes.Buffer
	_ = d.Markdown(&b) // a buffer takes everything
	return b.Bytes()
}

// images returns the name of the measured images.
func (p *Page) images() string {
	unlike := ", not on the test images, as the published ones are"
	if p.Columns != nil {
		unlike = ", not on the test images"
	}
	switch p.split {
	case data.TestSplit:
		return "the test images"
	case data.ValidationSplit:
		return "the images that the training held out for validation" + unlike
	case data.TrainSplit:
		return "the fitted images" + unlike
	}
	return "all images, the fitted ones among them" + unlike
}

func (p *Page) command() string {
	return strings.Join(slices.Concat([]string{"tessera reproduce", p.Name}, p.flags, p.further), " ")
}

// code returns a text in a code span of Markdown, delimited by more backquotes than the text contains.
func code(text string) string {
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		text = " " + text + " "
	}
	return fence + text + fence
}

// changes writes which flags changed the declared sweep. With other seeds it is still the same reproduction.
func (p *Page) changes(d *doc.Document) {
	var others []string
	seeds := ""
	for flag := range slices.Chunk(p.flags, 2) {
		if flag[0] == "--seeds" {
			seeds = strings.Join(flag, " ")
		} else {
			others = append(others, flag...)
		}
	}
	if len(others) > 0 {
		d.Add(doc.Remark("**A quick trial, not a reproduction**: made with %s, which changes the declared settings.", code(strings.Join(others, " "))))
	}
	if seeds != "" {
		d.Add(doc.Remark("The trials have the seeds of `%s`, not the declared ones.", seeds))
	}
}

// judged writes the table with verdicts.
func (p *Page) judged(d *doc.Document) {
	outside := slices.DeleteFunc(slices.Clone(p.Rows), func(r ComparedRow) bool { return len(r.Outside()) == 0 })
	compared := slices.DeleteFunc(slices.Clone(p.Rows), func(r ComparedRow) bool {
		return r.Published == nil || r.Measured == nil || r.Measured.Done == 0
	})
	g := &doc.Group{Title: "Reconstruction and sparsity", Blocks: []doc.Block{judgedTable(p.Rows), doc.Remark("Our values are means over the finished seeds, ± the standard deviation. mse is the mean over images and pixels, nothing clipped. "+
		"Hoyer is the mean sparsity of the codes. A row is within tolerance if its mse differs by at most %.0f %% from the published one and its "+
		"Hoyer sparsity by at most %.2f: two trainings of the study with the same settings differ by as much. A better value outside of the "+
		"tolerance is also marked.", 100*MSETolerance, HoyerTolerance)}}
	if len(outside) > 0 && strings.TrimSpace(p.notes) == "" {
		g.Blocks = append(g.Blocks, doc.Remark("The rows outside of the tolerance are not explained yet. Write the explanation into `%s` next to this page: it becomes a section of the page.", NotesFile))
	}
	if len(compared) == 0 {
		g.Blocks = append(g.Blocks, doc.Remark("No trial of a published row has finished."))
	}
	d.Add(g)
}

// Summary counts the rows that are reproduced.
func (p *Page) Summary() string {
	var within, outside, missing int
	for _, r := range p.Rows {
		switch verdict := r.Verdict(); {
		case r.Published == nil || verdict == "":
		case verdict == Within:
			within++
		case len(r.Outside()) > 0:
			outside++
		default:
			missing++
		}
	}
	text := fmt.Sprintf("%d of %d published rows are within tolerance, %d outside", within, within+outside+missing, outside)
	if missing > 0 {
		text += fmt.Sprintf(", %d not measured", missing)
	}
	return text + "."
}

// shown writes the table without verdicts and explains its columns.
func (p *Page) shown(d *doc.Document) {
	t, lines := shownTable(p.Rows)
	if len(lines) == 0 {
		return
	}
	d.Add(&doc.Group{Title: "Max-approximation, classification, dead units", Blocks: []doc.Block{t,
		doc.Remark("No tolerance is known for these. The columns are:"), doc.Remark("%s", strings.Join(lines, "\n"))}})
}

// remarks writes the notes about single rows.
func (p *Page) remarks(d *doc.Document) {
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			d.Add(&doc.Group{Title: title, Blocks: []doc.Block{doc.Remark("%s", strings.Join(lines, "\n"))}})
		}
	}
	var notes []string
	for _, r := range p.Rows {
		if r.Published == nil || r.Published.Note == "" {
			continue
		}
		note := fmt.Sprintf("- `%s`: %s", r.Name(), r.Published.Note)
		if r.Measured == nil || r.Measured.Model != r.Published.Model {
			note = fmt.Sprintf("- `%s`, published as %s: %s", r.Name(), r.Published.Label, r.Published.Note)
		}
		notes = append(notes, note)
	}
	list("About the published rows", notes)
	var failed, unfit []string
	for _, row := range p.failed {
		failed = append(failed, fmt.Sprintf("- `%s`, seed %d (%s): %s", row.Model, row.Seed, row.Trial, row.Error))
	}
	list("Trials that failed", failed)
	for _, u := range p.unfit {
		unfit = append(unfit, fmt.Sprintf("- `%s`: %s", strings.TrimSpace(u.Model+" "+u.Values), u.Reason))
	}
	list("Models without a trial", unfit)
	if notes := strings.TrimSpace(p.notes); notes != "" {
		list("Explanations", []string{notes})
	}
}

// differ compares the trained models of the page with the first of them, paired by seed. measured and all belong to the
// settings of the results, which are in the folder path.
func (p *Page) differ(path string, results *sweep.Results, measured []Measured, all []shown) error {
	trained := slices.DeleteFunc(slices.Clone(p.Rows), func(r ComparedRow) bool { return r.Measured == nil || r.Measured.Done == 0 })
	if len(trained) < 2 {
		return nil
	}
	reference, trials := "", map[string]comparison.Trial{}
	for i, one := range results.Settings {
		for _, trial := range one.Trials {
			trials[trial] = comparison.Trial{Dataset: &all[i].model.Dataset, Parameters: comparison.Parameters(sweep.TrialPath(path, trial))}
		}
		if trained[0].Measured == &measured[i] {
			at := slices.IndexFunc(results.Trials, func(row sweep.Row) bool { return row.Metrics != nil && slices.Contains(one.Trials, row.Trial) })
			reference = sweep.TrialPath(path, results.Trials[at].Trial)
		}
	}
	names := compared(results)
	t, err := comparison.OfSweep(results, path, trials, reference, names)
	if err != nil {
		return err
	}
	p.first, p.tests = labelled(trained[0]), t.Tests
	next := 0 // index of the setting's model in the table
	for i := range measured {
		if measured[i].Differences = map[string]metrics.Paired{}; measured[i].Done == 0 {
			continue
		}
		if measured[i].Pairs = t.Common(next); measured[i].Pairs > 0 {
			for _, row := range t.Metrics {
				if d := row.Cells[next].Paired; d != nil {
					measured[i].Differences[row.Name] = *d
				}
			}
		}
		next++
	}
	for _, name := range names {
		if slices.ContainsFunc(measured, func(m Measured) bool { _, ok := m.Differences[name]; return ok }) {
			p.differing = append(p.differing, name)
		}
	}
	return nil
}

// compared returns the metrics whose differences a page shows: reconstruction, the sparsity of contributions, or of codes without it,
// max-approximation, and accuracies.
func compared(r *sweep.Results) (names []string) {
	var heads, known []string
	for _, row := range r.Trials {
		if row.Metrics == nil {
			continue
		}
		for _, v := range row.Metrics.Values {
			if v.Missing != "" || slices.Contains(known, v.Name) {
				continue
			}
			known = append(known, v.Name)
			if m, _ := metrics.MeasureOf(v.Name); m.Name == "accuracy" {
				heads = append(heads, v.Name)
			}
		}
	}
	sparsity := "hoyer_contribution"
	if !slices.Contains(known, sparsity) {
		sparsity = "hoyer"
	}
	return slices.Concat([]string{"mse", sparsity, "max_approx"}, heads, []string{"svm_accuracy", "svm_holdout_accuracy"})
}

// Differences returns the differences of the trained models from the first one, with 95 % confidence intervals, and a sentence
// about them. Without two common seeds the table is empty, and the sentence says why; with fewer than two trained models both are
// empty.
func (p *Page) Differences() (*doc.Table, string) {
	switch several := slices.ContainsFunc(p.Rows, func(r ComparedRow) bool { return r.Measured != nil && r.Measured.Trials > 1 }); {
	case p.first == "":
		return nil, ""
	case len(p.differing) == 0 && several:
		return nil, fmt.Sprintf("No difference is shown: no model has two seeds in common with %s, the first trained model of this page, on the same images.", p.first)
	case len(p.differing) == 0:
		return nil, "One seed shows no difference between models: give the sweep several seeds."
	}
	return differenceTable(p.Rows, p.differing), fmt.Sprintf("Each value is the mean difference from %s, the first trained model of this page, with its 95 %% confidence interval.", p.first)
}

// differences writes the section of the differences between the models.
func (p *Page) differences(d *doc.Document) {
	t, text := p.Differences()
	if text == "" {
		return
	}
	g := &doc.Group{Title: "Differences between models"}
	if t != nil && len(t.Rows) > 0 {
		text += fmt.Sprintf(" Differences are paired by seed: mean ± t s / √n, by Student's t with n - 1 degrees of freedom. A difference is shown if its "+
			"p-value is below 0.05 after Holm's correction for %d comparisons; \"%s\" would be shown alone. Intervals cover the choice of the seeds, "+
			"not that of the measured images.", p.tests, metrics.Uncorrected)
	}
	g.Blocks = append(g.Blocks, doc.Remark("%s", text))
	if t != nil && len(t.Rows) > 0 {
		g.Blocks = append(g.Blocks, t)
	}
	d.Add(g)
}

// labelled returns the name of a model with the target and weight of its KL penalty, which distinguish the settings of a
// model.
func labelled(r ComparedRow) string {
	if p, beta := r.Penalty(); !math.IsNaN(p) {
		return fmt.Sprintf("%s (p = %v, β = %v)", r.Name(), p, beta)
	}
	return r.Name()
}
