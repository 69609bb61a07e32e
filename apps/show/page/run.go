package page

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/comparison"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/shell"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// Options are the settings for reading runs for a page.
type Options struct {
	Open      tessera.Options   // options for opening runs
	Split     data.Split        // measured images; "" for the default of [evaluation.PlanOf]: held-out images if there are any
	Metrics   metrics.Selection // measured metrics; nil for [metrics.Default]
	Named     bool              // the metrics were selected by name: those without a value are shown too
	Attack    attack.Norm       // norm of the balls in which heads are attacked; "" for no attacks
	Radii     []float64         // radii of these balls; nil for [attack.Norm.Radii]
	Flags     []string          // the words of the flags of `tessera report` that made these options, for the command that writes the page
	Reference string            // of a sweep: setting that the others are compared with, as in [comparison.Options]
	Quick     bool              // nothing is measured: the page has no numbers, samples and codes, like that of a run that is still training
}

// Run is the content of a page about one run.
type Run struct {
	ID       string // ID of the run's section: run-1
	Label    string // name of the folder; of a trial of a sweep, its model and the settings that differ
	Path     string
	Name     string        // name of the model
	Noun     string        // noun for a sample: "image" or "sample"
	Document *doc.Document // facts, remarks, numbers and tables, as every command shows them
	Terms    *doc.Table    // terms of the objective
	Verdicts []Verdict
	Measured *Measured // measured images; nil if nothing was measured
	Missing  string    // why nothing was measured
	Curves   Curve
	Samples  []Sample    // the first one is part of the sections, a slider shows the others
	Sections []doc.Block // units, samples, codes, mixture, attention, those of [Sections], heads, and attacks
	Resists  string      // why no head was attacked; "" if one was, or if none should be
	Settings []comparison.Line
	Origin   Origin

	data runData
}

// Measured names the images on which a run was measured.
type Measured struct {
	Split  string
	Images int
	Drawn  int // number of these images used for pictures and for the statistics of units, codes and heads
}

// Top returns what stands at the top of the page: facts and remarks.
func (r *Run) Top() []doc.Block { return r.part(true) }

// Tables returns the numbers and the tables of metrics.
func (r *Run) Tables() []doc.Block { return r.part(false) }

func (r *Run) part(top bool) (list []doc.Block) {
	for _, b := range r.Document.Blocks {
		switch b.(type) {
		case *doc.Facts, *doc.Note:
			if top {
				list = append(list, b)
			}
		default:
			if t, ok := b.(*doc.Table); ok { // each table is a section
				inside := *t
				inside.Title = ""
				b = &doc.Group{Title: t.Title, Blocks: []doc.Block{&inside}}
			}
			if !top {
				list = append(list, b)
			}
		}
	}
	return list
}

// ReadRun opens a run, measures it and prepares the contents of its page. Missing data are not an error: the page says that
// they are missing.
func ReadRun(ctx context.Context, path string, o Options) (*Run, error) {
	if ctx == nil {
		return nil, errors.New("page: no context: give context.Background()")
	}
	opened, err := tessera.Open(path, o.Open)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	r := &Run{ID: "run-1", Label: labelOf(path, opened.Model.Name), Path: path, Name: opened.Model.Name, Noun: show.NounOf(opened.Shape())}
	if r.Curves, err = readCurve(path, r.Label); err != nil {
		return nil, err
	}
	r.data.Kind, r.data.Noun = "atom", r.Noun
	r.Curves.unit = show.UnitOf(opened.Model)
	env, err := train.ReadEnvironment(path)
	if err != nil {
		env = train.Environment{} // a run without its record is shown without it
	}
	r.Origin = originOf(r, env, o.Flags)
	r.Settings = comparison.Declaration(opened.Model)
	result, err := r.measure(ctx, opened, o)
	if err != nil {
		return nil, err
	}
	r.Document, r.Terms = show.RunDocument(opened, result, o.Named), show.Terms(opened.Model, true)
	if opened.Tokens() != nil { // the section of topics says more
		r.Document.Blocks = slices.DeleteFunc(r.Document.Blocks, func(b doc.Block) bool { t, ok := b.(*doc.Table); return ok && t != nil && t.Key == "atoms" })
	}
	facts := r.Document.Blocks[0].(*doc.Facts)
	if r.Missing != "" {
		facts.Add("", "measured on", "nothing: "+r.Missing)
	} else if r.Measured.Drawn < r.Measured.Images {
		facts.Add("", "pictures", fmt.Sprintf("pictures, and statistics of units, codes and heads, are of %s of the %ss, evenly spread", numeral.Count(r.Measured.Drawn), r.Noun))
	}
	return r, nil
}

// labelOf returns the label of a run of the named model.
func labelOf(path, model string) string {
	label, ok := sweep.LabelOf(path)
	switch {
	case !ok:
		return filepath.Base(filepath.Clean(path))
	case strings.HasPrefix(label, model): // it is the model's, or that of a sweep of several models
		return label
	}
	return model + ": " + label
}

// measure adds the contents of the page that are computed from images.
func (r *Run) measure(ctx context.Context, opened *tessera.Run, o Options) (*evaluation.Report, error) {
	if o.Quick {
		r.Missing = "the training has not ended"
		r.plainUnits(opened)
		return nil, nil
	}
	split := o.Split
	if split == "" {
		split = evaluation.PlanOf(opened.Model).First
	}
	var err error
	if o.Metrics, err = ofPage(opened, o); err != nil {
		return nil, err
	}
	sample, err := opened.Sample(ctx, split, metrics.ColumnsOf(o.Metrics, opened.Model.Dataset.Source)...)
	if _, ok := errors.AsType[*data.Error](err); ok {
		r.Missing = err.Error()
		r.plainUnits(opened)
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	result, err := measured(ctx, opened, sample, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	r.Measured = &Measured{Split: result.Split, Images: result.Images}
	if r.Measured.Split == string(data.TestSplit) && opened.Model.Dataset.Fit != r.Measured.Split {
		r.Origin.Data.Notes = []string{fmt.Sprintf("These are the files that the training read. The checksums of the files of the test %ss are not recorded.", r.Noun)}
	}
	if err := r.draw(ctx, opened, sample, result, o); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Path, err)
	}
	return result, nil
}

// draw adds the pictures and the statistics of the units to the page.
func (r *Run) draw(ctx context.Context, opened *tessera.Run, sample *evaluation.Sample, result *evaluation.Report, o Options) error {
	v, err := newView(opened, sample)
	if err != nil {
		return err
	}
	attacks, why, err := v.attacks(ctx, o)
	if err != nil {
		return err
	}
	parts := []func() ([]doc.Block, error){func() ([]doc.Block, error) { return v.units(&r.data) }, func() ([]doc.Block, error) { return v.samples(r) },
		func() ([]doc.Block, error) { return v.codes(), nil }, func() ([]doc.Block, error) { return v.mixture(r.Path) }, v.attention,
		func() ([]doc.Block, error) { return v.sections(ctx) }, v.heads}
	if numbered(ctx, opened) {
		parts = []func() ([]doc.Block, error){func() ([]doc.Block, error) { return v.sections(ctx) }, v.heads}
	}
	for _, make := range parts {
		blocks, err := make()
		if err != nil {
			return err
		}
		r.Sections = append(r.Sections, blocks...)
	}
	r.Sections, r.Resists = append(r.Sections, attacks...), why
	r.Verdicts, r.Measured.Drawn, r.data.Classes = v.verdicts(result), v.n, v.classes
	return nil
}

// measured evaluates the run on the given split, by default on held-out images and, for comparison, on fitted ones.
func measured(ctx context.Context, opened *tessera.Run, sample *evaluation.Sample, o Options) (*evaluation.Report, error) {
	if o.Split == "" {
		return opened.Report(ctx, o.Metrics)
	}
	result, err := opened.EvaluateSample(ctx, sample, o.Metrics)
	return evaluation.ReportOf(opened.Model, result), err
}

// view is an opened run with the images on which it is measured, at most [mostImages] evenly spaced ones, and their codes.
type view struct {
	run     *tessera.Run
	coder   *tessera.Coder // computes with images
	sample  *evaluation.Sample
	painter painter
	tone    figures.Tone  // tone of images
	span    float32       // difference of scaled values that is drawn white
	data    *data.Images  // the shown images
	images  []float32     // images, n x pixels, unscaled, or minus the shift of an exact scaling: the coder scales its inputs
	shift   *data.Scaling // see [data.Scaling.Split]
	scaling *data.Scaling // of images
	codes32 []float32     // codes, n x units
	n       int
	labels  []int    // labels; nil if there are none
	classes []string // names of the classes
	names   []string // names of all samples, by their numbers; nil if they have none
	atoms   *metrics.Atoms
	direct  bool // every value of the code weights one atom
	usage   *usage

	observed []float32 // 1 for observed values of images, 0 for missing and hidden ones; nil if all are observed
}

func newView(run *tessera.Run, sample *evaluation.Sample) (*view, error) {
	images := evaluation.Spread(sample.Images, min(mostImages, max(1, mostValues/sample.Images.Pixels())))
	shift, scaling := images.Scaling().Split()
	v := &view{run: run, coder: run.Centred(), shift: shift, sample: sample, data: images, painter: newPainter(run.Shape()), images: images.Scaled(shift).Float32(),
		scaling: scaling, n: images.Len(), atoms: run.Atoms(), names: sample.Images.SampleNames()}
	low, high := sample.Images.Scaled(nil).Range()
	if v.tone, v.span = figures.ToneOf(low, high), 1; v.tone != figures.Unit && v.scaling == nil {
		v.span = high - low
	}
	given := v.images
	if images.Holed() {
		v.observed = images.All()[data.ObservedColumn]
		if given = images.Centred(shift); given == nil {
			given = images.Raw()
		}
	}
	v.labels, v.classes = images.Labels(), classNames(images.Labels(), sample.Classes)
	v.direct = v.atoms != nil && v.atoms.Indirect == "" && v.atoms.Count == run.Units()
	var err error
	if read := run.Columns(metrics.CodeName); len(read) != 1 || read[0].Name != data.ImagesColumn { // other columns, too or alone
		columns := images.Scaled(shift).All() // the coder scales columns of images itself
		columns[data.ImagesColumn] = given
		v.codes32, err = v.coder.ValueOf(metrics.CodeName, columns)
	} else {
		v.codes32, err = v.coder.Encode(given)
	}
	if err != nil {
		return nil, err
	}
	var scales []float64
	if v.direct {
		scales = lengths(v.atoms)
	}
	v.usage = usageOf(v.codes32, run.Units(), scales, v.labels, len(v.classes))
	return v, nil
}

// noun returns the noun for a sample: "image" or "sample".
func (v *view) noun() string { return show.NounOf(v.run.Shape()) }

const mostClasses = 40

// classNames returns the names of the classes, or their numbers if they have no names; nil without labels.
func classNames(labels []int, names []string) []string {
	most := -1
	for _, c := range labels {
		most = max(most, c)
	}
	if most < 0 || most >= mostClasses {
		return nil
	}
	for c := len(names); c <= most; c++ {
		names = append(names[:c:c], fmt.Sprint(c))
	}
	return names
}

// number returns the index in its split of the i-th image of the view; see [evaluation.Spread].
func (v *view) number(i int) int { return i * v.sample.Images.Len() / v.n }

func (v *view) image(i int) []float32 {
	pixels := len(v.images) / v.n
	return v.images[i*pixels : (i+1)*pixels]
}

// Origin describes the environment and the data of a run, and the commands that reproduce it.
type Origin struct {
	Facts    doc.Facts // the environment
	Data     doc.Table // path and SHA-256 of each file
	Commands []Command
}

// Blocks returns the environment and the data.
func (o *Origin) Blocks() []doc.Block {
	d := &doc.Document{}
	if len(o.Facts.Facts) > 0 {
		d.Add(&o.Facts)
	}
	d.Add(&o.Data)
	return []doc.Block{&doc.Group{Blocks: d.Blocks}}
}

// Command is a command line with its description.
type Command struct{ Line, About string }

// originOf returns the origin of a run according to its record. flags are those of the command that writes the page.
func originOf(r *Run, e train.Environment, flags []string) Origin {
	o := Origin{Facts: doc.Facts{Title: "Environment"}, Data: doc.Table{Title: "Data", Columns: doc.Columns("file", "SHA-256 of its content")}}
	for _, f := range [][2]string{{"tessera", e.Version}, {"Go", e.Go}, {"system", e.System}, {"CPU", e.CPU}, {"back end", e.Backend}, {"kernels", e.BLAS}} {
		o.Facts.Add("", f[0], f[1])
	}
	same := ""
	if e.Threads > 0 {
		o.Facts.Add("", "threads", e.Threads)
		if e.Backend != "" { // a baseline has none, and does not depend on the threads
			same = fmt.Sprintf(" --threads %d --backend %s", e.Threads, e.Backend)
		}
	}
	for _, f := range e.Data {
		o.Data.Row(filepath.Join(filepath.Base(filepath.Dir(f.Path)), filepath.Base(f.Path)), f.SHA256)
	}
	if e.Start != nil {
		o.Data.Row(filepath.Base(e.Start.Path)+" (initial parameters)", e.Start.SHA256)
	}
	name := shell.Word(r.Name)
	words := []string{"tessera", "report", r.Path}
	words = append(append(words, flags...), "-o", "report.html")
	o.Commands = []Command{
		{"tessera train " + name + " -f " + folder.Config + same, "trains it again from the settings above, saved as " + folder.Config + ": on the same kind of CPU to the same bytes"},
		{"tessera eval " + shell.Word(r.Path), "measures it again"},
		{shell.Line(words), "writes this page"},
	}
	if len(e.Command) > 0 {
		given := append([]string{filepath.Base(e.Command[0])}, e.Command[1:]...)
		o.Commands = append(o.Commands, Command{shell.Line(given), "is the command that was given"})
	}
	return o
}
