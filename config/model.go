// Package config reads models.toml. It decodes strictly against the registered parts, reports errors with a caret,
// resolves inheritance, applies --set, and writes models with all defaults.
//
// The structs below define the language. A field tagged `toml` is a key. A field tagged `part:"kind"` contains the
// registered part that the key "kind" names; the keys of the part belong to the same table. A new table of a model is
// one new field of [Model]. A new table of the file is one new entry of topLevel.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/classical"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/constraints"
	"tessera/data"
	"tessera/data/augment"
	"tessera/hooks"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// Autoencoder is the default kind of a model.
const Autoencoder = "autoencoder"

// Model is one checked declaration with all defaults, whose layers are placed: see [Model.Layout]. It must not be changed: a run stores
// what was checked. [Model.With] returns a changed copy.
type Model struct {
	Name        string
	Kind        string                `toml:"kind" doc:"an auto-encoder by default, or a baseline"`
	About       string                `toml:"about" doc:"one-line description"`
	Extends     string                `toml:"extends" doc:"parent model, from which this one inherits"`
	Dataset     Dataset               `toml:"dataset" doc:"data set: a name, or a table"`
	Encoder     []Layer               `toml:"encoder" of:"autoencoder" doc:"from an image to its code"`
	Decoder     []Layer               `toml:"decoder" of:"autoencoder" none:"true" doc:"from a code to an image; one linear dense layer by default; [] for no decoder"`
	Heads       map[string]Head       `toml:"head" of:"autoencoder" doc:"further outputs by name, each computed from another value"`
	Drawn       map[string]Drawn      `toml:"column" of:"autoencoder" doc:"columns by name that are drawn by the seed in every step, such as noise and masks"`
	Views       []View                `toml:"view" of:"autoencoder" doc:"random augmentations of the images: one for both views, or one for each"`
	Losses      []Loss                `toml:"loss" of:"autoencoder" doc:"the terms of the objective; mse by default"`
	Constraints []Constraint          `toml:"constraint" of:"autoencoder" doc:"projections of the parameters after every step"`
	Freeze      []string              `toml:"freeze" of:"autoencoder" doc:"globs over parameter paths; matching parameters keep their initial values"`
	Start       *Start                `toml:"start" of:"autoencoder" doc:"run or file from which the initial parameters are copied"`
	Optimizer   Optimizer             `toml:"optimizer" of:"autoencoder" doc:"the update rule; adam by default"`
	Players     map[string]Player     `toml:"player" of:"autoencoder" doc:"groups of parameters by name, each with its loss terms and optimizer; one for all parameters by default"`
	Hooks       map[string]hooks.Hook `toml:"hook" of:"autoencoder" doc:"procedures around the training steps, by their names: [model.NAME.hook.average]"`
	Train       Train                 `toml:"train" doc:"training schedule"`
	Baseline    classical.Method      `part:"kind,or=autoencoder"` // settings of a baseline, nil for auto-encoders

	origin *table.Origin // positions of the tables in the file; nil for a model made in Go
	tree   *table.Node   // the merged table that was decoded; nil for a model that was not checked
	layout *Layout       // the placed layers; nil for a model that was not checked
	dirs   data.Dirs     // folders of the data sets when the model was read

	trained  bool              // the model is the declaration of a run
	notes    []string          // keys that the model does not inherit
	settings map[string]string // what was checked: every key with its value, see [Model.Verify]

	columns []data.Column // columns of the data set other than images and labels, if known; see For
}

// Text returns the declaration as TOML, with all defaults and resolved inheritance: the config.toml of a run. It
// declares only this model, and reading it gives an equal model. It is empty for no model (nil).
func (m *Model) Text() []byte {
	if m == nil {
		return nil
	}
	n, _ := m.filled() // cannot fail, because the parts are registered
	return n.TOML("model", m.Name)
}

// filled returns the table of a model with every default.
func (m *Model) filled() (*table.Node, error) {
	omit := []string{"extends"}
	if m.About == "" {
		omit = append(omit, "about")
	}
	return (&table.Writer{Language: language, Origin: m.origin, Kind: m.Kind}).Tree(m.sized(m.layout), omit...)
}

// Verify returns an error for a model that was not checked, or that was changed after its check. The config.toml of its
// run would be missing or wrong. Images in memory may have been replaced by others.
func (m *Model) Verify() error {
	if m.tree == nil {
		return fmt.Errorf("model %q is not checked: make it with tessera.Load, tessera.Declare or package config, which fill in every default", m.Name)
	}
	changed := func(what any) error {
		return fmt.Errorf("model %q was changed after it was checked (%v): give changes to [config.File.Model], [config.Complete] or [config.Model.With]", m.Name, what)
	}
	is, err := m.filled()
	if err != nil {
		return changed(err)
	}
	_, memory := m.Dataset.Source.(*data.Memory)
	for _, d := range differing(m.settings, keysOfTable(m.Name, is)) {
		if !memory || !strings.HasPrefix(d.Key, "dataset.") {
			return changed(d)
		}
	}
	return nil
}

// With returns a checked copy of the model with some changes. It returns the same errors as [File.Model].
func (m *Model) With(changes ...Set) (*Model, error) {
	return ofTable(m.Name, m.tree, m, changes)
}

// ofTable checks the model of a table. Images in memory, the folders of data sets and Trained are those of another model.
func ofTable(name string, tree *table.Node, like *Model, changes []Set) (*Model, error) {
	root, models := table.NewTable(), table.NewTable()
	root.Put("model", models)
	models.Put(name, tree.Only(func(key string) bool { return key != "extends" })) // what it inherits is merged already
	f := newFile(table.NewSource(name, ""), root)
	f.Dirs, f.Trained = like.dirs, like.trained
	f.images, _ = like.Dataset.Source.(*data.Memory)
	return f.Model(name, changes...)
}

// Sets reports whether the declaration sets a key of the model or of one of its parts: "train.epochs", "iterations". It
// returns false for a default value, and for a model made in Go.
func (m *Model) Sets(key string) bool {
	at := strings.LastIndex(key, ".")
	t := m.origin.Table(key[:max(at, 0)])
	return t != nil && t.Child(key[at+1:]) != nil
}

// Dataset is a declared data set and the selection of its images.
type Dataset struct {
	Name   string      `toml:"name" doc:"the data set"`
	Source data.Source `part:"name,short"`
	data.Selection

	reads []string // names of the columns other than images and labels that the model reads
}

// Need returns the data that the fit and the validation of the model read: the splits, and the columns other than
// images and labels.
func (d *Dataset) Need() data.Need { return d.Selection.Need().WithColumns(d.reads) }

// NeedOf returns the data that the measurement of the model on a split reads.
func (d *Dataset) NeedOf(split data.Split) data.Need {
	return data.NeedOf(d.Source, d.Selection, split).WithColumns(d.reads)
}

// Layer is one element of an encoder or decoder. Its path consists of the list and the index: "encoder.0".
type Layer struct {
	Kind  string       `toml:"kind" doc:"the layer"`
	Name  string       `toml:"name" optional:"true" doc:"name by which other keys can refer to the layer instead of its path (encoder.6)"`
	From  Names        `toml:"from" doc:"name of the value that it reads instead of the output of the layer before it (previous), or a list of names, concatenated along the last axis"`
	Share string       `toml:"share" optional:"true" doc:"path of the layer whose parameters it uses: encoder.0; both must have parameters of equal names and shapes"`
	Layer layers.Layer `part:"kind"`
}

// Head is a stack of layers in addition to encoder and decoder. It computes a value, named after the head, from other
// values. Its parameters are "head.NAME.0.weight", ...
type Head struct {
	From   Names   `toml:"from" doc:"what it reads: code, output, another head, images or the output of a layer by its path (encoder.1), or a list, concatenated along the last axis"`
	Layers []Layer `toml:"layers" doc:"in order; the units of the last one default to the number of classes if a loss compares the head with labels" required:"true"`
}

// View declares the augmentations of one view of an image, or of both views.
type View struct {
	Augment []augment.Augmentation `toml:"augment" doc:"applied in order; an empty list leaves the image unchanged"`
}

// Loss is one weighted term of the objective.
type Loss struct {
	Kind    string        `toml:"kind" doc:"the term"`
	On      string        `toml:"on" doc:"value that the term reads: output, code, a head, atoms, or a glob over parameter paths"`
	Teacher string        `toml:"teacher" optional:"true" doc:"name of the hook whose parameters are the teacher of a term that reads one; teacher by default"`
	Weight  losses.Weight `toml:"weight" bare:"constant.value" doc:"factor of the term: a number or a schedule"`
	Loss    losses.Loss   `part:"kind"`

	Name         string `toml:"name" optional:"true" doc:"name of the term in metrics and for players; by default its kind, or kind.2, ... if the kind is repeated"`
	Against      string `toml:"against" optional:"true" doc:"column or value that the term compares with: images by default, for classes labels"`
	Mask         string `toml:"mask" optional:"true" doc:"column or value that is 1 for the entries that count and 0 for others, or a weight in [0,1] for each; or one number for each sample"`
	Optional     bool   `toml:"optional" optional:"true" doc:"leaves the term out for samples for whose shape it is not defined, such as vectors for a term on neighbouring pixels"`
	SampleWeight string `toml:"sample_weight" optional:"true" doc:"column of one number >= 0 for each sample, its weight in the mean"`

	present string // mask of observed entries of the values with which the term compares; "" if no entry can be missing
}

// ClassHead is a value with one logit for each class, and the column of classes with which a term compares it.
type ClassHead struct{ Value, Column string }

// ClassHeads returns the values that terms compare with classes, in the order of the terms. If a value is compared with
// several such columns, the first one is given.
func (m *Model) ClassHeads() (heads []ClassHead) {
	for _, l := range m.Losses {
		if l.Loss == nil || !l.Reads().Classes || slices.ContainsFunc(heads, func(h ClassHead) bool { return h.Value == l.On }) {
			continue
		}
		heads = append(heads, ClassHead{l.On, l.Reads().Against})
	}
	return heads
}

// Reads returns the inputs of the term with its declared keys. Against is the column or value with which the term
// compares. A term with a mask or sample weights depends on the other samples of the batch, because its mean does.
func (l Loss) Reads() losses.Reads {
	r := l.Loss.Reads()
	if r.Against != "" {
		r.Against = cmp.Or(l.Against, r.Against)
	}
	if r.Per == losses.Image && l.counted() {
		r.Per = losses.Means
	}
	return r
}

// counted reports whether the term is a masked or weighted mean.
func (l Loss) counted() bool { return l.Mask != "" || l.SampleWeight != "" || l.present != "" }

// Present returns the mask of observed entries of the values with which the term compares, if the data set has missing
// or hidden entries. It returns "" if no entry can be missing.
func (l Loss) Present() string { return l.present }

// Counted returns the columns and values that weight the mean of the term: the mask of observed entries, and the values
// of the keys mask and sample_weight. It returns none for an unweighted mean.
func (l Loss) Counted() (names []string) {
	for _, name := range []string{l.present, l.Mask, l.SampleWeight} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Refused lists the declared keys that do not apply to the term.
func (l *Loss) Refused() (keys []string) {
	r := l.Loss.Reads()
	if r.Against == "" {
		keys = append(keys, "against")
	}
	if !r.Counts {
		keys = append(keys, "mask", "sample_weight")
	}
	if !r.Teacher {
		keys = append(keys, "teacher")
	}
	if _, ok := l.Loss.(losses.ShapeChecker); !ok {
		keys = append(keys, "optional")
	}
	return keys
}

// Names returns the columns and values that the term reads, each once, in the order of its keys.
func (l Loss) Names() (names []string) {
	r := l.Reads()
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if r.On {
		add(l.On)
	}
	for _, name := range r.Values {
		add(name)
	}
	add(r.Against)
	for _, name := range l.Counted() {
		add(name)
	}
	return names
}

// DefaultTeacher is the name of the teacher hook for terms that do not name one.
const DefaultTeacher = "teacher"

// TeacherName returns the name of the hook that is the teacher of the term.
func (l *Loss) TeacherName() string {
	return cmp.Or(l.Teacher, DefaultTeacher)
}

// Constraint projects every parameter that its glob matches onto a set.
type Constraint struct {
	Kind       string                 `toml:"kind" doc:"the feasible set"`
	On         string                 `toml:"on" doc:"a glob over parameter paths"`
	Constraint constraints.Constraint `part:"kind"`
}

// Optimizer is the update rule with gradient clipping and a learning-rate schedule.
type Optimizer struct {
	Kind      string          `toml:"kind" doc:"the update rule"`
	Optimizer optim.Optimizer `part:"kind"`
	ClipNorm  float64         `toml:"clip_norm" want:">= 0" doc:"largest global norm of the gradient; 0 does not clip"`
	Schedule  Schedule        `toml:"schedule" doc:"factor of the learning rate over the run"`
}

// Schedule scales the learning rate over the run.
type Schedule struct {
	Kind         string         `toml:"kind" doc:"the schedule"`
	Schedule     optim.Schedule `part:"kind"`
	WarmupEpochs float64        `toml:"warmup_epochs" want:">= 0" doc:"number of epochs over which the rate rises linearly from 0"`
}

// Train is the training schedule. A baseline has only the keys seed and checkpoint. Its own keys determine the length
// of the fit.
type Train struct {
	Epochs            int      `toml:"epochs" of:"autoencoder" want:">= 0" doc:"passes over the training images, or several passes each (min_epoch_steps); for lbfgs iterations; 0: the model keeps its initial parameters"`
	Batch             int      `toml:"batch" of:"autoencoder" want:"> 0" doc:"mini-batch size; the last batch of an epoch is smaller; for lbfgs the micro-batch size"`
	MinEpochSteps     int      `toml:"min_epoch_steps" of:"autoencoder" want:">= 0" doc:"least number of steps of an epoch: fewer images are passed over several times in one epoch"`
	Seed              uint64   `toml:"seed" doc:"seed of every random stream: weights, shuffling, noise, splits"`
	Metrics           []string `toml:"metrics" of:"autoencoder" doc:"further metrics of the validation images after every epoch: names and globs as in eval --metrics, \"loss\" for the objective and its terms"`
	CheckpointSeconds float64  `toml:"checkpoint_seconds" want:">= 0" doc:"seconds between checkpoints, which are written at the end of an epoch"`
}

// AtomWeights is the default glob of constraints and weight penalties: the decoder's weights.
const AtomWeights = "decoder.*.weight"

// Defaults sets the selection to the [data.DefaultSelection] of the source. It is called after the keys of the source
// have been read.
func (d *Dataset) Defaults() { d.Selection = data.DefaultSelection(d.Source) }

// Defaults sets the weight to 1, and `on` and `against` to the defaults of the term.
func (l *Loss) Defaults() {
	l.On, l.Against, l.Weight = l.Loss.On(), l.Loss.Reads().Against, &losses.Constant{Value: 1}
}

// Defaults sets `on` to the decoder's weights.
func (c *Constraint) Defaults() { c.On = AtomWeights }

// Defaults sets a constant learning rate.
func (o *Optimizer) Defaults() { o.Schedule = Schedule{Kind: "constant", Schedule: &optim.Constant{}} }

// Defaults sets the default training schedule.
func (t *Train) Defaults() { *t = Train{Epochs: 100, Batch: 128, Seed: 1, CheckpointSeconds: 5} }

// Defaults sets `from` to the code.
func (h *Head) Defaults() { h.From = Names{losses.Code} }

// Check returns an error if the selection needs test images that the data set does not have, or if the training images
// or the validation images would be empty.
func (d *Dataset) Check() error {
	if d.Limit > 0 && d.Validation.Fraction > 0 {
		if _, err := data.HeldOut(d.Validation.Fraction, d.Limit); err != nil {
			return err
		}
	}
	switch {
	case data.HasTest(d.Source):
		return nil
	case d.Fit == "test":
		return part.KeyErrorf("fit", "got \"test\", but %s has no test images", d.Name)
	case d.Validation.Test:
		return part.KeyErrorf("validation", "got \"test\", but %s has no test images: want a fraction in [0,1)", d.Name)
	}
	return nil
}

// Refused lists the keys that do not apply to a full-batch optimizer, whose line search chooses the step length.
func (o *Optimizer) Refused() []string {
	if _, search := o.Optimizer.(optim.Search); search {
		return []string{"clip_norm", "schedule"}
	}
	return nil
}

// Check returns an error if a declared key does not apply to a full-batch optimizer.
func (o *Optimizer) Check() error {
	if o.Refused() == nil {
		return nil
	}
	var wrong []error
	if o.ClipNorm != 0 {
		wrong = append(wrong, part.KeyErrorf("clip_norm", "got %v, but %s clips no gradients: its line search chooses the length of a step", o.ClipNorm, o.Kind))
	}
	if _, constant := o.Schedule.Schedule.(*optim.Constant); o.Schedule.Schedule != nil && !constant || o.Schedule.WarmupEpochs != 0 {
		wrong = append(wrong, part.KeyErrorf("schedule", "%s has no learning rate to schedule: its line search chooses the length of a step", o.Kind))
	}
	return errors.Join(wrong...)
}

// KL returns the target (p) and the weight (beta) of the model's first KL term. ok is false if it has none.
func (m *Model) KL() (target, weight float64, ok bool) {
	for _, l := range m.Losses {
		if kl, is := l.Loss.(*losses.KL); is {
			return kl.Target, l.Weight.At(math.Inf(1)), true
		}
	}
	return 0, 0, false
}

// TermName returns the name of Losses[i] in metrics and taps. It is the value of its key name, or else its kind, with
// ".2", ".3", ... if the kind occurs again.
func (m *Model) TermName(i int) string {
	if m.Losses[i].Name != "" {
		return m.Losses[i].Name
	}
	kind, n := m.Losses[i].Kind, 1
	for _, l := range m.Losses[:i] {
		if l.Kind == kind && l.Name == "" {
			n++
		}
	}
	if n == 1 {
		return kind
	}
	return fmt.Sprintf("%s.%d", kind, n)
}

// Terms lists the names of the loss terms, see [Model.TermName].
func (m *Model) Terms() (names []string) {
	for i := range m.Losses {
		names = append(names, m.TermName(i))
	}
	return names
}

// Canonical returns the name of a model and the settings that differ from their defaults, as text. Models with the same
// training and measurements have equal texts. The text does not depend on the order of keys, the spelling of numbers,
// written defaults or the description. It also stays the same if a later version adds a setting with a default.
func (m *Model) Canonical() []byte {
	return []byte(table.StringText(m.Name) + " " + m.departures(m.sized(m.layout), "extends", "about").String() + "\n")
}

// Departs returns a function that reports whether a setting differs from its default, or names a kind. Its key is dotted, with the index of an
// element of a list: encoder.0.units.
func (m *Model) Departs() func(key string) bool {
	root := m.departures(m, "extends")
	return func(key string) bool {
		n := root
		for name := range strings.SplitSeq(key, ".") {
			if i, err := strconv.Atoi(name); err == nil && i < len(n.Items) {
				n = n.Items[i]
			} else if !n.IsTable() {
				return strings.HasSuffix(key, ".kind") // parts of which only the kind is there
			} else if n = n.Child(name); n == nil {
				return false
			}
		}
		return true
	}
}

// departures returns the settings of a model that differ from the defaults of its kind.
func (m *Model) departures(of *Model, omit ...string) *table.Node {
	defaults, kind := &Model{}, table.NewTable()
	kind.Put("kind", table.NewTable().NewScalar(m.Kind))
	defaults.decode(withDefaults(kind), true, &File{})
	w := &table.Writer{Language: language, Origin: m.origin, Kind: m.Kind}
	n, _ := w.Departures(of, defaults, omit...) // cannot fail, because the parts are registered
	return n
}

// Settings yields every setting of a model, including defaults and the name: the dotted key, in alphabetical order, and
// the value as TOML.
func (m *Model) Settings() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		all := keysOfModel(m)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(key, all[key]) {
				return
			}
		}
	}
}

// LiteralName is the default name of a model made in Go.
const LiteralName = "model"

// Complete checks a model made in Go and returns a copy with all defaults, like [File.Model]. m is not changed. A field
// with the zero value gets its default. To set a zero value (bias = false, weight 0), pass a change:
// ParseSet("encoder.0.bias=false"). Required numbers, such as the last weight of a schedule (losses.Linear), have no
// default: there, zero means 0. Kinds are optional, because the type of a part determines its kind.
//
// Parts must be registered, because the run's config.toml names them. The images of [data.FromFloats] are not copied.
// Errors are [*table.Diagnostics] with the model, the part and the key: `model "m": encoder[0] (dense): units: got -3,
// want an integer > 0`.
func Complete(m *Model, changes ...Set) (*Model, error) {
	if m == nil {
		return nil, errors.New("config: the model is nil")
	}
	name := cmp.Or(m.Name, LiteralName)
	tree, err := (&table.Writer{Language: language, Given: true}).Tree(m)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return ofTable(name, tree, &Model{Dataset: Dataset{Source: m.Dataset.Source}}, changes)
}

// Difference is a key that has different values in two declarations.
type Difference struct {
	Key string // loss.1.weight
	Was string // values as TOML; "" if the key is missing
	Is  string
}

// String prints the key with both values.
func (d Difference) String() string {
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s: got %s, want nothing", d.Key, d.Is)
	case d.Is == "":
		return fmt.Sprintf("%s: got nothing, want %s", d.Key, d.Was)
	}
	return fmt.Sprintf("%s: got %s, want %s", d.Key, d.Is, d.Was)
}

// Differences returns the keys whose values differ between an earlier declaration (was) and a later one (is), sorted,
// including defaults. For models of different kinds it returns only the kind.
func Differences(was, is *Model) (list []Difference) {
	if was.Kind != is.Kind {
		return []Difference{{"kind", strconv.Quote(was.Kind), strconv.Quote(is.Kind)}}
	}
	return differing(keysOfModel(was), keysOfModel(is))
}

// differing returns the keys whose values differ.
func differing(before, after map[string]string) (list []Difference) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if before[key] != after[key] {
			list = append(list, Difference{key, before[key], after[key]})
		}
	}
	return list
}

// keysOfModel lists all keys of a model with their values.
func keysOfModel(m *Model) map[string]string {
	n, _ := m.filled()
	return keysOfTable(m.Name, n)
}

// keysOfTable lists the name and all keys of the table of a model.
func keysOfTable(name string, n *table.Node) map[string]string {
	all := map[string]string{"name": table.StringText(name)}
	n.Leaves("", func(key, value string) { all[key] = value })
	return all
}

// copyOf returns a deep copy of a layer, so that a layout can set numbers of outputs and shapes of borrowed parameters
// without changing the declaration.
func copyOf(l layers.Layer) layers.Layer {
	v := reflect.ValueOf(l)
	if l == nil || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return l
	}
	c := reflect.New(v.Elem().Type())
	c.Elem().Set(v.Elem())
	for i := range c.Elem().NumField() {
		f := c.Elem().Field(i)
		if f.Kind() != reflect.Slice || f.IsNil() || !f.CanSet() || f.Type().Elem() != reflect.TypeFor[layers.Layer]() {
			continue
		}
		list := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
		for k := range f.Len() {
			if inner, ok := f.Index(k).Interface().(layers.Layer); ok {
				list.Index(k).Set(reflect.ValueOf(copyOf(inner)))
			}
		}
		f.Set(list)
	}
	return c.Interface().(layers.Layer)
}

// isNil reports whether an interface is nil or contains a nil pointer.
func isNil(part any) bool {
	v := reflect.ValueOf(part)
	return part == nil || v.Kind() == reflect.Pointer && v.IsNil()
}

// nilText returns "nil", followed by the type if part is a nil pointer.
func nilText(part any) string {
	if part == nil {
		return "nil"
	}
	return fmt.Sprintf("a nil %T", part)
}
