package laws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"

	"tessera/classical"
	"tessera/metrics"
)

// Baseline contains the laws of baselines, tested on 300 vectors of six values in [0,1], including a zero vector and two equal
// vectors, on these vectors times 1e-6, and, for methods that take missing entries, also on such vectors of which a third of
// the values is missing. Fresh
// methods should have few components (three) and iterations.
var Baseline = inTrials(eachBaselineTrial, []law[baselineTrial]{
	{"fits samples, in at most the iterations that it names", with(baselineTrial.fits)},
	{"has codes and atoms of the sizes that it declares, and finite values", with(baselineTrial.sized)},
	{"gives the same bytes again, on any number of processors", with(baselineTrial.repeatable)},
	{"ends in the same bytes if it is saved and restored after any iteration", with(baselineTrial.resumes)},
	{"ends in the same bytes if its context ended before", with(baselineTrial.cancelled)},
	{"codes the same after it is restored, and nearly the same alone as in a batch", with(baselineTrial.restored)},
	{"decodes other atoms with the same codes", with(baselineTrial.otherAtoms)},
	{"refuses samples that are not finite, negative without need, of another size, or none", baselineTrial.refuses},
	{"refuses to code before it is fitted, and parts of samples", baselineTrial.refusesCodes},
	{"refuses a damaged state", with(baselineTrial.damaged)},
	{"has the same parts for samples in another unit, unless its settings are in that of the samples", baselineTrial.scaled},
	{"never changes its settings, nor the samples", baselineTrial.keepsSettings},
})

// baselineTrial is a method with samples.
type baselineTrial struct {
	fresh    func() classical.Method
	declared classical.Fitting // what the method declares
	values   []float32
	holed    bool                    // some of the values are missing
	small    bool                    // the values are multiplied by 1e-6
	want     func() (*fitted, error) // fits the method once and returns the result
}

// fitted contains the results of a fit.
type fitted struct {
	classical.Model
	state    classical.State // copy of the state
	progress []classical.Progress
}

const (
	baselinePixels  = 6
	baselineSamples = 300 // enough for two lanes of a fit that divides its samples
)

func (t baselineTrial) result() (*fitted, error) { return t.want() }

func (t baselineTrial) String() string {
	if t.holed {
		return fmt.Sprintf("%d samples with missing values", baselineSamples)
	} else if t.small {
		return fmt.Sprintf("%d samples with small values", baselineSamples)
	}
	return fmt.Sprintf("%d samples", baselineSamples)
}

func eachBaselineTrial(fresh func() classical.Method, try func(t baselineTrial)) error {
	for _, kind := range []string{"plain", "missing", "small"} {
		holed := kind == "missing"
		t := baselineTrial{fresh: fresh, declared: fresh().Describe(), values: uniform32(baselineSamples * baselinePixels), holed: holed, small: kind == "small"}
		if t.small {
			t.values = multiplied(t.values, 1e-6)
		}
		if holed && !t.declared.TakesHoles() {
			continue
		}
		clear(t.values[4*baselinePixels : 5*baselinePixels])
		for i := 0; holed && i < len(t.values); i += 3 + i%2 { // no sample and no value is missing altogether
			t.values[i] = float32(math.NaN())
		}
		copy(t.values[9*baselinePixels:10*baselinePixels], t.values[8*baselinePixels:])
		t.want = sync.OnceValues(func() (*fitted, error) { return t.fit(context.Background()) })
		try(t)
	}
	return nil
}

func (t baselineTrial) model() (classical.Model, error) {
	m, err := t.fresh().New([]int{baselinePixels}, 5)
	if err == nil && m == nil {
		err = errors.New("returns neither a model nor an error")
	}
	if err != nil {
		return nil, fmt.Errorf("its New: %w", err)
	}
	return m, nil
}

func (t baselineTrial) samples() classical.Matrix {
	m, _ := classical.NewMatrix(slices.Clone(t.values), baselinePixels) // whole samples
	return m
}

func (t baselineTrial) most() int { return t.declared.MostIterations(t.holed) }

func (t baselineTrial) fit(ctx context.Context) (*fitted, error) {
	m, err := t.model()
	if err != nil {
		return nil, err
	}
	return t.fitted(ctx, m)
}

// fitted fits a model to its end.
func (t baselineTrial) fitted(ctx context.Context, m classical.Model) (*fitted, error) {
	f := &fitted{Model: m}
	_, err := classical.Fit(ctx, m, t.samples(), func(p classical.Progress) error {
		if f.progress = append(f.progress, p); len(f.progress) > 10*t.most()+1000 {
			return errors.New("it does not end")
		}
		return nil
	})
	f.state = through(m.State())
	return f, err
}

// through returns a copy of a state that was written and read like a checkpoint, with numbers as JSON.
func through(s classical.State) classical.State {
	text, err := json.Marshal(s)
	if err != nil {
		return classical.State{} // of numbers that are not finite
	}
	var read classical.State
	_ = json.Unmarshal(text, &read) // what Marshal wrote
	return read
}

// like returns an error unless two fits are equal.
func (f *fitted) like(want *fitted) error {
	if !reflect.DeepEqual(f.state, want.state) {
		return errors.New("the state is another")
	}
	return nil
}

func (t baselineTrial) fits(f *fitted) error {
	most := t.most()
	for i, p := range f.progress {
		switch {
		case p.Iteration != i+1:
			return fmt.Errorf("iteration %d says that %d are done", i+1, p.Iteration)
		case notFinite(p.Objective):
			return fmt.Errorf("iteration %d: the objective is %v", i+1, p.Objective)
		case p.Done != (i == len(f.progress)-1):
			return fmt.Errorf("iteration %d of %d: Done is %v", i+1, len(f.progress), p.Done)
		}
	}
	if len(f.progress) > most {
		return fmt.Errorf("%d iterations, want at most %d", len(f.progress), most)
	}
	if !f.Done() {
		return errors.New("a finished fit is not Done")
	}
	return nil
}

func (t baselineTrial) sized(f *fitted) error {
	codes, err := f.Encode(t.values)
	if err != nil {
		return err
	}
	images, err := f.Decode(codes)
	if err != nil {
		return err
	}
	units := t.declared.Units
	all := map[string][]float32{"codes": codes, "reconstructions": images}
	for _, size := range []struct {
		what      string
		got, want int
	}{
		{"Units of the model", f.Units(), units}, {"values of Shape", elements(1, f.Shape()), baselinePixels},
		{"codes", len(codes), baselineSamples * units}, {"values of reconstructions", len(images), len(t.values)},
	} {
		if size.got != size.want {
			return fmt.Errorf("%s: got %d, want %d", size.what, size.got, size.want)
		}
	}
	if kept := f.Codes(); kept != nil {
		copy(kept[9*units:10*units], kept[8*units:]) // of equal samples the first counts
		if err := differ("its Codes, compared with Encode", kept, codes); err != nil {
			return err
		}
	}
	if atoms := f.Atoms(); atoms != nil {
		if all["atoms"] = atoms.Values; len(atoms.Values) != atoms.Count*baselinePixels {
			return fmt.Errorf("%d atoms with %d values", atoms.Count, len(atoms.Values))
		}
	}
	for what, values := range all {
		if i := slices.IndexFunc(values, notFinite); i >= 0 {
			return fmt.Errorf("%s: value %d is %v", what, i, values[i])
		}
	}
	return nil
}

func (t baselineTrial) repeatable(want *fitted) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 3} {
		runtime.GOMAXPROCS(processors)
		f, err := t.fit(context.Background())
		if err == nil {
			err = f.like(want)
		}
		if err != nil {
			return fmt.Errorf("on %d processors: %w", processors, err)
		}
	}
	return nil
}

// resumes saves the state after every iteration, and continues each with a new model.
func (t baselineTrial) resumes(want *fitted) error {
	for after := range len(want.progress) + 1 {
		m, err := t.model()
		if err != nil {
			return err
		}
		if err := m.Begin(context.Background(), t.samples()); err != nil {
			return err
		}
		for range after {
			if _, err := m.Step(context.Background()); err != nil {
				return err
			}
		}
		if err := t.resumed(through(m.State()), want); err != nil {
			return fmt.Errorf("saved after %d iterations: %w", after, err)
		}
	}
	return nil
}

// resumed continues a fit from its state.
func (t baselineTrial) resumed(s classical.State, want *fitted) error {
	m, err := t.model()
	if err != nil {
		return err
	}
	if err := m.Restore(s); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	f, err := t.fitted(context.Background(), m)
	if err != nil {
		return err
	}
	return f.like(want)
}

// countdown is a context that is done after the given number of calls of Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func (t baselineTrial) cancelled(want *fitted) error {
	for _, looks := range []int{0, 1, 2, 3, 10} {
		m, err := t.model()
		if err != nil {
			return err
		}
		if _, err := t.fitted(&countdown{context.Background(), looks}, m); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the context ended, but the error is %w", err)
		}
		if err := t.resumed(through(m.State()), want); err != nil {
			return fmt.Errorf("ended when asked %d times: %w", looks, err)
		}
	}
	return nil
}

func (t baselineTrial) restored(f *fitted) error {
	other, err := t.model()
	if err == nil {
		err = other.Restore(f.state)
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if !other.Done() {
		return errors.New("a finished fit is not Done after it is restored")
	}
	unseen := uniform32(7 * baselinePixels)
	for i := range unseen {
		unseen[i] = 1 - unseen[i]
	}
	for what, x := range map[string][]float32{"the fitted samples": t.values, "other samples": unseen, "no samples": nil} {
		want, err := f.Encode(x)
		if err != nil {
			return err
		}
		got, err := other.Encode(x)
		if err == nil {
			err = differ("the codes of "+what, got, want)
		}
		if err != nil {
			return fmt.Errorf("restored: %w", err)
		}
	}
	all, err := f.Encode(unseen)
	if err != nil {
		return err
	}
	one, err := f.Encode(unseen[3*baselinePixels : 4*baselinePixels])
	if err != nil {
		return err
	}
	// codes that are iterated until a batch has converged, to 1e-3 of its norm, differ a little
	if err := near(converted[float64](one), converted[float64](all[3*f.Units():4*f.Units()]), 1e-2); err != nil {
		return fmt.Errorf("the code of a sample alone, compared with that in a batch: %w", err)
	}
	return nil
}

func (t baselineTrial) otherAtoms(f *fitted) error {
	atoms := f.Atoms()
	if atoms == nil {
		return nil
	}
	for i := range atoms.Values {
		atoms.Values[i] *= 2
	}
	other, err := f.WithAtoms(atoms)
	if err != nil {
		return err
	}
	x := t.values
	want, err := f.Encode(x)
	if err != nil {
		return err
	}
	got, err := other.Encode(x)
	if err == nil {
		err = differ("codes", got, want)
	}
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(other.Atoms().Values, atoms.Values) {
		return errors.New("the atoms are not those that were given")
	}
	if _, err := f.WithAtoms(nil); err == nil {
		return errors.New("accepts no atoms")
	}
	return nil
}

func (t baselineTrial) refuses() error {
	infinite := slices.Clone(t.values)
	infinite[20] = float32(math.Inf(1))
	nan := slices.Clone(t.values)
	nan[20] = float32(math.NaN())
	negative := slices.Clone(t.values)
	negative[20] = -1
	for what, x := range map[string]struct {
		values []float32
		pixels int
	}{"an infinite value": {infinite, baselinePixels}, "NaN": {nan, baselinePixels}, "no samples": {nil, baselinePixels}, "samples of another size": {t.values[:55], 5},
		"a negative value": {negative, baselinePixels}} {
		m, err := t.model()
		if err != nil {
			return err
		}
		if what == "NaN" && metrics.TakesHoles(m) || what == "a negative value" && t.declared.Signed {
			continue
		}
		images, err := classical.NewMatrix(x.values, x.pixels)
		if err != nil {
			return err
		}
		if _, err := classical.Fit(context.Background(), m, images, nil); err == nil {
			return fmt.Errorf("accepts %s", what)
		}
	}
	return nil
}

func (t baselineTrial) refusesCodes() error {
	m, err := t.model()
	if err != nil {
		return err
	}
	if _, err := m.Encode(t.values[:baselinePixels]); err == nil {
		return errors.New("encodes before it is fitted")
	}
	if _, err := m.Decode(make([]float32, m.Units())); err == nil {
		return errors.New("decodes before it is fitted")
	}
	f, err := t.want()
	if err != nil {
		return err
	}
	if _, err := f.Encode(t.values[:baselinePixels+1]); err == nil {
		return errors.New("encodes a part of a sample")
	}
	if _, err := f.Decode(make([]float32, f.Units()+1)); err == nil && f.Units() > 1 {
		return errors.New("decodes a part of a code")
	}
	return nil
}

func (t baselineTrial) damaged(f *fitted) error {
	try := func(what string, change func(s *classical.State)) error {
		s := through(f.state)
		change(&s)
		m, err := t.model()
		if err == nil && m.Restore(s) == nil {
			err = fmt.Errorf("accepts a state with %s", what)
		}
		return err
	}
	for name, tensor := range f.state.Tensors {
		if err := try(fmt.Sprintf("too few values of %q", name), func(s *classical.State) {
			s.Tensors[name] = classical.Tensor{Shape: tensor.Shape, Values: tensor.Values[1:]}
		}); err != nil && len(tensor.Values) > 0 {
			return err
		}
		if name == "bias" && !t.declared.Biased {
			continue
		}
		if err := try(fmt.Sprintf("no tensor %q", name), func(s *classical.State) { delete(s.Tensors, name) }); err != nil {
			return err
		}
	}
	for name := range f.state.Numbers {
		if err := try(fmt.Sprintf("no number %q", name), func(s *classical.State) { delete(s.Numbers, name) }); err != nil {
			return err
		}
	}
	return try("no tensors", func(s *classical.State) { s.Tensors = nil })
}

func (t baselineTrial) keepsSettings() error {
	method := t.fresh()
	m, err := method.New([]int{baselinePixels}, 5)
	if err != nil {
		return err
	}
	values := slices.Clone(t.values)
	images, _ := classical.NewMatrix(values, baselinePixels) // whole samples
	if _, err := classical.Fit(context.Background(), m, images, nil); err != nil {
		return err
	}
	if !reflect.DeepEqual(method, t.fresh()) {
		return errors.New("its settings are others afterwards")
	}
	return differ("the samples afterwards", values, t.values)
}

// scaled compares a fit with fits to the samples times powers of ten: reconstructions are multiplied by the same number, and
// atoms of length 1 are equal.
func (t baselineTrial) scaled() error {
	const tolerance = 1e-3
	if t.declared.Absolute || t.small {
		return nil
	}
	want, err := t.fit(context.Background())
	if err != nil {
		return err
	}
	images, err := reconstructed(want, t.values, 1)
	if err != nil {
		return err
	}
	for _, unit := range []float64{1e-8, 1e-5, 1e-3, 1e3, 1e5, 1e8} {
		other := t
		other.values = multiplied(t.values, unit)
		got, err := other.fit(context.Background())
		if err != nil {
			return fmt.Errorf("samples times %g: %w", unit, err)
		}
		if a, b := len(got.progress), len(want.progress); a-b > 1 || b-a > 1 {
			return fmt.Errorf("samples times %g: %d iterations, want %d", unit, a, b)
		}
		theirs, err := reconstructed(got, other.values, unit)
		if err == nil {
			err = near(theirs, images, tolerance)
		}
		if err != nil {
			return fmt.Errorf("samples times %g: reconstructions: %w", unit, err)
		}
		if want.Atoms() == nil {
			continue
		}
		if err := near(directions(got), directions(want), tolerance); err != nil {
			return fmt.Errorf("samples times %g: atoms: %w", unit, err)
		}
	}
	return nil
}

// multiplied returns the values times a factor.
func multiplied(values []float32, by float64) []float32 {
	values = slices.Clone(values)
	for i, v := range values {
		values[i] = float32(float64(v) * by)
	}
	return values
}

// reconstructed returns the reconstructions of samples, divided by unit.
func reconstructed(f *fitted, values []float32, unit float64) ([]float64, error) {
	codes, err := f.Encode(values)
	if err != nil {
		return nil, err
	}
	images, err := f.Decode(codes)
	wide := converted[float64](images)
	for i := range wide {
		wide[i] /= unit
	}
	return wide, err
}

// directions returns the atoms, each divided by its length.
func directions(f *fitted) []float64 {
	atoms := converted[float64](f.Atoms().Values)
	for atom := range slices.Chunk(atoms, baselinePixels) {
		length := 0.0
		for _, v := range atom {
			length = math.Hypot(length, v)
		}
		for i := range atom {
			atom[i] /= max(length, math.SmallestNonzeroFloat64)
		}
	}
	return atoms
}
