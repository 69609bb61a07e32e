package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/tokens"
	"tessera/internal/train/checkpoint"
	"tessera/layers"
)

// Names of the tensors and metadata that describe the fitted samples in a checkpoint: their scaling as two tensors
// (four for a whitening), and the range of their values before scaling.
const (
	samplesPrefix = "data/"
	rangeKey      = "range"   // JSON; omitted for values in [0,1]
	clipKey       = "clip"    // "true" if scaled values are clipped to [0,1]
	meansKey      = "means"   // JSON: [data.Means]; omitted if there are none
	stepsKey      = "scaling" // JSON: the steps of the scaling; omitted if there are none
	classesKey    = "classes" // JSON: the names of the classes; omitted if there are none, and for models that do not read labels

	rowNamesKey    = "row_names"    // JSON: names of the fitted rows of a sparse matrix; omitted if the names are 0, 1, ...
	columnNamesKey = "column_names" // JSON: names of the columns of a sparse matrix; omitted if the names are 0, 1, ..., and for words
	tokensKey      = "tokens"       // JSON: the fitted vocabulary of texts; omitted for other samples
)

// samples describes the samples to which a model was fitted.
type samples struct {
	scaling *data.Scaling // scaling of the samples; nil for none
	span    [2]float32    // smallest and largest value, before scaling
	means   data.Means    // of the values that no fitted sample lacks
	classes []string      // names of the classes, if the model reads labels and the names are known

	rowNames, columnNames []string // names of the rows and columns of a sparse matrix; nil if the names are 0, 1, ...

	tokens *tokens.Tokenizer // fitted vocabulary of texts; nil for other samples
}

// samplesOf returns a description of the images of a training. The range includes validation images that were held out of the
// training images.
func samplesOf(spec *config.Model, set *data.Set, splits data.Splits) samples {
	sel := spec.Dataset.Selection
	low, high := splits.Fit.Scaled(nil).Range()
	if splits.Validation != nil && !sel.Validation.Test {
		least, most := splits.Validation.Scaled(nil).Range()
		low, high = min(low, least), max(high, most)
	}
	s := samples{scaling: splits.Scaling, span: [2]float32{low, high}, tokens: set.Tokens}
	if spec.Baseline == nil && !spec.Masks() {
		s.means = splits.Fit.Means()
	}
	if spec.ReadsLabels() {
		s.classes = set.Classes
	}
	if splits.Fit.Sparse() {
		s.rowNames, s.columnNames = splits.Fit.RowNames(), splits.Fit.ValueNames()
	}
	if s.tokens != nil { // the names of columns are its words
		s.columnNames = nil
	}
	return s
}

func (s samples) add(f *checkpoint.File) {
	s.scaling.Tensors(func(name string, shape []int, values []float32) {
		f.Tensors = append(f.Tensors, checkpoint.Tensor{Name: name, Shape: shape, Data: values})
	})
	if s.scaling != nil && s.scaling.Clip {
		f.Metadata[clipKey] = "true"
	}
	if s.scaling != nil && len(s.scaling.Steps) > 0 {
		text, _ := json.Marshal(s.scaling.Steps) // finite numbers
		f.Metadata[stepsKey] = string(text)
	}
	if s.span != [2]float32{0, 1} {
		text, _ := json.Marshal(s.span) // two finite numbers cannot fail: other images are refused
		f.Metadata[rangeKey] = string(text)
	}
	if len(s.means) > 0 {
		text, _ := json.Marshal(s.means) // finite numbers
		f.Metadata[meansKey] = string(text)
	}
	if s.tokens != nil {
		text, _ := json.Marshal(s.tokens) // texts and numbers cannot fail
		f.Metadata[tokensKey] = string(text)
	}
	for key, names := range map[string][]string{classesKey: s.classes, rowNamesKey: s.rowNames, columnNamesKey: s.columnNames} {
		if len(names) > 0 {
			text, _ := json.Marshal(names) // texts cannot fail
			f.Metadata[key] = string(text)
		}
	}
}

// storedSamples reads the description from a file. A sample has the given number of values.
func storedSamples(path string, f *checkpoint.File, values int) (s samples, err error) {
	s.span = [2]float32{0, 1}
	if text, ok := f.Metadata[rangeKey]; ok {
		if err := json.Unmarshal([]byte(text), &s.span); err != nil {
			return s, checkpoint.Errorf(path, "damaged: %s: %v", rangeKey, err)
		}
	}
	if text, ok := f.Metadata[meansKey]; ok {
		if err := json.Unmarshal([]byte(text), &s.means); err != nil {
			return s, checkpoint.Errorf(path, "damaged: %s: %v", meansKey, err)
		}
	}
	for key, names := range map[string]*[]string{classesKey: &s.classes, rowNamesKey: &s.rowNames, columnNamesKey: &s.columnNames} {
		if text, ok := f.Metadata[key]; ok {
			if err := json.Unmarshal([]byte(text), names); err != nil {
				return s, checkpoint.Errorf(path, "damaged: %s: %v", key, err)
			}
		}
	}
	if text, ok := f.Metadata[tokensKey]; ok {
		s.tokens = &tokens.Tokenizer{}
		err := json.Unmarshal([]byte(text), s.tokens)
		if err == nil {
			err = s.tokens.Check()
		}
		if err != nil {
			return s, checkpoint.Errorf(path, "damaged: %s: %v", tokensKey, err)
		}
		if len(s.tokens.Names) == values {
			s.columnNames = s.tokens.Names
		}
	}
	tensors := map[string][]float32{}
	for name, size := range map[string]int{data.ShiftName: values, data.FactorName: values, data.RestName: values, data.MixName: values * values, data.UnmixName: values * values} {
		t, ok := f.Tensor(name)
		if !ok {
			continue
		}
		if len(t.Data) != size {
			return s, checkpoint.Mismatchf(path, "does not match its model: %s has %d values, want %d", name, len(t.Data), size)
		}
		tensors[name] = t.Data
	}
	for _, pair := range [][2]string{{data.ShiftName, data.FactorName}, {data.MixName, data.UnmixName}} {
		if (tensors[pair[0]] == nil) != (tensors[pair[1]] == nil) {
			return s, checkpoint.Mismatchf(path, "does not match its model: it has only one of %s and %s", pair[0], pair[1])
		}
	}
	if tensors[data.ShiftName] != nil {
		s.scaling = &data.Scaling{Shift: tensors[data.ShiftName], Factor: tensors[data.FactorName], Rest: tensors[data.RestName], Clip: f.Metadata[clipKey] == "true",
			Mix: tensors[data.MixName], Unmix: tensors[data.UnmixName]}
		if text, ok := f.Metadata[stepsKey]; ok {
			if err := json.Unmarshal([]byte(text), &s.scaling.Steps); err != nil {
				return s, checkpoint.Errorf(path, "%s: %v", stepsKey, err)
			}
		}
		if err := s.scaling.Valid(values); err != nil {
			return s, checkpoint.Mismatchf(path, "does not match its model: %v", err)
		}
	}
	return s, nil
}

// Examine loads the data set of a model as a new training would, or inspects it if its source is a [data.Inspector]. It
// returns the warnings of [Run], and the error that Run would return before its first step: files that are unreadable or do
// not match, values that are probably not intended, missing labels, values for which a loss is not defined.
func Examine(ctx context.Context, spec *config.Model, o Options) (notes []string, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if spec == nil || spec.Dataset.Source == nil {
		return nil, errors.New("train: no model with a data set to examine")
	}
	if inspector, ok := spec.Dataset.Source.(data.Inspector); ok && inspector.Inspects() {
		return inspector.Inspect(ctx)
	}
	set, err := o.load(ctx, &spec.Dataset)
	if err != nil {
		return nil, err
	}
	splits, err := begun(spec.For(set.Shape, set.Columns()), set)
	if err != nil {
		return set.Notes, err
	}
	return slices.Concat(set.Notes, cautions(spec, splits.Fit)), nil
}

// cautions returns the warnings about a model that depend on the fitted samples.
func cautions(spec *config.Model, fit *data.Images) []string {
	list := spec.Unsettled(fit.Len())
	if spec.Baseline != nil && spec.Baseline.Describe().Dense && fit.Zeros() {
		list = append(list, fmt.Sprintf("model %q: %s holds all values of the sparse samples, %s: other factorisations hold their entries alone",
			spec.Name, spec.Kind, numeral.Bytes(4*int64(fit.Len())*int64(fit.Pixels()))))
	}
	if len(spec.Encoder) > 0 {
		d, ok := spec.Encoder[0].Layer.(*layers.Diffuse)
		if low, high := fit.Range(); ok && (float64(low) < d.Centre-d.Range || float64(high) > d.Centre+d.Range) {
			list = append(list, fmt.Sprintf("model %q: encoder[0] (diffuse): the samples have values from %.4g to %.4g, but drawn ones are limited to %.4g to %.4g: set centre and range",
				spec.Name, low, high, d.Centre-d.Range, d.Centre+d.Range))
		}
	}
	return list
}

// begun returns the samples for a training that begins or continues.
func begun(spec *config.Model, set *data.Set) (data.Splits, error) {
	if err := set.Doubt(); err != nil {
		return data.Splits{}, err
	}
	splits, err := set.Split(spec.Dataset.Selection, spec.Train.Seed)
	if err != nil {
		return splits, err
	}
	return splits, usable(spec, set, splits)
}

// usable returns an error if the model cannot be trained on the images.
func usable(spec *config.Model, set *data.Set, splits data.Splits) error {
	if splits.Fit.Len() == 0 {
		return &data.Error{Dataset: set.Name, Problem: "there are no training samples"}
	}
	if err := labelled(spec, set.Name, splits.Fit); err != nil {
		return err
	}
	training := spec.Training()
	if training.Method == "" { // methods decide themselves
		if err := splits.Fit.NoneObserved(); err != nil {
			return &data.Error{Dataset: set.Name, Err: err}
		}
		if place := splits.Fit.NothingKnown(); place != "" {
			return &data.Error{Dataset: set.Name, Problem: place + ": all of the sample's values are missing", Hint: "remove it"}
		}
	}
	if err := grouped(spec, set.Name, splits.Fit); err != nil {
		return err
	}
	if err := spec.Named(set.Name, set.Classes); err != nil {
		return err
	}
	if err := spec.Unlabelled(set.Name, set.Shape, splits.Fit); err != nil {
		return err
	}
	if err := spec.Unusable(set.Name, set.Shape, splits.Fit, splits.Validation, set.Test); err != nil {
		return err
	}
	if !training.Signed {
		if place, v := splits.Fit.FirstBelow(0); place != "" {
			hint := `write scale = "minmax" in the dataset table`
			if strings.Contains(spec.Kind, "nmf") {
				hint += `, or take kind = "semi_nmf", whose atoms have any sign`
			}
			return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("%s: got %v, but %s takes numbers >= 0", place, v, spec.Kind), Hint: hint}
		}
	}
	for _, images := range []*data.Images{splits.Fit, splits.Validation} {
		if images == nil {
			continue
		}
		low, high := images.Range()
		if v := float64(high) - float64(low); math.IsNaN(v) || math.IsInf(v, 0) {
			return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("has values that are not finite (the range is %g to %g)", low, high)}
		}
		err := spec.Suits(float64(low), float64(high))
		if err == nil {
			err = spec.Unclipped(float64(low), float64(high))
		}
		if err != nil {
			return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("has values from %g to %g, but %v", low, high, err),
				Hint: "save them as uint8, which is divided by 255, or write scale = \"minmax\" in the dataset table"}
		}
	}
	return nil
}

// labelled returns an error for images without the labels that a term of the model needs.
func labelled(spec *config.Model, name string, images *data.Images) error {
	i := slices.IndexFunc(spec.Losses, comparesLabels)
	if i < 0 {
		return nil
	}
	layout, err := spec.Layout(images.Shape)
	if err != nil {
		return err
	}
	kind, classes, labels := spec.Losses[i].Kind, layout.Size(spec.Losses[i].On), images.Labels()
	if len(labels) == 0 || slices.Max(labels) < 0 {
		return &data.Error{Dataset: name, Problem: fmt.Sprintf("its samples have no labels, but loss[%d] (%s) needs them", i, kind),
			Hint: "name them with the key labels, or put the samples of each class into a folder"}
	}
	if most := slices.Max(labels); most >= classes {
		return &data.Error{Dataset: name, Problem: fmt.Sprintf("has the label %d, but %q, which loss[%d] (%s) compares with labels, has %d values: want at least %d",
			most, spec.Losses[i].On, i, kind, classes, most+1)}
	}
	return nil
}

// grouped returns an error for images of a single known group if a term compares groups: the term would always be 0.
func grouped(spec *config.Model, name string, images *data.Images) error {
	for i, term := range spec.Losses {
		if reads := term.Reads(); reads.Groups > 0 {
			first := float32(-1)
			other, _ := images.FirstOutside(reads.Against, func(v float32) bool {
				if first < 0 {
					first = v
				}
				return v < 0 || v == first
			})
			if _, ok := images.Column(reads.Against); ok && other == "" {
				return &data.Error{Dataset: name, Problem: fmt.Sprintf("the column %q has fewer than two groups, but loss[%d] (%s) compares groups", reads.Against, i, term.Kind),
					Hint: "number groups from 0, or write names: a negative number is an unknown group"}
			}
		}
	}
	return nil
}
