// Package show makes the documents about runs: what `tessera train`, `eval`, `report`, `runs` and their JSON say of a run is computed
// here, once, by [RunDocument]. A new fact is one line of runFacts.
package show

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
	"tessera"
	"tessera/apps/show/doc"
	"tessera/classical"
	"tessera/config"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/losses"
)

// subject is what the facts of a run are read from.
type subject struct {
	status  train.Status
	model   *config.Model // nil if it cannot be read
	history []train.Epoch
	epoch   int                // after which the shown parameters were stored
	run     *tessera.Run       // nil where the parameters are not read
	report  *evaluation.Report // nil where nothing was measured
}

// runFact is one fact of a run. A value of nil, "" or NaN is left out.
type runFact struct {
	key, title string // a fact without a title is for programs only
	minor      bool   // left out on a terminal
	of         func(s *subject) any
}

// runFacts are all facts of a run, in the order in which they are shown.
var runFacts = []runFact{
	{"run", "run", false, func(s *subject) any { return s.status.Run }},
	{"model", "model", false, func(s *subject) any { return named(s.model) }},
	{"kind", "kind", false, func(s *subject) any { return KindOf(s.model, s.units()) }},
	{"encoder", "encoder", true, func(s *subject) any { return encoderText(s.model, inputText(s.status.Shape), s.units()) }},
	{"decoder", "decoder", true, func(s *subject) any { return decoderText(s.model, NounOf(s.status.Shape)) }},
	{"heads", "heads", true, func(s *subject) any { return headTexts(s.model) }},
	{"objective", "objective", true, func(s *subject) any { return objectiveText(s.model, true) }},
	{"constraints", "constraints", true, func(s *subject) any { return constraintText(s.model) }},
	{"dataset", "dataset", false, func(s *subject) any { return s.given() }},
	{"data", "data", false, func(s *subject) any { return DataText(s.model, NounOf(s.status.Shape)) }},
	{"training", "training", false, func(s *subject) any { return trainingText(s.model) }},
	{"state", "state", false, func(s *subject) any { return doc.Shown{Value: s.status.State, Text: stateText(s)} }},
	{"epoch", "", false, func(s *subject) any { return s.status.Epoch }},
	{"epochs", "", false, func(s *subject) any { return s.status.Epochs }},
	{"best_epoch", "", false, func(s *subject) any { return s.best() }},
	{"seconds", "trained for", false, func(s *subject) any { return s.seconds() }},
	{"samples_per_second", "samples per second", false, func(s *subject) any { return s.speed() }},
	{"loss", "loss", true, func(s *subject) any { return s.lossText() }},
	{"players", "losses of players", false, func(s *subject) any { return s.players() }},
	{"restarts", "restarts", false, func(s *subject) any { return s.restarts() }},
	{"post_hoc", "post-hoc", false, func(s *subject) any { return s.postHoc() }},
	{"measured_on", "measured on", true, func(s *subject) any { return s.measuredOn() }},
}

// RunDocument returns the document about a run: its facts, what the reader should know, the measured numbers and the tables of
// metrics. In JSON the members of the report are those of [evaluation.Report]. report is nil if nothing was measured.
// named says that its metrics were selected by name: those without a value are shown too.
func RunDocument(run *tessera.Run, report *evaluation.Report, named bool) *doc.Document {
	s := &subject{status: train.StatusOf(run.Path), model: run.Model, epoch: run.Epoch, run: run, report: report}
	s.status.Run, s.status.Shape = run.Path, run.Shape()
	s.history, _ = train.ReadHistory(run.Path) // a damaged file leaves the epochs before the damage
	d := &doc.Document{}
	facts := &doc.Facts{Facts: s.facts()}
	d.Add(facts)
	if report == nil {
		d.Add(Parts(context.Background(), run))
		return d
	}
	d.Data = report
	report.Each(func(key string, value any) { // settings of metrics
		if _, measured := report.Find(key); !measured && value != nil {
			facts.Add(key, key, value)
		}
	})
	for _, note := range remarks(run, report) {
		d.Add(note)
	}
	d.Add(&doc.Group{Title: "Numbers", Blocks: Numbers(report, named)})
	for _, t := range MetricTables(report) {
		d.Add(t)
	}
	d.Add(Parts(context.Background(), run))
	return d
}

func (s *subject) facts() (list []doc.Fact) {
	for _, f := range runFacts {
		if s.model == nil {
			break
		}
		value := f.of(s)
		if v, ok := value.(float64); value != nil && value != "" && !(ok && math.IsNaN(v)) {
			list = append(list, doc.Fact{Key: f.key, Title: f.title, Value: value, Minor: f.minor})
		}
	}
	return list
}

// units returns the number of units of the code; 0 if it is unknown or varies.
func (s *subject) units() int {
	if s.run == nil {
		return 0
	}
	return s.run.Units()
}

// restarts says of how many trainings the run is the best one.
func (s *subject) restarts() any {
	r, err := train.ReadRestarts(s.status.Run)
	if err != nil || r == nil { // a damaged file is no part of the model
		return nil
	}
	return doc.Shown{Value: r.Seeds, Text: r.String()}
}

// best returns the epoch that early stopping kept.
func (s *subject) best() any {
	if _, err := os.Stat(filepath.Join(s.status.Run, folder.Best)); err != nil || s.run == nil {
		return nil
	}
	return s.epoch
}

// values returns a metric of every epoch that has it.
func (s *subject) values(metric string) (list []float64) {
	for _, e := range s.history {
		if v, ok := e.Values.Number(metric); ok {
			list = append(list, v)
		}
	}
	return list
}

// speed returns the harmonic mean of the samples per second of the epochs, which are equally long; nil before the first epoch.
func (s *subject) speed() any {
	values := s.values("images_per_second")
	if len(values) == 0 {
		return nil // gonum panics without values
	}
	speed := stat.HarmonicMean(values, nil)
	text := numeral.Float(speed)
	if speed >= 1000 {
		text = numeral.Count(int(math.Round(speed)))
	}
	return doc.Shown{Value: speed, Text: text}
}

// lossText says how the loss changed.
func (s *subject) lossText() any {
	values := s.values("loss")
	if len(values) == 0 {
		return nil
	}
	last := values[len(values)-1]
	if len(values) == 1 {
		return last
	}
	return doc.Shown{Value: last, Text: fmt.Sprintf("from %s to %s", numeral.Float(values[0]), numeral.Float(last))}
}

// players lists the losses of the players in the last epoch; nil without players.
func (s *subject) players() any {
	if len(s.history) == 0 {
		return nil
	}
	var texts []string
	for _, v := range s.history[len(s.history)-1].Values {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(v.Name, train.PlayerKey), ".loss"); ok && strings.HasPrefix(v.Name, train.PlayerKey) && v.Missing == "" {
			texts = append(texts, name+" "+numeral.Float(v.Number))
		}
	}
	if texts == nil {
		return nil
	}
	return strings.Join(texts, ", ")
}

// seconds returns how long the training took, without interruptions; nil if it was not recorded.
func (s *subject) seconds() any {
	if sum := lists.Sum(s.values("seconds")); sum > 0 {
		return doc.Seconds(sum)
	}
	return nil
}

// given names the samples of a measurement that are not of the data set.
func (s *subject) given() any {
	if s.report == nil || s.report.Split != string(evaluation.Given) {
		return nil
	}
	return s.report.Dataset
}

func (s *subject) postHoc() any {
	switch {
	case s.report != nil:
		return s.report.PostHoc
	case s.run != nil:
		return s.run.PostHoc()
	}
	return nil
}

func (s *subject) measuredOn() any {
	if s.report == nil {
		return nil
	}
	return MeasuredOn(s.model, s.report, NounOf(s.status.Shape))
}

// MeasuredOn describes the samples of a report: "12 validation images of bars (they also chose the epoch)".
func MeasuredOn(m *config.Model, r *evaluation.Report, noun string) string {
	split, note := r.Split+" ", r.Note
	switch r.Split {
	case "train":
		split = "training "
	case "all":
		split = ""
		if plan := evaluation.PlanOf(m); plan.Fitted == "" {
			note = plan.Note
		}
	}
	text := fmt.Sprintf("%s %s%ss of %s", numeral.Count(r.Images), split, noun, DatasetName(m.Dataset))
	if r.Split == string(evaluation.Given) {
		text = fmt.Sprintf("%s of %s", numeral.Of(r.Images, noun), r.Dataset)
	}
	if note != "" {
		text += " (" + note + ")"
	}
	return text
}

// ModelFacts describes a declaration. input describes the input of the encoder in words. The weights of terms are included if
// weights is true.
func ModelFacts(m *config.Model, input string, weights bool) []doc.Fact {
	f := &doc.Facts{}
	noun, _, _ := strings.Cut(input, " ")
	f.Add("model", "model", named(m))
	f.Add("kind", "kind", KindOf(m, 0))
	f.Add("encoder", "encoder", encoderText(m, input, 0))
	f.Add("decoder", "decoder", decoderText(m, noun))
	f.Add("heads", "heads", headTexts(m))
	f.Add("objective", "objective", objectiveText(m, weights))
	f.Add("constraints", "constraints", constraintText(m))
	return f.Facts
}

func named(m *config.Model) any {
	return doc.Shown{Value: m.Name, Text: strings.TrimSuffix(m.Name+": "+m.About, ": ")}
}

// KindOf says what a model is. units is the number of its units, 0 if unknown.
func KindOf(m *config.Model, units int) string {
	kind := "encoder"
	switch {
	case m.Training().Method != "":
		kind = m.Kind + ", a baseline"
		if s, ok := m.Baseline.(*classical.MatrixFactorisation); ok && units > 0 {
			units = s.Components // of the units, one may be the bias of the row
		}
		if units > 0 {
			kind += " with " + numeral.Of(units, "component")
		}
	case m.TakesTurns() || len(m.Players) > 1:
		kind = "players with opposed objectives"
	case has(m.Encoder, "diffuse"):
		kind = "diffusion model"
	case m.Language() != nil && m.Language().Shift == 0:
		kind = "masked model of language"
	case m.Language() != nil:
		kind = "model of language"
	case has(m.Encoder, "rbm"):
		kind = "restricted Boltzmann machine"
	case len(m.Decoder) > 0 && (has(m.Encoder, "gaussian") || has(m.Encoder, "rectified_gaussian")):
		kind = "variational auto-encoder"
	case len(m.Decoder) > 0 && has(m.Encoder, "vq"):
		kind = "auto-encoder with a code book"
	case len(m.Decoder) > 0 && has(m.Encoder, "mask_patches"):
		kind = "masked auto-encoder"
	case len(m.Decoder) > 0:
		kind = "auto-encoder"
	case Classifies(m):
		kind = "classifier"
	case slices.Contains(m.FirstMeasures(), "rmse"):
		kind = "regression"
	case m.Pair() != nil:
		kind = "two encoders of one space"
	case len(m.Views) > 0:
		kind = "joint embedding of views"
	case len(m.Heads) > 0:
		kind = "encoder with heads"
	}
	return kind
}

func has(list []config.Layer, kind string) bool {
	return slices.ContainsFunc(list, func(l config.Layer) bool { return l.Kind == kind })
}

// chain writes layers as a path.
func chain(from string, layers []config.Layer, to ...string) string {
	steps := []string{from}
	for _, l := range layers {
		steps = append(steps, l.Kind)
	}
	return strings.Join(append(steps, to...), " → ")
}

func encoderText(m *config.Model, input string, units int) string {
	if len(m.Encoder) == 0 {
		return ""
	}
	code := losses.Code
	if units > 0 {
		code += " of " + numeral.Of(units, "number")
	}
	return chain(input, m.Encoder, code)
}

func decoderText(m *config.Model, noun string) string {
	if len(m.Decoder) == 0 {
		return ""
	}
	return chain(losses.Code, m.Decoder, noun)
}

// headTexts returns one text for each head, nil without heads.
func headTexts(m *config.Model) any {
	list := lists.Map(slices.Sorted(maps.Keys(m.Heads)), func(name string) string {
		return name + ": " + chain(strings.Join(m.Heads[name].From, ", "), m.Heads[name].Layers)
	})
	if list == nil {
		return nil
	}
	return doc.Shown{Value: list, Text: strings.Join(list, "; ")}
}

func constraintText(m *config.Model) string {
	kept := lists.Map(m.Constraints, func(c config.Constraint) string { return c.Kind + " on " + c.On })
	return strings.Join(kept, ", ")
}

func trainingText(m *config.Model) string {
	if m.Training().Method != "" {
		return ""
	}
	return fmt.Sprintf("%s, seed %d", ScheduleText(m), m.Train.Seed)
}

// inputText describes the input of an encoder: "image of 28 × 28 pixels".
func inputText(shape []int) string {
	if len(shape) == 0 {
		return "input"
	}
	return NounOf(shape) + " of " + shapeText(shape)
}
