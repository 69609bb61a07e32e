package train

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/numeral"
	"tessera/internal/train/evaluation"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// Finding is a weakness of a trained model that its measured values show.
type Finding struct {
	Problem string
	Remedy  string // "" if none is known
}

func (f Finding) String() string {
	if f.Remedy == "" {
		return f.Problem
	}
	return f.Problem + "\n  what helps: " + f.Remedy
}

// Thresholds of [Findings].
const (
	explained   = 0.99 // share of the variance above which useless units are units to spare
	leastJudged = 10   // measured samples, below which units and reconstructions are not judged
	unexplained = 0.1  // share of the variance below which a model hardly explains more than the mean sample
	farAbove    = 20   // factor of the optimizer's default above which a learning rate is probably too large
	unscaled    = 100  // mean squared error above which vectors are probably not scaled
	structured  = 0.15 // share of the error along one direction above which one more unit is worth it, if
	gained      = 5e-3 // it gains that share of the variance
	uninformed  = 0.1  // nats per sample: codes with a smaller divergence from the prior say next to nothing about their samples

	spreadOfSeeds = 0.1 // relative spread of the loss over seeds above which trainings end in different optima
)

// Findings lists what is wrong with a trained model according to its measured values, most important first. It is the only
// place that judges a model: train and eval print the list, and reports show it. shape is the shape of one sample; run is the
// folder of the run, whose history tells whether the loss rose.
func Findings(m *config.Model, run string, shape []int, units int, r *evaluation.Report) (list []Finding) {
	values := volume.Of(shape)
	chance := min(1, float64(units)/float64(values)) // share of the variance of noise that random directions keep
	if v, ok := r.Find("explained_variance"); ok && v.Missing == metrics.AllEqual {
		return []Finding{{"all measured " + r.Counted() + " are equal: a model has nothing to learn from them", "check the files of the data set"}}
	}
	if r.Images < leastJudged {
		return manyOptima(run)
	}
	useful, counted := r.Number("useful_units")
	dead, _ := r.Number("dead_units")
	kept, known := r.Number("explained_variance")
	switch {
	case counted && useful == 0 && int(dead) == units:
		list = append(list, allDead(m, units))
	case counted && 2*int(useful) < units:
		list = append(list, Finding{fmt.Sprintf("%d of %d units are useless: freezing them at their mean activation raises the mse by 1 %% or less", units-int(useful), units),
			moreUseful(m, run, shape, units, r)})
	case known && m.Target() == losses.Images && kept < max(unexplained, min(0.5, 1.1*chance)) && !slices.Contains(m.FirstMeasures(), "log_likelihood"): // a density is no reconstruction
		problem := fmt.Sprintf("little is explained: the reconstructions keep %s of the variance", numeral.Percent(kept))
		if chance < 1 {
			problem += fmt.Sprintf("; of noise, %d units of random directions keep about %s", units, numeral.Percent(chance))
		}
		if kept < 0 {
			problem = fmt.Sprintf("nothing is explained: the reconstructions are worse than the mean of the samples, explained_variance is %s", numeral.Float(kept))
		}
		remedy := "check whether the " + r.Counted() + " have any structure"
		if wrong := wrongSetting(m, run, shape, r); wrong != "" {
			remedy = wrong
		} else if key := m.Training().Key; key != "" {
			remedy = "raise " + key + ", or " + remedy
		}
		list = append(list, Finding{problem, remedy})
	}
	if share, ok := r.Number("error_component"); ok && known && len(list) == 0 && m.Training().Method == "" && share >= structured && (1-kept)*share >= gained {
		list = append(list, Finding{fmt.Sprintf("%s of the error lies along one direction: one more unit could take it away", numeral.Percent(share)),
			"raise train.epochs or the units of the encoder, or keep the best of several trainings (train --restarts 4): this one may be in a poor optimum"})
	}
	if divergence, ok := r.Number("elbo_divergence"); ok && divergence < uninformed {
		list = append(list, collapsedPosterior(m, divergence, values))
	}
	return append(list, manyOptima(run)...)
}

// Unreached lists the phases of hooks that begin after the epoch that early stopping keeps.
func Unreached(m *config.Model, epoch int) (list []Finding) {
	stops := false
	for _, h := range m.Hooks {
		_, is := h.(*hooks.EarlyStopping)
		stops = stops || is
	}
	for _, name := range slices.Sorted(maps.Keys(m.Hooks)) {
		if p, ok := m.Hooks[name].(hooks.Phased); ok && stops {
			if from, _ := p.Begins(); epoch <= from {
				list = append(list, Finding{fmt.Sprintf("early stopping keeps epoch %d, but the phase of hook.%s begins after epoch %d: these parameters are those before it", epoch, name, from),
					"let the phase begin earlier, or leave early stopping out"})
			}
		}
	}
	return list
}

// allDead returns the finding that no sample activates any unit, with the remedy for the model.
func allDead(m *config.Model, units int) Finding {
	f := Finding{Problem: fmt.Sprintf("all %d units are dead: no sample activates any of them, so that no gradient reaches the encoder and further epochs change nothing", units)}
	if m.Training().Method != "" {
		f.Problem = fmt.Sprintf("all %d units are dead: no sample activates any of them", units)
		f.Remedy = "check the scale of the samples, and lower the penalties, if there are any"
		return f
	}
	var remedies []string
	if last, ok := m.Encoder[len(m.Encoder)-1].Layer.(*layers.Dense); !ok || last.Activation != "leaky_relu" {
		remedies = append(remedies, `activation = "leaky_relu" in the last layer of the encoder`)
	}
	if len(m.Losses) > 1 {
		remedies = append(remedies, "smaller weights of the terms that make codes sparse")
	}
	f.Remedy = "train again with " + strings.Join(append(remedies, "another seed"), ", or with ")
	if rate, usual := m.LearningRates(); rate > usual {
		f.Remedy = fmt.Sprintf("lower optimizer.learning_rate: it is %g, and the default of %s is %g; then train again", rate, m.Optimizer.Kind, usual)
	}
	return f
}

// collapsedPosterior returns the finding that the codes of a variational model equal the prior.
func collapsedPosterior(m *config.Model, divergence float64, pixels int) Finding {
	bound := ""
	f := Finding{Problem: fmt.Sprintf("the codes have collapsed to the prior: their divergence is %s nats, so that they say next to nothing about their samples", numeral.Digits(divergence, 2)),
		Remedy: `let the weight of the divergence rise from 0: weight = { kind = "linear", from = 0.0, to = 1.0, epochs = 10 }`}
	for i, l := range m.Losses {
		switch fixed, constant := l.Weight.(*losses.Constant); {
		case strings.HasSuffix(l.Kind, "_kl") && l.Weight != nil && !constant: // it rises already
			f.Remedy = "let the weight of the divergence rise more slowly, or end at a smaller value"
		case l.Kind == "bce" && l.On == "output" && (l.Weight == nil || constant && fixed.Value < float64(pixels)):
			bound = fmt.Sprintf("for the evidence lower bound write weight = %d in loss[%d] (bce), which is a mean over the values of a sample while the divergence is a sum over units; or ", pixels, i)
		}
	}
	f.Remedy = bound + f.Remedy
	return f
}

// moreUseful suggests a change that makes more units useful.
func moreUseful(m *config.Model, run string, shape []int, units int, r *evaluation.Report) string {
	if t := m.Training(); t.Method != "" {
		if units == 1 {
			return "raise " + t.UnitsKey
		}
		return "lower " + t.UnitsKey
	} else if t.Most == 0 {
		return "raise train.epochs: the model has its initial parameters; if they were imported, the samples and their scale must be those of their training"
	}
	if contrastive(m) {
		return "raise train.epochs, or lower the units of the encoder"
	}
	if wrong := wrongSetting(m, run, shape, r); wrong != "" {
		return wrong
	}
	kept, known := r.Number("explained_variance")
	rate, usual := m.LearningRates()
	switch {
	case known && kept < 0 && rate >= usual:
		return "raise train.epochs: the reconstructions are still worse than the mean of the samples"
	case known && kept > explained:
		return fmt.Sprintf("fewer units, if at all: %s of the variance is explained, so these are units to spare", numeral.Percent(kept))
	}
	relu := ""
	if last, ok := m.Encoder[len(m.Encoder)-1].Layer.(*layers.Dense); ok && last.Activation != "relu" {
		relu = `, set activation = "relu" in the last layer of the encoder`
	}
	raise := "raise train.epochs"
	if usual > 0 {
		raise = "raise optimizer.learning_rate or train.epochs"
	}
	return raise + relu + ", or lower the units of the encoder"
}

// wrongSetting returns how to change the setting that probably keeps a model from learning, "" if all are usual.
func wrongSetting(m *config.Model, run string, shape []int, r *evaluation.Report) string {
	if t := m.Training(); t.Method != "" || t.Most == 0 || contrastive(m) {
		return ""
	}
	mse, _ := r.Number("mse")
	kept, known := r.Number("explained_variance")
	worse := known && kept < 0 // than the mean of the samples
	rate, usual := m.LearningRates()
	switch n := r.CountFitted(); {
	case usual > 0 && rate > farAbove*usual:
		return fmt.Sprintf("lower optimizer.learning_rate: it is %g, and the default of %s is %g", rate, m.Optimizer.Kind, usual)
	case worse && len(shape) == 1 && mse > unscaled && !data.ScaleIsFitted(m.Dataset.Source):
		return `write scale = "standardise" in the dataset table: the values of the samples are large`
	case rate >= usual && rose(run):
		return fmt.Sprintf("lower optimizer.learning_rate: it is %g, and the loss rose", rate)
	case n > 0 && m.Train.Batch >= 2*n && m.Train.Batch > 128: // the default is no choice
		return fmt.Sprintf("lower train.batch: it is %d, and there are %d fitted %s, so that an epoch is one step", m.Train.Batch, n, r.Counted())
	}
	return ""
}

// contrastive reports whether a model is trained by contrastive divergence: its rates are not those of other objectives, and a difference of
// energies that rises means nothing.
func contrastive(m *config.Model) bool {
	return slices.ContainsFunc(m.Losses, func(l config.Loss) bool { return l.Kind == "contrastive_divergence" })
}

// rose reports whether the loss of a run was larger in its last epoch than in its first.
func rose(run string) bool {
	epochs, err := ReadHistory(run)
	if err != nil || len(epochs) < 2 {
		return false
	}
	first, _ := epochs[0].Values.Number("loss")
	last, ok := epochs[len(epochs)-1].Values.Number("loss")
	return ok && last > first
}
