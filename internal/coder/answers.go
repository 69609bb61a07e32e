package coder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	parts "tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/lists"
	"tessera/internal/regular"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
)

var _ data.Source = (*Answers)(nil)

func init() {
	data.Registry.Register("run", "values of a run: samples are codes or other values, labels or columns are the answers of its heads",
		func() data.Source { return &Answers{} })
}

// Answers is the data set `run`. It contains the samples of another data set, with values that a run computes in place of the
// samples or of the labels, or as additional columns.
//
//	dataset = { run = "runs/parts", value = "code" }                                                  # a density of codes
//	dataset = { run = "runs/teacher", labels = "class", of = "fashion-mnist" }                        # hard labels: stealing
//	dataset = { run = "runs/teacher", columns = { teacher = "class" } }                               # logits: distillation
//	dataset = { run = "runs/gpt-grammar", value = "encoder.2", tokens = true }                        # what a model of language computes with
//
// Splits, labels and columns are those of the data set that the run reads. Values are computed in blocks of 256 samples, with
// the parameters that a run is opened with, including calibrations and thresholds. The checksum of the parameters is recorded like
// that of a file: after the run has changed, a training on its values can be neither resumed nor evaluated.
//
// With tokens = true a sample is the value at one token of a text: of shape (features), where that of a text has (tokens, features), and so are
// `columns`. Its class is the token that follows, its name shows the token in its text. Padding and <end> are no samples.
type Answers struct {
	Run     string           `toml:"run" required:"true" doc:"folder of the run"`
	Value   string           `toml:"value" optional:"true" doc:"value of the run that replaces the samples: code, output, a head, or another value by its name; by default the samples are not replaced"`
	Labels  string           `toml:"labels" optional:"true" doc:"head of the run whose predicted class, as in predict, replaces the label; by default the labels are not replaced"`
	Columns data.ColumnNames `toml:"columns" optional:"true" doc:"further columns that are values of the run: { teacher = \"class\" }, the logits of a head"`
	Tokens  bool             `toml:"tokens" doc:"a sample is the value at one token of a text that the run reads, instead of a whole text"`
	Scale   data.Scale       `toml:"scale" single:"true" bare:"factor.by" optional:"true" doc:"how the samples are scaled: a scaling (tessera list scalings), a number as factor, or several scalings in order; by default they are not scaled"`
	Of      *data.Inner      `toml:"of" optional:"true" doc:"the data set whose samples the run reads; by default its own"`
}

// answersName is the name of the data set.
const answersName = "run"

// Check returns an error if the keys name no value of the run, or several values for one column.
func (s *Answers) Check() error {
	if s.Value == "" && s.Labels == "" && len(s.Columns) == 0 {
		return parts.KeyErrorf("run", `nothing of the run is used: want value = "code", labels = HEAD or columns = { NAME = VALUE }`)
	}
	if s.Tokens && s.Value == "" {
		return parts.KeyErrorf("tokens", "tokens have values only: give value = NAME")
	}
	if s.Tokens && s.Labels != "" {
		return parts.KeyErrorf("labels", "got labels = %q and tokens = true: the class of a token is the one that follows", s.Labels)
	}
	for name, values := range s.Columns {
		if name == data.ImagesColumn || name == data.LabelsColumn {
			return parts.KeyErrorf("columns", "got the name %q: write value = %q or labels = %q", name, values[0], values[0])
		}
		if len(values) > 1 {
			return parts.KeyErrorf("columns", "%s: got %d values, want one", name, len(values))
		}
	}
	return s.Scale.OfValues()
}

// FitsScale implements [data.ScaleFitter]. Samples that the run does not replace have the scale of their own data set; true if the run cannot be
// opened.
func (s *Answers) FitsScale() bool {
	switch {
	case len(s.Scale) > 0:
		return s.Scale.Fitted()
	case s.Value != "":
		return false
	case s.Of != nil:
		return data.ScaleIsFitted(s.Of.Source)
	}
	run, err := s.open(nil)
	if err != nil {
		return true
	}
	defer run.Close()
	return data.ScaleIsFitted(run.source)
}

// WithInner implements [data.Outer]. Without the key `of` it returns s unchanged.
func (s *Answers) WithInner(other func(data.Source) data.Source) data.Source {
	if s.Of == nil {
		return s
	}
	placed := *s
	placed.Of = &data.Inner{Name: s.Of.Name, Source: other(s.Of.Source)}
	return &placed
}

// Origin returns where the data come from: there is nothing to download.
func (*Answers) Origin() data.Origin { return data.OwnFiles }

// asked is an open run, with the data set whose samples the run reads.
type asked struct {
	*Coder
	source data.Source
	dirs   data.Dirs
	own    bool // the run reads the samples of its own data set
}

func (s *Answers) open(dirs data.Dirs) (*asked, error) {
	if err := s.circular(); err != nil {
		return nil, err
	}
	run, trained, err := Open(s.Run, "", 0, false, func() (*train.Trained, error) { return train.Open(s.Run) })
	if err != nil {
		return nil, s.unreadable(err)
	}
	run.Origin = train.Origin(s.Run, trained.Spec.Dataset.Source, nil)
	if s.Of != nil {
		return &asked{run, s.Of.Source, dirs, false}, nil
	}
	return &asked{run, run.Origin.Placed(trained.Spec.Dataset.Source), run.Origin.Dirs(dirs), true}, nil
}

// unreadable returns the error for a run that cannot be opened.
func (s *Answers) unreadable(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, folder.ErrNotRun) {
		return &data.Error{Dataset: answersName, Path: s.Run, Problem: data.NotFound, Hint: "train that run first; paths are relative to the folder in which the command is run"}
	}
	return &data.Error{Dataset: answersName, Path: s.Run, Err: err}
}

// circular returns an error for a run that was trained on its own values, which can happen if a folder is overwritten. It
// reads the declarations as tables, because checking them would open the runs.
func (s *Answers) circular() error {
	at, err := filepath.Abs(s.Run)
	if err == nil && readsItself(at, nil) {
		err = &data.Error{Dataset: answersName, Path: s.Run, Problem: "it was trained on its own values", Hint: "train the run that gives the values in another folder"}
	}
	return err
}

// readsItself reports whether the data set of a run consists of values of the run itself, or of one of the runs below.
func readsItself(run string, below []string) bool {
	if slices.Contains(below, run) {
		return true
	}
	path := filepath.Join(run, folder.Config)
	text, err := regular.ReadUnlinked(path)
	if err != nil { // opening the run reports it
		return false
	}
	root, _ := table.Parse(table.NewSource(path, string(text)))
	models := root.Child("model")
	if !models.IsTable() || len(models.Keys) == 0 {
		return false
	}
	for d := models.Child(models.Keys[0]).Child("dataset"); d.IsTable(); d = d.Child("of") {
		if name, _ := d.Child("name").Text(); name != answersName {
			return false
		}
		of, _ := d.Child("run").Text()
		placed := train.Origin(run, &Answers{}, nil).Placed(&Answers{Run: of}).(*Answers)
		if at, err := filepath.Abs(placed.Run); err == nil && readsItself(at, append(slices.Clone(below), run)) {
			return true
		}
	}
	return false
}

// wanted returns an error if the run does not compute a value that the keys name.
func (s *Answers) wanted(run *Coder) error {
	known := append(run.Values(), run.Named()...)
	lacks := func(key, value string, of []string) error {
		if value == "" || slices.Contains(of, value) {
			return nil
		}
		return &data.Error{Dataset: answersName, Path: s.Run, Problem: fmt.Sprintf("%s: got %q, want one of %s", key, value, table.Quoted(of))}
	}
	err := errors.Join(lacks("value", s.Value, known))
	if heads := run.ClassHeads(); err == nil {
		err = lacks("labels", s.Labels, heads)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
		if err == nil {
			err = lacks("columns."+name, s.Columns[name][0], known)
		}
	}
	if err == nil && s.Tokens {
		err = s.ofTokens(run)
	}
	return err
}

// shapeOf returns the shape of a value of a sample.
func (s *Answers) shapeOf(run *Coder, value string) []int {
	shape := run.ShapeOf(value)
	if s.Tokens && len(shape) > 1 {
		return shape[1:]
	}
	return shape
}

func (s *Answers) Shape(dirs data.Dirs) ([]int, bool) {
	run, err := s.open(dirs)
	if err != nil {
		return nil, false
	}
	defer run.Close()
	if s.Value == "" {
		return run.source.Shape(run.dirs)
	}
	shape := s.shapeOf(run.Coder, s.Value)
	return shape, len(shape) > 0 && s.wanted(run.Coder) == nil
}

// HasTest implements [data.Tester]. It is true if the run cannot be opened, so that the error is that of the run, which loading
// reports.
func (s *Answers) HasTest() bool {
	run, err := s.open(nil)
	if err != nil {
		return true
	}
	defer run.Close()
	return data.HasTest(run.source)
}

func (s *Answers) Classes(dirs data.Dirs) (n int, ok bool) {
	run, err := s.open(dirs)
	if err != nil {
		return 0, false
	}
	defer run.Close()
	if s.Tokens {
		n = len(followers(run.Coder))
		return n, n > 0
	}
	if s.Labels == "" {
		return data.Classes(run.source, run.dirs)
	}
	n = len(run.HeadClasses(s.Labels))
	return n, n > 0
}

func (s *Answers) Unlabelled() bool {
	run, err := s.open(nil)
	if err != nil {
		return false
	}
	defer run.Close()
	return s.Labels == "" && !s.Tokens && data.IsUnlabelled(run.source)
}

func (s *Answers) Predictor() string {
	if s.Labels == "" {
		return ""
	}
	return s.Run
}

func (s *Answers) DescribeColumns(dirs data.Dirs) (list []data.Column) {
	run, err := s.open(dirs)
	if err == nil {
		defer run.Close()
		for _, c := range data.ColumnsOf(run.source, run.dirs) {
			if s.Columns[c.Name] == nil && !s.Tokens {
				list = append(list, c)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Columns)) {
		c := data.Column{Name: name}
		if err == nil && s.wanted(run.Coder) == nil {
			c.Shape, c.Type = s.shapeOf(run.Coder, s.Columns[name][0]), data.Float32
		}
		list = append(list, c)
	}
	return list
}

func (s *Answers) Load(ctx context.Context, dirs data.Dirs, need data.Need) (*data.Set, error) {
	run, err := s.open(dirs)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	if err := s.wanted(run.Coder); err != nil {
		return nil, err
	}
	set, err := s.read(ctx, run, need)
	if err != nil {
		return nil, err
	}
	sum, err := run.sum()
	if err != nil {
		return nil, err
	}
	out := *set
	out.Name = answersName
	out.Files = append([]data.File{{Path: s.Run, SHA256: sum, Note: s.corrected(run.Coder)}}, set.Files...)
	if s.Value != "" {
		out.Shape, out.Parts, out.Kinds = s.shapeOf(run.Coder, s.Value), nil, nil
	}
	if s.Value != "" || len(s.Scale) > 0 {
		out.Scale = s.Scale
	}
	if s.Labels != "" {
		out.Classes = run.HeadClasses(s.Labels)
	}
	answered := s.answered
	if s.Tokens {
		answered, out.Classes, out.Tokens = s.atTokens, followers(run.Coder), nil
	}
	for _, images := range []**data.Images{&out.Train, &out.Test} {
		if *images, err = answered(ctx, run.Coder, *images, need.Columns); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// read loads the samples that the run reads, with the columns that the run or the model needs.
func (s *Answers) read(ctx context.Context, run *asked, need data.Need) (*data.Set, error) {
	inner := need
	inner.Columns = slices.DeleteFunc(slices.Clone(need.Columns), func(name string) bool { return s.Columns[name] != nil })
	for _, c := range data.InFiles(run.InFile(s.reads(run.Coder, need.Columns))) {
		if c.Name != data.LabelsColumn && !slices.Contains(inner.Columns, c.Name) {
			inner.Columns = append(inner.Columns, c.Name)
		}
	}
	set, err := data.Load(ctx, run.source, run.dirs, inner)
	if err != nil {
		return nil, err
	}
	if run.own {
		err = run.Origin.Changed(set.Name, set.Files)
	}
	if err == nil && !slices.Equal(set.Shape, run.Shape()) {
		err = &data.Error{Dataset: answersName, Path: s.Run, Problem: fmt.Sprintf("the run reads samples of shape %v, those of %s have %v", run.Shape(), set.Name, set.Shape)}
	}
	return set, err
}

// values lists the values of the run that a model with these columns reads, except the values that replace the labels.
func (s *Answers) values(columns []string) (names []string) {
	if s.Value != "" {
		names = append(names, s.Value)
	}
	for _, name := range columns {
		if of := s.Columns[name]; of != nil && !slices.Contains(names, of[0]) {
			names = append(names, of[0])
		}
	}
	return names
}

// reads returns descriptions of the columns from which the run computes the values that the model reads.
func (s *Answers) reads(run *Coder, columns []string) (list []data.Column) {
	for _, value := range s.values(columns) {
		list = append(list, run.Columns(value)...)
	}
	if s.Labels != "" {
		list = append(list, run.Columns(s.Labels)...)
		list = append(list, run.DecisionColumns(s.Labels)...)
	}
	return list
}

// The number of samples, and the least number of values of which fewer samples are computed together.
const (
	block       = 256
	blockValues = 1 << 21
)

// inBlocks calls f with the columns of blocks of samples, from which the coder computes a value, see [Coder.Given].
func (c *Coder) inBlocks(ctx context.Context, samples *data.Images, reads []data.Column, f func(given map[string][]float32) error) error {
	block := min(block, max(1, blockValues/samples.Pixels()))
	for from := 0; from < samples.Len(); from += block {
		if err := ctx.Err(); err != nil {
			return err
		}
		indices := lists.Range(from, min(from+block, samples.Len()))
		given, err := c.Given(samples.Subset(indices), reads)
		if err == nil {
			err = f(given)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restored is ValueOf with outputs before all scaling, also of a coder of centred samples.
func (c *Coder) restored(value string, given map[string][]float32) ([]float32, error) {
	values, err := c.ValueOf(value, given)
	if err == nil && value == losses.Output && c.Outputs() != nil {
		c.shift.Undo(values)
	}
	return values, err
}

// ValuesOf returns a value of samples before scaling, row by row, computed from all columns that the value depends on.
func (c *Coder) ValuesOf(ctx context.Context, value string, samples *data.Images) (values []float32, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if samples == nil {
		return nil, fmt.Errorf("run %s: %s: got no samples", c.path, value)
	}
	centred := c.Centred()
	err = centred.inBlocks(ctx, samples, c.Columns(value), func(given map[string][]float32) error {
		more, err := centred.restored(value, given)
		values = append(values, more...)
		return err
	})
	return values, err
}

// answered returns the samples with the values of the run added.
func (s *Answers) answered(ctx context.Context, run *Coder, images *data.Images, columns []string) (*data.Images, error) {
	if images == nil {
		return nil, nil
	}
	values, labels := map[string][]float32{}, []int(nil)
	for _, name := range s.values(columns) {
		values[name] = make([]float32, 0, images.Len()*volume.Of(run.ShapeOf(name)))
	}
	centred := run.Centred()
	err := centred.inBlocks(ctx, images, s.reads(run, columns), func(given map[string][]float32) error {
		for name := range values {
			more, err := centred.restored(name, given)
			if err != nil {
				return err
			}
			values[name] = append(values[name], more...)
		}
		if s.Labels == "" {
			return nil
		}
		p, err := centred.PredictFrom(s.Labels, given)
		if err == nil {
			labels = append(labels, p.Labels...)
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, s.uncomputed(err)
	}
	var further []*data.Values
	for _, name := range columns {
		if of := s.Columns[name]; of != nil {
			further = append(further, data.FloatColumn(name, run.ShapeOf(of[0]), values[of[0]]))
		}
	}
	other, err := images.WithColumns(further...)
	if err == nil && s.Value != "" {
		if other, err = other.WithValues(run.ShapeOf(s.Value), values[s.Value]); err == nil {
			other.Downstream = s.downstream(run)
		}
	}
	if err == nil && s.Labels != "" {
		other = other.WithLabels(labels)
	}
	return other, s.uncomputed(err)
}

// downstream returns a function that computes the first head of classes of the run from samples in place of the value; nil for a run
// without classes, or where the value alone does not determine them.
func (s *Answers) downstream(run *Coder) func([]int, []float32, func(int, []float32) error) error {
	heads := run.ClassHeads()
	if len(heads) == 0 || !run.follows(s.Value, heads[0]) {
		return nil
	}
	return func(rows []int, samples []float32, do func(i int, logits []float32) error) error {
		run, err := s.open(nil)
		if err != nil {
			return err
		}
		defer run.Close()
		logits, err := run.after(s.Value, heads[0], samples)
		for i := range rows {
			if err != nil {
				break
			}
			classes := len(logits) / len(rows)
			err = do(i, logits[i*classes:(i+1)*classes])
		}
		return s.uncomputed(err)
	}
}

// follows reports whether a value determines a head alone.
func (c *Coder) follows(value, head string) bool {
	layout := c.trained.Layout
	return layout.DependsOn(head, value) && len(layout.Sources(head, value)) == 0
}

// after returns a head of classes, computed from a value of the model alone.
func (c *Coder) after(value, head string, rows []float32) (logits []float32, err error) {
	err = c.Do(func(m metrics.Coder) error {
		logits, err = m.(*graph.Coder).After(value, head, rows) // no other model has heads of classes
		return err
	})
	return logits, err
}

// uncomputed returns the error for a value that the run cannot compute.
func (s *Answers) uncomputed(err error) error {
	if err == nil {
		return nil
	}
	return &data.Error{Dataset: answersName, Path: s.Run, Err: err}
}

// corrected says which calibrations and thresholds the values include, and how to remove them; "" if there are none.
func (s *Answers) corrected(run *Coder) string {
	fitted := run.PostHoc()
	if fitted == "" {
		return ""
	}
	return fmt.Sprintf("its values include what was fitted to its heads (%s): `tessera calibrate %s` with the option remove removes that", fitted, s.Run)
}

// sum returns a checksum that identifies the values of the run: that of its parameters, combined with that of its calibrations and
// thresholds if there are any.
func (c *Coder) sum() (string, error) {
	heads, digest := c.Heads(), c.trained.Digest
	if len(heads) == 0 {
		return digest, nil
	}
	fitted, err := json.Marshal(heads)
	sum := sha256.Sum256(append([]byte(digest), fitted...))
	return hex.EncodeToString(sum[:]), err
}
