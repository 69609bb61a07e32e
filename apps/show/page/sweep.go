package page

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/comparison"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/shell"
	"tessera/internal/sweep"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// Sweep is the content of a page about a sweep.
type Sweep struct {
	Label, Path string
	Live        string      // URL path of the events of `tessera ui`, "" for a file
	Facts       []doc.Block // description of the sweep
	Failed      []Failure
	Terms       *doc.Table // terms of the objective, if there is one model
	Noun        string     // noun for a sample: "image", or "sample" if some are vectors
	Warning     string     // a warning if the measured images are not unseen ones; else ""
	Keys        []string
	Names       []string // names of the keys, in words
	Measures    []MeasureColumn
	First       []string // metrics that are shown first, see [sweep.Results.First]
	Settings    []SettingRow
	Trials      []TrialRow
	Selected    *doc.Group        // means of the selected settings on the test images; nil without any
	Compared    *comparison.Table // differences between the settings; nil without any
	Intervals   string            // caveat about the confidence intervals of the differences
	OneSeed     string            // why the table has no differences, if more seeds would provide some; else ""
	Commands    []Command

	compared map[string]comparison.Trial // what a comparison needs to know of the trials
}

// Failure is a trial without a result. Name consists of its setting and its seed.
type Failure struct{ Trial, Name, Problem string }

// MeasureColumn is one metric of a sweep.
type MeasureColumn struct {
	Name   string `json:"name"`
	Better string `json:"better"`       // lower, higher, or "" for neither
	Of     int    `json:"of,omitempty"` // maximum value, if known
	About  string `json:"about"`
}

// SettingRow is one setting: numbers in the order of the metrics, nil where they are missing.
type SettingRow struct {
	Model     string   `json:"model"`
	Values    []string `json:"values"` // values of the swept keys
	Seeds     int      `json:"seeds"`
	Images    int      `json:"images"` // index of the measured images; settings with equal indices are measured on the same images
	Mean      []*Point `json:"mean"`
	Deviation []*Point `json:"deviation"`
	Trials    []int    `json:"trials"` // indices of the trials of the setting
}

// TrialRow is one trial.
type TrialRow struct {
	Name    string   `json:"name"`
	Seed    uint64   `json:"seed"`
	Numbers []*Point `json:"numbers"`
	Atoms   *Sprite  `json:"atoms,omitempty"`
	Link    string   `json:"link,omitempty"` // address of the trial's page in `tessera ui`
}

// ReadSweep reads the results of a sweep and the atoms of its trials. It measures nothing.
func ReadSweep(ctx context.Context, path string, o Options) (*Sweep, error) {
	if ctx == nil {
		return nil, errors.New("page: no context: give context.Background()")
	}
	results, err := sweep.Read(path)
	if err != nil {
		return nil, err
	}
	s := &Sweep{Label: filepath.Base(filepath.Clean(path)), Path: path, Keys: results.Keys, Noun: "image", compared: map[string]comparison.Trial{}}
	names := s.measures(results)
	s.rows(results, names)
	s.Commands = []Command{{strings.Join(append([]string{"tessera sweep", shell.Word(results.Sweep)}, results.Flags()...), " "),
		"trains and measures it again, in a folder with the same models.toml"},
		{"tessera report " + shell.Word(path) + " -o report.html", "writes this page"}}
	models, err := s.sprites(ctx, results, o)
	if err != nil {
		return nil, err
	}
	s.Names = show.KeyNames(results.Keys, models)
	s.facts(results, models)
	s.selected(results, names)
	s.group(results)
	return s, s.compare(results, o.Reference)
}

// rows lists the trials, those that failed, and the settings.
func (s *Sweep) rows(results *sweep.Results, names []string) {
	numbers, labels := map[string]int{}, results.Labels()
	for i, t := range results.Trials {
		numbers[t.Trial] = i
		row := TrialRow{Name: t.Trial, Seed: t.Seed}
		if t.Metrics != nil {
			row.Numbers = points(t.Metrics.Values, names)
		}
		if t.Error != "" {
			s.Failed = append(s.Failed, Failure{t.Trial, labels.Trial(t), t.Error})
		}
		s.Trials = append(s.Trials, row)
	}
	for _, one := range results.Settings {
		row := SettingRow{Model: one.Model, Values: one.Texts(results.Keys), Seeds: len(one.Seeds), Mean: points(one.Mean, names), Deviation: points(one.Deviation, names)}
		for _, t := range one.Trials {
			row.Trials = append(row.Trials, numbers[t])
		}
		s.Settings = append(s.Settings, row)
	}
}

func (s *Sweep) selected(r *sweep.Results, names []string) {
	if len(r.Selected) == 0 {
		return
	}
	on := fmt.Sprintf("all %[1]ss, because there are no test %[1]ss: those of the training and of the selection are among them", s.Noun)
	for _, one := range s.compared {
		if data.HasTest(one.Dataset.Source) {
			on = fmt.Sprintf("the test %ss, which the selection did not use", s.Noun)
		}
	}
	t := &doc.Table{Columns: doc.Columns(append([]string{"model"}, s.Names...)...)}
	for _, m := range s.Measures {
		t.Columns = append(t.Columns, doc.Column{Title: m.Name, About: m.About})
	}
	for _, one := range r.Selected {
		row := []any{one.Model}
		for _, text := range one.Texts(r.Keys) {
			row = append(row, text)
		}
		for _, n := range names {
			v, ok := one.Mean.Number(n)
			row = append(row, map[bool]any{true: v}[ok])
		}
		t.Row(row...)
	}
	s.Selected = &doc.Group{Title: "Selected settings", Blocks: []doc.Block{doc.Remark("Measured on %s.", on), t}}
}

// measures lists the metrics of a sweep and returns their names.
func (s *Sweep) measures(r *sweep.Results) (names []string) {
	for _, t := range r.Trials {
		if t.Metrics == nil {
			continue
		}
		for _, v := range t.Metrics.Values {
			if v.Missing == "" && !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	first := r.First()
	judges := func(name string) bool { return slices.Contains(first, name[strings.LastIndex(name, ".")+1:]) }
	for _, name := range names {
		if judges(name) {
			s.First = append(s.First, name)
		}
	}
	names = append(slices.Clone(s.First), slices.DeleteFunc(names, judges)...)
	for _, name := range names {
		c := MeasureColumn{Name: name}
		if m, ok := metrics.MeasureOf(name); ok {
			c.About = show.AboutOf(m)
			if m.Better != metrics.Neither {
				c.Better = string(m.Better)
			}
		}
		s.Measures = append(s.Measures, c)
	}
	return names
}

func points(values metrics.Values, names []string) []*Point {
	all := make([]*Point, len(names))
	for i, name := range names {
		if v, ok := values.Number(name); ok {
			p := Point(v)
			all[i] = &p
		}
	}
	return all
}

// sprites draws the atoms of the trials and returns their models, one for each name.
func (s *Sweep) sprites(ctx context.Context, results *sweep.Results, o Options) (models []*config.Model, err error) {
	budget := spriteBudget / max(1, len(s.Trials))
	var names []string
	var named config.Dataset
	for i := range s.Trials {
		t := &s.Trials[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		run, err := tessera.Open(sweep.TrialPath(s.Path, t.Name), o.Open)
		var damaged *checkpoint.Error
		switch {
		case errors.Is(err, folder.ErrNotRun), errors.As(err, &damaged): // not begun, removed or damaged: the numbers are shown
			continue
		case err != nil:
			return nil, err
		}
		s.compared[t.Name] = comparison.TrialOf(sweep.TrialPath(s.Path, t.Name), run, results.Trials[i].Metrics)
		if noun := show.NounOf(run.Shape()); len(s.compared) == 1 || noun == s.Noun {
			s.Noun = noun
		} else {
			s.Noun = "sample" // of images and vectors
		}
		if !slices.ContainsFunc(models, func(m *config.Model) bool { return m.Name == run.Model.Name }) {
			models = append(models, run.Model)
			s.countParts(ctx, run)
		}
		if a := run.Atoms(); a != nil {
			if t.Atoms = spriteOf(a, budget); t.Atoms != nil && len(run.Shape()) == 1 {
				if len(s.compared) == 1 || !reflect.DeepEqual(run.Model.Dataset, named) {
					names, named = show.ValueNames(ctx, run), run.Model.Dataset // which reads the file
				}
				t.Atoms.describe(a, names)
			}
		}
		if err := run.Close(); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// countParts adds the number of true parts to the metrics that count the parts found.
func (s *Sweep) countParts(ctx context.Context, run *tessera.Run) {
	at := slices.IndexFunc(s.Measures, func(m MeasureColumn) bool { return m.Name == "parts_found" })
	if at < 0 {
		return
	}
	sample, err := run.Sample(ctx, evaluation.PlanOf(run.Model).First)
	if err != nil { // without the images their parts are not known
		return
	}
	s.Measures[at].Of = max(s.Measures[at].Of, len(sample.Images.Parts))
}

// Write renders the page.
func (s *Sweep) Write(w io.Writer) error {
	if s == nil {
		return errors.New("page: no sweep to report: read one with ReadSweep")
	}
	read := map[string]any{"liveSweep": s.Live, "sweep": map[string]any{"keys": s.Keys, "names": s.Names, "measures": s.Measures, "first": s.First, "settings": s.Settings, "trials": s.Trials}}
	return write(w, "sweep.html", frame{Title: s.Label + " - Tessera", Live: s.Live != "", Data: read, Body: s})
}

func (s *Sweep) facts(r *sweep.Results, models []*config.Model) {
	equal, seeds := true, 0 // number of seeds
	for _, one := range r.Settings {
		equal = equal && len(one.Trials) == len(r.Settings[0].Trials)
		seeds = max(seeds, len(one.Trials))
	}
	each := "each with "
	if !equal {
		each += "up to "
	}
	list := &doc.Facts{}
	list.Add("", "sweep", fmt.Sprintf("%s: %s, %s%s, %s in all", r.Sweep, numeral.Of(len(r.Settings), "setting"), each, numeral.Of(seeds, "seed"), numeral.Of(len(r.Trials), "trial")))
	var varied []string
	for i, key := range r.Keys {
		if s.Names[i] != key {
			key = fmt.Sprintf("%s (%s)", s.Names[i], key)
		}
		varied = append(varied, key)
	}
	list.Add("", "varied", strings.Join(varied, ", "))
	for _, m := range models {
		list.Facts = append(list.Facts, show.ModelFacts(m, s.Noun, false)...)
		list.Add("", "data", show.DataText(m, s.Noun))
		if m.Training().Method == "" {
			list.Add("", "training", show.ScheduleText(m))
		}
	}
	list.Add("", "measured", s.measuredText(r, models))
	s.Facts = []doc.Block{list}
	if len(models) == 1 {
		s.Terms = show.Terms(models[0], false)
	}
}

// measuredText returns the number of measured trials and the measured images in words.
func (s *Sweep) measuredText(r *sweep.Results, models []*config.Model) string {
	done, images := 0, []string{}
	for _, t := range r.Trials {
		if t.Metrics == nil {
			continue
		}
		done++
		text := fmt.Sprintf("%s %ss of %s", numeral.Count(t.Metrics.Images), s.Noun, t.Metrics.Dataset)
		if i := slices.IndexFunc(models, func(m *config.Model) bool { return m.Name == t.Model }); i >= 0 {
			m, report := *models[i], evaluation.ReportOf(models[i], t.Metrics)
			if set := s.compared[t.Trial].Dataset; set != nil {
				m.Dataset = *set
			}
			text = show.MeasuredOn(&m, report, s.Noun)
			if !report.HeldOut {
				s.Warning = fmt.Sprintf("The trials are measured on %[1]ss on which they were trained. Unseen %[1]ss may be reconstructed worse.", s.Noun)
			}
		}
		if !slices.Contains(images, text) {
			images = append(images, text)
		}
	}
	state := "all trials"
	if done < len(r.Trials) {
		state = fmt.Sprintf("%d of %d trials", done, len(r.Trials))
	}
	if len(images) > 0 {
		state += ", on " + strings.Join(images, ", ")
	}
	return state
}

// compare compares the settings by their results. The reference is the first one with several seeds, unless one is given.
func (s *Sweep) compare(r *sweep.Results, reference string) error {
	t, err := comparison.OfSweep(r, s.Path, s.compared, reference, nil)
	if err != nil {
		return err
	}
	several := slices.ContainsFunc(r.Settings, func(one sweep.Setting) bool { return len(one.Trials) > 1 })
	if len(r.Settings) > 1 && !several && len(s.Measures) > 0 {
		s.OneSeed = "One seed shows no difference between settings: give the sweep several seeds."
	}
	for _, row := range t.Metrics {
		for _, cell := range row.Cells {
			if cell.Paired != nil {
				s.Compared = t
			}
		}
	}
	if len(r.Selected) > 0 {
		s.Intervals = fmt.Sprintf("The values are of the %s split, by which settings were selected: there the selected ones look too good, and "+
			"more than one in twenty of their intervals may not contain the true difference.", r.Split)
	}
	return nil
}

// setsOf returns the data sets of the settings; nil for a setting without a trial that can be opened.
func (s *Sweep) setsOf(r *sweep.Results) []*config.Dataset {
	sets := make([]*config.Dataset, len(r.Settings))
	for i, one := range r.Settings {
		for _, trial := range one.Trials {
			if sets[i] = s.compared[trial].Dataset; sets[i] != nil {
				break
			}
		}
	}
	return sets
}

// group assigns the same number to all settings that are measured on the same images, because the best setting can be selected
// only among these. All unknown data sets are treated as equal.
func (s *Sweep) group(r *sweep.Results) {
	sets := s.setsOf(r)
	for i := range s.Settings {
		s.Settings[i].Images = slices.IndexFunc(sets[:i+1], func(set *config.Dataset) bool {
			return set == sets[i] || comparison.SameImages(set, sets[i], data.Split(r.Split))
		})
	}
}

// Sprite is a picture of the atoms of a trial.
type Sprite struct {
	Picture string `json:"picture"`
	Columns int    `json:"columns"`
	Height  int    `json:"height"` // height of one atom, in pixels
	Width   int    `json:"width"`
	Shown   int    `json:"shown"`
	Total   int    `json:"total"`

	// Of vectors:
	Scale    string   `json:"scale,omitempty"`    // what the colours are
	Names    []string `json:"names,omitempty"`    // of the columns, if they are few
	Captions []string `json:"captions,omitempty"` // and explanations of the atoms, if the columns have names
	Abouts   []string `json:"abouts,omitempty"`
}

// spriteBudget limits the size of the atoms of all trials in a sweep, in bytes of base64.
const spriteBudget = 3_200_000

// levels is the number of grey levels of a sprite: fewer levels give smaller files.
const levels = 15

// spriteOf draws as many atoms as fit the budget, nil if none can be drawn.
func spriteOf(a *metrics.Atoms, budget int) *Sprite {
	n := min(a.Count, mostUnits)
	for {
		s := firstAtoms(a, n)
		if s == nil || len(s.Picture) <= budget || n == 1 {
			return s
		}
		n = max(1, min(n-1, n*budget*9/10/len(s.Picture)))
	}
}

// describe names the columns of vectors, and their atoms by their largest ones.
func (s *Sprite) describe(a *metrics.Atoms, names []string) {
	p := newPainter(a.Shape).forVectors(a.Values)
	s.Scale = p.scale()
	if len(names) == 0 {
		return
	}
	if len(names) <= mostColumns {
		s.Names = names
	}
	for j := range s.Shown {
		one := p.picture("atom", j, atom(a, j), names)
		s.Captions, s.Abouts = append(s.Captions, one.Caption), append(s.Abouts, one.About)
	}
}

// firstAtoms draws the first n atoms, at least ten in a row.
func firstAtoms(a *metrics.Atoms, n int) *Sprite {
	p := newPainter(a.Shape).forVectors(a.Values)
	columns := min(n, max(10, (n+9)/10))
	height, width := p.shape[0], p.shape[1]
	drawn := image.NewRGBA(image.Rect(0, 0, columns*(width+1)-1, (n+columns-1)/columns*(height+1)-1))
	for j := range n {
		values := p.small(atom(a, j))
		if p.most == 0 {
			values = coarse(values)
		}
		one, err := p.pixels(figures.Signed, values)
		if err != nil {
			return nil
		}
		at := image.Pt(j%columns*(width+1), j/columns*(height+1))
		draw.Draw(drawn, image.Rectangle{at, at.Add(one.Rect.Size())}, one, image.Point{}, draw.Src)
	}
	return &Sprite{Picture: encode(drawn), Columns: columns, Height: height, Width: width, Shown: n, Total: a.Count}
}

// coarse rounds values to a few levels of their largest magnitude.
func coarse(values []float32) []float32 {
	most := float32(0)
	for _, v := range values {
		most = max(most, v, -v)
	}
	rounded := make([]float32, len(values))
	for i, v := range values {
		if most > 0 {
			rounded[i] = float32(math.Round(float64(v/most)*levels)) / levels
		}
	}
	return rounded
}
