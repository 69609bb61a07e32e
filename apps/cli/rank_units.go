package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"tessera"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/internal/train"
)

// hiddenEntries is the fraction of the entries that are hidden, unless the model declares one.
const hiddenEntries = 0.1

// measureUnits trains the model with each number of units, once for each fold: the run's seed, and the following ones, draw the
// entries that are hidden from the training. It measures these entries, and the units in use: those whose largest contribution is at least 1 % of
// the largest of any unit. This is the cross-validation of a factorisation by
// entries (Wold, Cross-validatory estimation of the number of components, Technometrics 20, 1978; Owen and Perry 2009), for a
// model whose encoder reads 0 in place of hidden entries.
func (f *rankCommand) measureUnits(cmd *Call, m *config.Model, options tessera.Options) (*classical.Ranking, error) {
	if err := m.Reconstructs(); err != nil {
		return nil, usagef("rank: %s: %v", m.Name, err)
	}
	keys := unitKeys(m)
	if len(keys) == 0 {
		return nil, usagef("rank: %s: no layer of the encoder has the key units; want a layer whose number of units can be set, such as dense", m.Name)
	}
	if len(f.Ranks) == 0 {
		for key, value := range m.Settings() {
			if units, err := strconv.Atoi(value); err == nil && key == keys[0] {
				f.Ranks = ladder(units, math.MaxInt)
			}
		}
	}
	temporary, err := os.MkdirTemp("", "tessera-rank-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	options.Out, options.Force = filepath.Join(temporary, "run"), true
	chosen, err := selected("mse", "dead_units_contribution")
	if err != nil {
		return nil, err
	}
	cmd.say("%d trainings: %d numbers of units, %d folds", len(f.Ranks)*f.Folds, len(f.Ranks), f.Folds)
	report := counting(cmd.ErrOrStderr(), "training", len(f.Ranks)*f.Folds)
	list := &classical.Ranking{Measures: []classical.RankMeasure{{Key: "mse", Name: "held-out mse", Choice: classical.Simplest}, {Key: "mse_fitted", Name: "mse of the other entries"},
		{Key: "units_used", Name: "units in use"}}}
	for i, units := range f.Ranks {
		var missed []float64
		rest, used := 0.0, 0.0
		for fold := range f.Folds {
			sets := append(f.training(), fmt.Sprintf("train.seed=%d", m.Train.Seed+uint64(fold)))
			for _, key := range keys {
				sets = append(sets, fmt.Sprintf("%s=%d", key, units))
			}
			if !m.Dataset.Hides() {
				sets = append(sets, fmt.Sprintf("dataset.hide=%g", hiddenEntries))
			}
			one, err := f.model(m.Name, sets...)
			if err != nil {
				return nil, err
			}
			run, err := tessera.Train(cmd.Context(), one, options)
			if errors.Is(err, train.ErrInterrupted) { // without the run, which is in the temporary folder
				return nil, fmt.Errorf("rank: %w after %d of %d trainings; none is kept", train.ErrInterrupted, i*f.Folds+fold, len(f.Ranks)*f.Folds)
			}
			if err != nil {
				return nil, err
			}
			measured, err := run.EvaluateOn(cmd.Context(), data.TrainSplit, chosen)
			run.Close()
			if err != nil {
				return nil, err
			}
			hidden, ok := measured.Number("mse_held_out")
			if !ok {
				return nil, fmt.Errorf("rank: %s has no mse_held_out", m.Name)
			}
			fitted, _ := measured.Number("mse_observed")
			dead, _ := measured.Number("dead_units_contribution")
			missed = append(missed, hidden)
			rest += fitted / float64(f.Folds)
			used += (float64(units) - dead) / float64(f.Folds)
			report(i*f.Folds + fold + 1)
		}
		mean, deviation := stat.MeanStdDev(missed, nil)
		list.Add(units, stat.StdErr(deviation, float64(f.Folds)), mean, rest, used)
	}
	return list, nil
}

// unitKeys returns the keys that set the number of units of the code: the last key `units` of the encoder, and those before it
// with the same value, as in a residual block that must have the units of its input.
func unitKeys(m *config.Model) (keys []string) {
	units := map[string]string{}
	for key, value := range m.Settings() {
		if strings.HasPrefix(key, "encoder.") && strings.HasSuffix(key, ".units") {
			units[key] = value
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	code := units[slices.MaxFunc(keys, func(a, b string) int { // numbers in their order
		return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
		})
	})]
	return slices.DeleteFunc(keys, func(key string) bool { return units[key] != code })
}
