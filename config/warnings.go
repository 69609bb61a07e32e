package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/hooks"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// Warnings returns one line for each setting of a model that is valid, but probably not intended.
func (m *Model) Warnings() (list []string) {
	for _, note := range m.notes {
		list = append(list, fmt.Sprintf("model %q: %s", m.Name, note))
	}
	if m.EarlyStops() && !m.SelectsOnValidation() {
		why, remedy := m.noValidationError()
		list = append(list, fmt.Sprintf("model %q: early stopping selects an epoch by the training loss: %s; remove the hook, or %s", m.Name, why, remedy))
	}
	if m.SelectsOnValidation() && m.Dataset.Validation.Test {
		list = append(list, fmt.Sprintf("model %q: early stopping selects an epoch on the test images (dataset.validation = \"test\"), "+
			"so metrics on the test images are too optimistic; hold out training images: dataset.validation = 0.1", m.Name))
	}
	for _, h := range m.AllHooks() {
		_, lends := h.Hook.(hooks.Lender)
		if lends && !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss != nil && l.Reads().Teacher && l.TeacherName() == h.Name }) {
			list = append(list, fmt.Sprintf("model %q: hook.%s has no effect: no loss reads this teacher; add { kind = \"consistency\" }, or remove the hook", m.Name, h.Name))
		}
	}
	if m.hasLayer(func(l layers.Layer) bool { _, is := l.(*layers.TeacherCentre); return is }) &&
		!slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss != nil && l.Reads().Teacher }) {
		list = append(list, fmt.Sprintf("model %q: the centre of teacher_centre never moves: no loss reads a teacher; add { kind = \"dino\" }, or remove the layer", m.Name))
	}
	if late := m.lateWeights(); len(late) > 0 {
		list = append(list, fmt.Sprintf("model %q: the training ends after epoch %d, before the weights of some terms have their last value: %s; train for longer, or shorten the schedules",
			m.Name, m.Train.Epochs, strings.Join(late, ", ")))
	}
	list = append(list, m.uselessSeparations()...)
	_, plain := m.Optimizer.Optimizer.(*optim.SGD) // its step has the size of the gradient, which may be small
	if rate, usual := m.LearningRates(); usual > 0 && rate >= tooLarge*usual && !plain {
		list = append(list, fmt.Sprintf("model %q: optimizer.learning_rate is %g, and the default of %s is %g: with such steps a training diverges, or all its units die; lower it",
			m.Name, rate, m.Optimizer.Kind, usual))
	}
	if _, ok := m.Heads["input"]; ok {
		list = append(list, fmt.Sprintf("model %q: head.input cannot be exported to ONNX, where the images are the input; give the head another name", m.Name))
	}
	list = append(list, m.uselessTopKs()...)
	list = append(list, m.loneSamples()...)
	for _, text := range slices.Concat(m.squashedLogits(), m.undividedCodes()) {
		list = append(list, fmt.Sprintf("model %q: %s", m.Name, text))
	}
	if at := m.normalisesHoles(); at != "" {
		list = append(list, fmt.Sprintf("model %q: %s takes its statistics over all entries of images, in which those that are missing or hidden are 0; put it after another layer", m.Name, at))
	}
	for _, at := range m.uselessBiases() {
		list = append(list, fmt.Sprintf("model %q: %s.bias has no effect: the next layer, batch_norm, subtracts the mean; set bias = false", m.Name, at))
	}
	return list
}

// tooLarge is a multiple of the default learning rate of an optimizer beyond which hardly any training converges.
const tooLarge = 1000

// LearningRates returns the learning rate of a model and the default of its optimizer; 0 for an optimizer without one.
func (m *Model) LearningRates() (rate, usual float64) {
	if rule, ok := m.Optimizer.Optimizer.(optim.Rule); ok {
		rate = rule.LearningRate()
	}
	if e, ok := optim.Registry.Lookup(m.Optimizer.Kind); ok {
		if rule, ok := e.New().(optim.Rule); ok {
			usual = rule.LearningRate()
		}
	}
	return rate, usual
}

// lateWeights lists the terms whose last weight no step has: "mse after epoch 60". A weight that jumps exactly at the end of the
// training is one of them; a weight that reaches its last value continuously there is not.
func (m *Model) lateWeights() (late []string) {
	for i, l := range m.Losses {
		e, ok := l.Weight.(losses.Ending)
		if !ok {
			continue
		}
		end, epochs := e.Ends(), float64(m.Train.Epochs)
		if end > epochs || end > 0 && end == epochs && jumps(l.Weight, end) {
			late = append(late, fmt.Sprintf("%s after epoch %g", m.TermName(i), end))
		}
	}
	return late
}

// jumps reports whether a weight is discontinuous at an epoch: it differs from the weight immediately before by more than a
// continuous schedule changes in so short a time.
func jumps(w losses.Weight, epoch float64) bool {
	return math.Abs(w.At(epoch)-w.At(epoch*(1-1e-12))) > 1e-6*slices.Max(losses.Through(w))
}

// uselessSeparations warns of hooks that compare the gradients of terms of which no trainable parameter depends on two.
func (m *Model) uselessSeparations() (list []string) {
	for _, h := range m.AllHooks() {
		s, ok := h.Hook.(hooks.Separating)
		if !ok || !m.layout.isSound() || m.sharesParameters(m.layout, s.Separates()) {
			continue
		}
		list = append(list, fmt.Sprintf("model %q: hook.%s has no effect: no trainable parameter depends on two of its terms; "+
			"name terms of one player that share trainable parameters, or remove the hook", m.Name, h.Name))
	}
	return list
}

// sharesParameters reports whether a player trains a parameter on which two of its terms depend. Only terms with these names
// count; nil means all. Terms that read more than values by their names, and shared parameters, count as depending on everything.
func (m *Model) sharesParameters(l *Layout, names []string) bool {
	for _, player := range m.AllPlayers() {
		terms := map[string]int{} // number of terms that depend on a parameter
		for _, i := range player.Terms {
			if len(names) > 0 && !slices.Contains(names, m.TermName(i)) {
				continue
			}
			reached := map[string]bool{}
			whole := false
			if r := m.Losses[i].Reads(); !r.On || r.Atoms || r.Jacobian {
				whole = true
			} else {
				for _, name := range m.Losses[i].Names() {
					whole = l.reach(name, reached) || whole
				}
			}
			for _, p := range l.Parameters() {
				if at := p.Path[:len(p.Path)-len(p.Name)-1]; !p.State && player.Moves(p.Path) && !m.Frozen(p.Path) && (whole || reached[at]) {
					if terms[p.Path]++; terms[p.Path] > 1 {
						return true
					}
				}
			}
		}
	}
	return false
}

// reach adds the paths of the layers that a value is computed by. It reports whether one of them borrows a parameter.
func (l *Layout) reach(name string, reached map[string]bool) (borrows bool) {
	list, isStack := l.Stack(name)
	if isStack && len(list) == 0 {
		return false
	}
	p, _ := l.Of(name)
	if p == nil || reached[p.Path] {
		return false
	}
	reached[p.Path] = true
	borrows = len(borrowers(p.Layer)) > 0
	for _, from := range p.From {
		borrows = l.reach(from, reached) || borrows
	}
	return borrows
}

// normalisesHoles returns a layer that normalises images with missing or hidden entries, as "encoder[0] (batch_norm)".
// It returns "" if there is none.
func (m *Model) normalisesHoles() string {
	if !m.Holed() {
		return ""
	}
	return m.firstOf("batch_norm", "instance_norm", "layer_norm", "relative")
}

// Masks reports whether a layer that reads the images sets some of their values to 0 in training, as if they were missing.
func (m *Model) Masks() bool { return m.firstOf("masking_noise", "dropout") != "" }

// firstOf returns the first layer of one of these kinds that reads images, as "encoder[0] (batch_norm)"; "" if there is none.
func (m *Model) firstOf(kinds ...string) string {
	read := func(place string, list []Layer, from Names) string {
		if len(list) > 0 && slices.Contains(from, losses.Images) && slices.Contains(kinds, list[0].Kind) {
			return fmt.Sprintf("%s[0] (%s)", place, list[0].Kind)
		}
		return ""
	}
	found := read("encoder", m.Encoder, Names{losses.Images})
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		found = cmp.Or(found, read("head."+name+".layers", m.Heads[name].Layers, m.Heads[name].From))
	}
	return found
}

// squashedLogits warns of terms that apply a softmax to values that are bounded already.
func (m *Model) squashedLogits() (list []string) {
	for i, l := range m.Losses {
		if l.Loss == nil || !l.Reads().Classes {
			continue
		}
		if r, known, last := m.rangeOf(l.On, layers.Everything); known && !math.IsInf(r.Low, -1) && !math.IsInf(r.High, 1) {
			list = append(list, fmt.Sprintf("loss[%d] (%s) applies a softmax itself, but %s gives %s, so that no class gets a high probability; end %q without an activation",
				i, l.Kind, last, intervalText(r), l.On))
		}
	}
	return list
}

// undividedCodes warns of layers that draw codes from a distribution: if no term compares it with the prior, or if the weights make
// the divergence so large beside the likelihood that all codes collapse to the prior.
func (m *Model) undividedCodes() (list []string) {
	if !m.layout.isSound() {
		return nil
	}
	layout := m.layout
	for p := range layout.Layers() {
		if _, ok := p.Layer.(layers.Variational); !ok {
			continue
		}
		at, compares := fmt.Sprintf("%s (%s)", placeOf(p.Path), p.Kind), func(l Loss) bool {
			_, diverges := l.Loss.(losses.Divergence)
			return diverges && layout.DependsOn(l.On, p.Path) ||
				slices.ContainsFunc(layout.ValuesOf(l), func(name string) bool { return strings.HasPrefix(name, p.Path+".") })
		}
		first := slices.IndexFunc(m.Losses, compares)
		if kind := divergenceOf(p.Layer); first < 0 && kind != "" {
			list = append(list, fmt.Sprintf("%s draws codes from a distribution that no term compares with its prior; add { kind = %q }", at, kind))
		} else if first >= 0 {
			list = append(list, m.collapse(layout, p.Path, first)...)
		}
	}
	return list
}

// collapse warns of a likelihood that weighs less than a hundredth of its part in the evidence lower bound. It is a mean over the
// values of a sample, and the divergence a sum over units.
func (m *Model) collapse(layout *Layout, path string, divergence int) []string {
	_, diverges := m.Losses[divergence].Loss.(losses.Divergence)
	values, beta := float64(layout.Size(losses.Output)), m.Losses[divergence].Weight.At(math.Inf(1))
	for i, l := range m.Losses {
		of, ok := l.Loss.(losses.Likelihood)
		if !ok || !diverges || l.On != losses.Output || !layout.DependsOn(losses.Output, path) {
			continue
		}
		hasNoise, defined := of.Noise()
		w := l.Weight.At(math.Inf(1))
		advice := fmt.Sprintf("weight = %g", values*beta)
		if hasNoise {
			advice = fmt.Sprintf("weight = %g / (2 s²) for noise of deviation s", values*beta)
		}
		if defined && w > 0 && values*beta > 100*w {
			return []string{fmt.Sprintf("loss[%d] (%s) is a mean over %g values and weighs %g beside loss[%d] (%s), a sum over units: the codes will collapse to the prior; for the evidence lower bound write %s",
				i, l.Kind, values, w, divergence, m.Losses[divergence].Kind, advice)}
		}
	}
	return nil
}

// divergenceOf returns the kind of the term that compares the distribution of a layer's codes with its prior: the divergence that
// reads most of the values that the layer publishes. It returns "" if there is none.
func divergenceOf(l layers.Layer) (kind string) {
	p, ok := l.(layers.Variational)
	if !ok {
		return ""
	}
	most := 0
	for _, e := range losses.Registry.All() {
		if d, ok := e.New().(losses.Divergence); ok {
			names := d.Reads().Published
			missing := func(name string) bool {
				return !slices.ContainsFunc(p.Publishes([]int{1}), func(v layers.Value) bool { return v.Name == name })
			}
			if len(names) > most && !slices.ContainsFunc(names, missing) {
				kind, most = e.Name, len(names)
			}
		}
	}
	return kind
}

// Unsettled warns of layers whose running averages need more steps than a training on this number of samples has.
func (m *Model) Unsettled(samples int) (list []string) {
	if samples < 1 {
		return nil
	}
	passes := float64(max(1, m.Train.Batch))
	steps := float64(m.Train.Epochs) * max(math.Ceil(float64(samples)/passes), float64(m.Train.MinEpochSteps))
	seen := map[float64]bool{}
	m.hasLayer(func(l layers.Layer) bool {
		a, ok := l.(layers.Averaging)
		if !ok {
			return false
		}
		if key, decay := a.Average(); math.Pow(decay, steps) > 0.05 && !seen[decay] {
			seen[decay] = true
			list = append(list, fmt.Sprintf("model %q: the running averages of %s need about %.0f steps, but the training has %.0f; set %s = %.2g, or train for longer",
				m.Name, language.NameOf(nil, "", l), 3/(1-decay), steps, key, max(0, 1-3/steps)))
		}
		return false
	})
	return list
}

// uselessBiases lists the layers whose bias has no effect because the next layer subtracts it: "encoder[0]". A bias that is
// declared explicitly is not listed.
func (m *Model) uselessBiases() (found []string) {
	var search func(path string, list []layers.Layer)
	search = func(path string, list []layers.Layer) {
		for i, l := range list {
			at := fmt.Sprintf("%s.%d", path, i)
			if b, ok := l.(layers.Block); ok {
				search(at, b.Inner())
			}
			s, ok := l.(layers.Shifting)
			if !ok || !s.AddsBias() || i+1 == len(list) {
				continue
			}
			if _, normal := list[i+1].(*layers.BatchNorm); normal && !m.Sets(placeOf(at)+".bias") {
				found = append(found, placeOf(at))
			}
		}
	}
	search("encoder", plain(m.Encoder))
	search("decoder", plain(m.Decoder))
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		search("head."+name, plain(m.Heads[name].Layers))
	}
	return found
}

// uselessTopKs returns a warning for every top_k that keeps all values of its input. It requires that the shape of the
// images is known.
func (m *Model) uselessTopKs() (list []string) {
	if !m.layout.isSound() {
		return nil
	}
	for p := range m.layout.Layers() {
		top, ok := p.Layer.(*layers.TopK)
		if !ok || len(p.In) == 0 {
			continue
		}
		if n := p.In[len(p.In)-1]; top.K >= n {
			list = append(list, fmt.Sprintf("model %q: %s.k has no effect: top_k keeps %d values of %d; lower it, or remove the layer", m.Name, placeOf(p.Path), top.K, n))
		}
	}
	return list
}

// loneSamples returns a warning for every batch_norm of vectors whose batches have one sample, which is its own mean.
func (m *Model) loneSamples() (list []string) {
	if !m.layout.isSound() || m.Train.Batch != 1 {
		return nil
	}
	for p := range m.layout.Layers() {
		if _, normal := p.Layer.(*layers.BatchNorm); normal && len(p.In) == 1 {
			list = append(list, fmt.Sprintf("model %q: %s: with train.batch = 1 the output of batch_norm is its shift, whatever the sample, and nothing is learned; raise train.batch", m.Name, placeOf(p.Path)))
		}
	}
	return list
}

// plain returns the layers without their declarations.
func plain(list []Layer) []layers.Layer {
	return lists.Map(list, func(l Layer) layers.Layer { return l.Layer })
}

// hasLayer reports whether the model contains such a layer, also inside of a block.
func (m *Model) hasLayer(such func(layers.Layer) bool) bool {
	var has func(list []layers.Layer) bool
	has = func(list []layers.Layer) bool {
		return slices.ContainsFunc(list, func(l layers.Layer) bool {
			b, ok := l.(layers.Block)
			return such(l) || ok && has(b.Inner())
		})
	}
	for _, h := range m.Heads {
		if has(plain(h.Layers)) {
			return true
		}
	}
	return has(plain(m.Encoder)) || has(plain(m.Decoder))
}
