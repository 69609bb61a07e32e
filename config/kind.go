package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"tessera/classical"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/optim"
)

// kind is what differs between the two kinds of models: a network, whose parameters are trained by gradients, and a method of package
// classical, which fits itself.
type kind interface {
	// check completes a decoded model and returns its errors.
	check(f *File) []table.Diagnostic
	training() Training
	// first lists the metrics by which the model is judged; alone means that no others are shown.
	first() (names []string, alone bool)
}

// kind returns the kind of the model. No other place asks which it is.
func (m *Model) kind() kind {
	if m.Baseline != nil {
		return method{m, m.Baseline.Describe()}
	}
	return network{m}
}

// Training describes how a model is trained.
type Training struct {
	Method   string // kind of a model of package classical; "" for a network
	Most     int    // maximum number of epochs, or of iterations
	Key      string // key of this number; "" for a method that has none
	UnitsKey string // key of the number of units
	Iterates bool   // an epoch is one iteration over all samples, not many steps
	Signed   bool   // samples may have negative values
}

// Training returns how the model is trained.
func (m *Model) Training() Training { return m.kind().training() }

type network struct{ *Model }

func (n network) training() Training {
	_, search := n.Optimizer.Optimizer.(optim.Search)
	return Training{Most: n.Train.Epochs, Key: epochsKey, UnitsKey: n.unitsKey(), Iterates: search, Signed: true}
}

// unitsKey returns the key that declares the units of the code: that of the last layer of the encoder that has one.
func (n network) unitsKey() string {
	for i, l := range slices.Backward(n.Encoder) {
		for _, key := range []string{"units", "filters"} {
			if slices.Contains(table.Keys(l.Layer, ""), key) {
				return fmt.Sprintf("encoder.%d.%s", i, key)
			}
		}
	}
	return "encoder"
}

type method struct {
	*Model
	fit classical.Fitting
}

func (m method) training() Training {
	key := ""
	if reflect.TypeOf(m.Baseline).Kind() == reflect.Pointer && slices.Contains(table.Keys(m.Baseline, ""), iterationsKey) {
		key = iterationsKey
	}
	return Training{Method: m.Kind, Most: m.fit.MostIterations(m.Holed()), Key: key, UnitsKey: "components", Iterates: true, Signed: m.fit.Signed}
}

func (m method) first() (names []string, alone bool) {
	if names = m.fit.Measures; names == nil {
		return []string{"mse"}, false
	}
	return names, true
}

// check reports settings that are invalid for the shape of the samples, and missing or hidden entries that the method cannot leave out.
func (m method) check(f *File) (found []table.Diagnostic) {
	var of part.KeyError
	input := m.input(f)
	doubtful := m.origin.Doubt("").Any(func(table.Field) bool { return true })
	if input != nil && !doubtful && m.fit.Sizes != nil && errors.As(m.fit.Sizes(0, product(input)), &of) {
		found = append(found, m.finding("", "", of.Key, of.Error(), ""))
	}
	switch {
	case !m.Holed() || m.fit.TakesHoles():
		return found
	case errors.As(m.fit.Complete, &of):
		return append(found, m.finding("", "", of.Key, of.Error(), ""))
	}
	key := "missing"
	if m.Dataset.Hide > 0 {
		key = "hide"
	} else if m.Dataset.Leave > 0 {
		key = "leave"
	}
	return append(found, m.finding("dataset", "", key, fmt.Sprintf("%s: %s fits all entries of images and cannot leave out those that are missing or hidden", key, m.Kind),
		`kind = "pca", "nmf" or "sparse_nmf", or an auto-encoder with the loss mse, can`))
}
