package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tessera/baselines"
	"tessera/config"
	"tessera/data"
	"tessera/optim"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// session is one run in the hands of this process: its folder, where it is, and what goes on around its learner.
type session struct {
	options Options
	spec    *config.Model
	shape   []int // of one image
	learner learner
	images  *data.Images // fitted
	files   []data.File  // the data set was read from
	started *data.File   // the first parameters were read from; nil where they were drawn
	folder  *folder.Folder
	writer  writer
	encoded map[string][]byte // files that the writer had, by name: their memory is used again

	identity identity
	progress progress

	saved     time.Time // when the last checkpoint was handed to the writer
	began     time.Time // this process's first step
	beganAt   int       // steps that were done then
	reported  time.Time
	epochFrom time.Time // when this process began with the current epoch
}

// learner is what a run trains: an auto-encoder, moved along gradients, or a baseline, which has a rule of its own. It
// counts what it has done in the session's progress.
type learner interface {
	// start gives a new run what it begins with beside its first draw.
	start() error
	// begin makes the learner ready for its first epoch, or for the next one where a state was restored.
	begin(ctx context.Context, splits data.Splits) error
	// epoch does what is left of the present epoch and measures it. When ctx ends, so does it, with errHalted: the session
	// can then be saved.
	epoch(ctx context.Context) (Metrics, error)
	// save adds to the file of a state what the learner needs to go on.
	save(state *checkpoint.File) error
	// restore takes it back.
	restore(from *stored) error
	// derived returns the files that are made from the state for those who use the model.
	derived() ([]folder.File, error)
	// close frees what the learner holds.
	close()
}

// errHalted says that an epoch was not done to its end because the context has ended.
var errHalted = errors.New("halted")

// newSession loads the data and makes a learner that has not begun; it writes nothing.
func newSession(ctx context.Context, spec *config.Model, o Options) (*session, data.Splits, error) {
	set, err := o.load(ctx, &spec.Dataset)
	if err != nil {
		return nil, data.Splits{}, halted(err)
	}
	splits, err := set.Split(spec.Dataset.Selection, spec.Train.Seed)
	if err != nil {
		return nil, splits, err
	}
	if err := usable(spec, set, splits); err != nil {
		return nil, splits, err
	}
	s, err := bareSession(spec, set.Shape, o)
	if err != nil {
		return nil, splits, err
	}
	s.images, s.files = splits.Fit, set.Files
	s.identity = newIdentity(spec, s.images.Len(), s.files)
	return s, splits, nil
}

// usable refuses images that the model cannot learn from.
func usable(spec *config.Model, set *data.Set, splits data.Splits) error {
	if splits.Fit.Len() == 0 {
		return &data.Error{Dataset: set.Name, Problem: "there are no images to fit"}
	}
	for _, images := range []*data.Images{splits.Fit, splits.Validation} {
		if images == nil {
			continue
		}
		low, high := images.Range()
		if err := spec.Suits(float64(low), float64(high)); err != nil {
			return &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("has values from %g to %g, but %v", low, high, err),
				Hint: "save them as uint8, which is scaled, or scale them to [0,1]"}
		}
	}
	return nil
}

// halted returns [ErrInterrupted] for the error of a context that was cancelled before there was a run.
func halted(err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrInterrupted
	}
	return err
}

// bareSession has a learner, but nothing that it could learn from.
func bareSession(spec *config.Model, shape []int, o Options) (s *session, err error) {
	if o.Team == nil {
		o.Team = alone{}
	}
	s = &session{options: o, spec: spec, shape: shape, encoded: map[string][]byte{}}
	if method, ok := spec.Baseline.(baselines.Method); ok {
		s.learner, err = newFit(s, method)
	} else if method, ok := spec.Optimizer.Optimizer.(optim.Search); ok {
		s.learner, err = newSearch(s, method)
	} else {
		s.learner, err = newNetwork(s)
	}
	return s, err
}

// finishedSession has what a finished run is checked and completed with.
func finishedSession(spec *config.Model, from *stored, o Options) (*session, error) {
	s, err := bareSession(spec, from.shape, o)
	if err != nil {
		return nil, err
	}
	s.identity = newIdentity(spec, from.Images, nil)
	s.identity.Data = from.Data
	return s, s.restore(from)
}

// restore sets the session to where the state was written.
func (s *session) restore(from *stored) error {
	if err := s.fits(from); err != nil {
		return err
	}
	s.progress = from.progress
	return s.learner.restore(from)
}

// close frees what the session holds. The writer must have ended.
func (s *session) close() {
	s.learner.close()
	if s.folder != nil {
		_ = s.folder.Close()
	}
}

// firstFiles are those of a new run.
func (s *session) firstFiles() ([]folder.File, error) {
	environment, err := s.environment()
	if err != nil {
		return nil, err
	}
	checkpoint, err := s.checkpoint()
	if err != nil {
		return nil, err
	}
	return append([]folder.File{{Name: folder.Config, Data: config.Fill(s.spec)}, {Name: folder.Environment, Data: environment}},
		checkpoint...), nil
}

// checkpoint returns the files of the run's present state, once the last ones are on the disk. The state comes first: the others
// are derived from it.
func (s *session) checkpoint() ([]folder.File, error) {
	if err := s.writer.Wait(); err != nil {
		return nil, err
	}
	state, err := s.encodeState()
	if err != nil {
		return nil, err
	}
	derived, err := s.learner.derived()
	if err != nil {
		return nil, err
	}
	return append([]folder.File{state}, derived...), nil
}

// encodeState returns the file from which a run can go on.
func (s *session) encodeState() (folder.File, error) {
	f := &checkpoint.File{Metadata: s.metadata("state", s.progress.Epoch, s.progress.Step)}
	for key, value := range map[string]any{identityKey: s.identity, progressKey: s.progress} {
		text, err := json.Marshal(value)
		if err != nil {
			return folder.File{}, fmt.Errorf("state: %w", err)
		}
		f.Metadata[key] = string(text)
	}
	if err := s.learner.save(f); err != nil {
		return folder.File{}, err
	}
	return s.encode(folder.State, f)
}

// encode returns a file to write, in the memory of the last one of that name: of a large model one is a hundred megabytes.
func (s *session) encode(name string, f *checkpoint.File) (folder.File, error) {
	b, err := checkpoint.Encode(f, s.encoded[name])
	if err == nil {
		s.encoded[name] = b
	}
	return folder.File{Name: name, Data: b}, err
}

// length returns how many epochs a run of spec has, unless it ends early. Of a baseline they are iterations.
func length(spec *config.Model) int {
	if method, ok := spec.Baseline.(baselines.Method); ok {
		return method.MostIterations()
	}
	return spec.Train.Epochs
}

// stepsPerEpoch counts the last, shorter batch. An iteration of a baseline or of a search is one step.
func (s *session) stepsPerEpoch() int {
	if _, search := s.spec.Optimizer.Optimizer.(optim.Search); search || s.spec.Baseline != nil {
		return 1
	}
	return (s.identity.Images + s.spec.Train.Batch - 1) / s.spec.Train.Batch
}

// finished reports whether nothing is left to do.
func (s *session) finished() bool { return over(s.spec, s.progress) }

func over(spec *config.Model, p progress) bool { return p.Stopped || p.Epoch >= length(spec) }

// result says how the run ended.
func (s *session) result() *Result {
	r := &Result{Run: s.folder.Path(), Epochs: s.progress.Epoch, Step: s.progress.Step, StoppedEarly: s.progress.Stopped}
	if b := s.progress.Best; b != nil {
		r.BestEpoch, r.BestError = b.Epoch, b.Error
	}
	return r
}

// repair completes a finished run that was killed between its last renames: it writes the derived files that differ
// from the state, and none when none does.
func (s *session) repair() error {
	files, err := s.learner.derived()
	if err != nil {
		return err
	}
	var differing []folder.File
	for _, f := range files {
		if !s.folder.Holds(f) {
			differing = append(differing, f)
		}
	}
	if len(differing) > 0 {
		err = s.folder.Write(differing...)
	}
	return errors.Join(err, s.folder.CutMetrics(s.progress.Epoch))
}
