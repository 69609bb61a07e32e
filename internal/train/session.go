package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/atomicfile"
	"tessera/internal/panics"
	"tessera/internal/parallel/team"
	"tessera/internal/sealed"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/volume"
	"tessera/optim"
)

// session is one run in this process, with its folder, checkpoints and reports. It calls the learner; the learner uses only
// the job.
type session struct {
	*job
	learner learner
	folder  *folder.Folder
	writer  writer
	encoded map[string][]byte // earlier files by name, to reuse their memory

	saved    time.Time // time at which the last checkpoint was passed to the writer
	began    time.Time // time of this process's first step
	beganAt  int       // number of steps at that time
	reported time.Time
}

// learner trains the model of a run: an auto-encoder by gradients, or a baseline by its rule. It updates the job's
// progress.
type learner interface {
	// begin prepares the learner for its first epoch, or for the next epoch after a restored state. If fresh, it also
	// initialises the run: parameters of another run, first functions of hooks.
	begin(ctx context.Context, splits data.Splits, fresh bool) error
	// epoch trains to the end of the current epoch and measures it; it calls report after every step. When ctx ends, it stops
	// with errHalted, and the session can then be saved.
	epoch(ctx context.Context, report func(measure func() Metrics)) (Metrics, error)
	// save adds the learner's state to the file.
	save(state *checkpoint.File) error
	// restore loads the learner's state.
	restore(from *stored) error
	// derived returns the model files that are derived from the state.
	derived() ([]derived, error)
	// kept returns the epoch that replaces the last one; nil if there is none.
	kept() (*hooks.BestEpoch, error)
	// close frees the learner's memory.
	close()
}

type derived struct {
	name string
	file *checkpoint.File
}

// newSession loads the data and creates a learner from a state or, if the state is nil, a new one. It writes nothing.
func newSession(ctx context.Context, spec *config.Model, o Options, from *stored) (*session, data.Splits, error) {
	set, err := o.load(ctx, &spec.Dataset)
	if err != nil {
		return nil, data.Splits{}, halted(err)
	}
	if from != nil && !slices.Equal(from.shape, set.Shape) {
		return nil, data.Splits{}, &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("its samples do not have the shape of the training samples (got %v, want %v)", set.Shape, from.shape)}
	}
	if from == nil && o.Warn != nil {
		for _, note := range set.Notes {
			o.Warn(note)
		}
	}
	spec = spec.For(set.Shape, set.Columns()) // config.toml contains every size
	splits, err := begun(spec, set)
	if err != nil {
		return nil, splits, err
	}
	if from == nil && o.Warn != nil {
		for _, text := range cautions(spec, splits.Fit) {
			o.Warn(text)
		}
		if leave := spec.Dataset.Leave; leave > 0 {
			if count, first := splits.Fit.Fewer(leave); count > 0 {
				o.Warn(fmt.Sprintf("leave = %d: %d of %d samples, the first of them %d, have no more entries than that: all of theirs are fitted", leave, count, splits.Fit.Len(), first))
			}
		}
	}
	s, err := bareSession(spec, set.Shape, o)
	if err != nil {
		return nil, splits, err
	}
	s.images, s.files, s.samples = splits.Fit, set.Files, samplesOf(spec, set, splits)
	s.identity = newIdentity(spec, s.images.Len(), s.files)
	s.identity.Labels = labelSum(spec, s.images)
	err = s.agree()
	if err == nil && from != nil {
		err = s.restore(from)
	}
	if err != nil {
		s.close()
		return nil, splits, err
	}
	return s, splits, nil
}

// beginSession is [newSession], and begins the learner.
func beginSession(ctx context.Context, spec *config.Model, o Options, from *stored) (*session, error) {
	s, splits, err := newSession(ctx, spec, o, from)
	if err != nil {
		return nil, err
	}
	if err := s.learner.begin(ctx, splits, from == nil); err != nil {
		s.close()
		return nil, halted(err)
	}
	return s, nil
}

// halted returns [ErrInterrupted] if err is the error of a cancelled context. The run was not created yet.
func halted(err error) error {
	if errors.Is(err, context.Canceled) {
		return ErrInterrupted
	}
	return err
}

// bareSession returns a session with a learner but without data.
func bareSession(spec *config.Model, shape []int, o Options) (s *session, err error) {
	if o.Team == nil {
		o.Team = team.New(1)
	}
	s = &session{job: &job{options: o, processes: o.processes(), spec: spec, shape: shape, training: spec.Training(), text: spec.Text(), arithmetic: o.arithmetic()},
		encoded: map[string][]byte{}}
	if method := spec.Baseline; method != nil {
		s.streams, s.arithmetic = true, Arithmetic{Kernel: s.arithmetic.Kernel} // any number of threads gives the same bits, and there is no graph
		s.learner, err = newFit(s.job, method)
	} else if method, ok := spec.Optimizer.Optimizer.(optim.Search); ok {
		s.learner, err = newSearch(s.job, method)
	} else {
		s.learner, err = newNetwork(s.job)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// finishedSession returns a session for checking and completing a finished run.
func finishedSession(spec *config.Model, from *stored, o Options) (*session, error) {
	s, err := bareSession(spec.For(from.shape, from.columns), from.shape, o)
	if err != nil {
		return nil, err
	}
	s.identity = newIdentity(spec, from.Images, nil)
	s.identity.Data, s.identity.Labels = from.Data, from.Labels
	if err := s.restore(from); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) restore(from *stored) error {
	if err := s.fits(from); err != nil {
		return err
	}
	if other := from.arithmetic.differs(s.arithmetic); other != "" && s.options.Warn != nil {
		s.options.Warn("the run was started with " + other + ": the last bits of the result may differ from an uninterrupted run")
	}
	s.arithmetic = from.arithmetic
	s.progress = from.progress
	var err error
	if s.samples, err = storedSamples(from.path, from.file, volume.Of(from.shape)); err != nil {
		return err
	}
	return s.learner.restore(from)
}

// close frees the session's memory. The writer must have finished.
func (s *session) close() {
	s.learner.close()
	if s.folder != nil {
		_ = s.folder.Close()
	}
}

// firstFiles returns the files of a new run.
func (s *session) firstFiles() ([]folder.File, error) {
	environment, err := s.environment()
	if err != nil {
		return nil, err
	}
	checkpoint, err := s.checkpoint()
	if err != nil {
		return nil, err
	}
	return append([]folder.File{{Name: folder.Config, Data: s.text}, {Name: folder.Environment, Data: environment}},
		checkpoint...), nil
}

// checkpoint waits for the previous checkpoint and returns the files of the run's current state. The state comes first: the
// other files are derived from it.
func (s *session) checkpoint() ([]folder.File, error) {
	if err := s.writer.Wait(); err != nil {
		return nil, err
	}
	f := &checkpoint.File{Metadata: s.metadata("state", s.progress.Epoch, s.progress.Step)}
	for key, value := range map[string]any{identityKey: s.identity, progressKey: s.progress, arithmeticKey: s.arithmetic} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		f.Metadata[key] = string(text)
	}
	if err := s.learner.save(f); err != nil {
		return nil, err
	}
	state, err := s.encode(derived{folder.State, f})
	if err != nil {
		return nil, err
	}
	files, err := s.derivedFiles()
	return append([]folder.File{state}, files...), err
}

// derivedFiles returns the files that are derived from the state.
func (s *session) derivedFiles() (files []folder.File, err error) {
	all, err := s.learner.derived()
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		f, err := s.encode(d)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// encode returns a file to write. It reuses the memory of the previous file with this name, which may be a hundred megabytes.
// The file of a learner that streams is encoded when it is written: see [session.write].
func (s *session) encode(d derived) (folder.File, error) {
	s.samples.add(d.file)
	if s.streams {
		content, err := checkpoint.NewStream(d.file)
		return folder.File{Name: d.name, Content: content}, err
	}
	b, err := checkpoint.Encode(d.file, s.encoded[d.name])
	if err == nil {
		s.encoded[d.name] = b
	}
	return folder.File{Name: d.name, Data: b}, err
}

// result returns a description of how the run ended.
func (s *session) result() (*Result, error) {
	r := &Result{Run: s.run, Epochs: s.progress.Epoch, Step: s.progress.Step, StoppedEarly: s.progress.Stopped}
	best, err := s.learner.kept()
	if err != nil {
		return nil, err
	}
	if best != nil {
		r.BestEpoch, r.BestError = best.Epoch, best.Error
	}
	if s.processes.leads() {
		r.Trained, err = s.trained()
	}
	return r, err
}

// trained returns the model that [Open] reads from the run's folder.
func (s *session) trained() (*Trained, error) {
	all, err := s.learner.derived()
	if err != nil {
		return nil, err
	}
	first := all[0] // the best epoch, if a hook selects one
	s.samples.add(first.file)
	if s.folder == nil { // of a trainer
		return open(s.spec, first.name, first.file)
	}
	t, err := open(s.spec, s.folder.Join(first.name), first.file)
	if err == nil {
		t.folder = s.run
	}
	return t, err
}

// repair removes files and lines that do not belong to the run's state: metrics left by a killed process, and the best epoch
// if early stopping was disabled later. In a finished run it also rewrites derived files that differ from the state.
func (s *session) repair(held *folder.Folder) error {
	atomicfile.Tidy(held.Path(), folder.Picture)
	if k, err := s.learner.kept(); err != nil {
		return err
	} else if k == nil {
		if err := held.Remove(folder.Best); err != nil {
			return err
		}
	}
	if s.finished() {
		files, err := s.derivedFiles()
		if err != nil {
			return err
		}
		if files = slices.DeleteFunc(files, held.Holds); len(files) > 0 {
			if err := held.Write(files...); err != nil {
				return err
			}
		}
	}
	if err := held.CutMetrics(s.progress.Epoch); err != nil {
		return err
	}
	if problem := held.MetricsProblem(s.progress.Epoch); problem != "" && s.options.Warn != nil {
		s.options.Warn(fmt.Sprintf("%s: %s: the history of the run before epoch %d is not whole; its parameters are not affected",
			held.Join(folder.Metrics), problem, s.progress.Epoch+1))
	}
	return nil
}

// job is the part of a run that the learner uses: the model, the images and the progress, which the learner updates.
type job struct {
	options    Options
	processes  *processes
	spec       *config.Model
	shape      []int // shape of one image
	run        string
	images     *data.Images // the fitted images
	samples    samples
	files      []data.File // files of the data set
	started    *data.File  // file of the initial parameters; nil if they are random
	identity   identity
	arithmetic Arithmetic // arithmetic with which the run was started
	training   config.Training
	text       []byte // config.toml
	streams    bool   // the next iteration changes the values of a file, which is encoded when it is written
	progress   progress
	dead       float64 // fraction of the units that are dead at the end of the last epoch; 0 if that is not measured

	unreachable string // warning of images or targets that the model does not reach, found at the end; "" for none

	epochFrom time.Time // time at which this process started the current epoch
}

// metadata returns the metadata for a checkpoint of the run.
func (j *job) metadata(contents string, epoch, step int) map[string]string {
	shape, _ := json.Marshal(j.shape) // integers cannot fail
	m := map[string]string{formatKey: formatText, contentsKey: contents, modelKey: j.spec.Name, shapeKey: string(shape),
		epochKey: strconv.Itoa(epoch), stepKey: strconv.Itoa(step), declarationKey: string(j.text)}
	if j.training.Method != "" {
		m[kindKey] = j.training.Method
	}
	if list := j.spec.Columns(); len(list) > 0 {
		text, _ := json.Marshal(list) // texts and numbers cannot fail
		m[columnsKey] = string(text)
	}
	return m
}

// stepsPerEpoch returns the number of steps per epoch, including the last, smaller batch of every pass. An iteration is one step.
func (j *job) stepsPerEpoch() int {
	if j.training.Iterates {
		return 1
	}
	return j.passes() * j.stepsPerPass()
}

func (j *job) stepsPerPass() int {
	return (j.identity.Images + j.spec.Train.Batch - 1) / j.spec.Train.Batch
}

// passes returns the number of passes over the images in an epoch: one, or as many as train.min_epoch_steps requires.
func (j *job) passes() int {
	if j.training.Iterates {
		return 1
	}
	return max(1, (j.spec.Train.MinEpochSteps+j.stepsPerPass()-1)/j.stepsPerPass())
}

// epochImages returns the number of images in an epoch, counted once per pass.
func (j *job) epochImages() int { return j.passes() * j.identity.Images }

func (j *job) finished() bool { return over(j.spec, j.progress) }

func over(spec *config.Model, p progress) bool { return p.Stopped || p.Epoch >= spec.Training().Most }

func (j *job) spent() float64 { return j.progress.Seconds + time.Since(j.epochFrom).Seconds() }

// reportEvery is the minimum time between two reports within an epoch.
const reportEvery = 100 * time.Millisecond

func (s *session) train(ctx context.Context) (*Result, error) {
	if err := s.processes.wait(); err != nil { // data and programs are ready
		return nil, err
	}
	now := time.Now()
	s.began, s.beganAt, s.saved = now, s.progress.Step, now
	defer func() { _ = s.writer.Wait() }() // a panic must not leave a file half written; other errors are returned below
	for !s.finished() {
		if err := s.epoch(ctx); err != nil {
			return nil, errors.Join(err, s.writer.Wait())
		}
	}
	if err := s.writer.Wait(); err != nil {
		return nil, err
	}
	if err := s.processes.wait(); err != nil { // the last checkpoint is written
		return nil, err
	}
	clear(s.encoded)
	return s.result()
}

func (s *session) epoch(ctx context.Context) error {
	s.epochFrom = time.Now()
	m, err := s.learner.epoch(ctx, s.within)
	if errors.Is(err, errHalted) {
		return s.interrupt(ctx)
	} else if err != nil {
		return err
	}
	return s.endEpoch(m)
}

// interrupt writes a checkpoint in the middle of an epoch.
func (s *session) interrupt(ctx context.Context) error {
	s.progress.Seconds = s.spent()
	files, err := s.checkpoint()
	if err != nil {
		return err
	}
	if s.processes.leads() {
		if err := s.folder.SyncMetrics(); err != nil {
			return err
		}
		if err := s.folder.Write(files...); err != nil {
			return err
		}
	}
	if err := s.processes.wait(); err != nil {
		return err
	}
	return &Interruption{Run: s.run, Step: s.progress.Step, Epoch: s.progress.Epoch + 1, Preempted: s.processes.preempted(ctx), Launcher: s.processes.launcher()}
}

// endEpoch writes a line of metrics and, if due, a checkpoint.
func (s *session) endEpoch(m Metrics) error {
	before := s.progress.Seconds
	s.progress.Seconds = 0
	if err := s.writer.Failed(); err != nil {
		return err
	}
	save, err := s.saves()
	if err != nil {
		return err
	}
	warning := s.watchCodes(m) // before the checkpoint, which records it
	var files []folder.File
	if save {
		if files, err = s.checkpoint(); err != nil { // its time is this epoch's
			return err
		}
	}
	if !s.processes.leads() {
		return nil
	}
	line, err := s.line(&m, before)
	if err != nil {
		return err
	}
	if err := s.folder.Append(sealed.Line(line)); err != nil {
		return err
	}
	if save {
		if err := s.write(files); err != nil {
			return err
		}
	}
	s.report(m, true)
	if warning != "" && s.options.Warn != nil {
		s.options.Warn(warning)
	}
	if s.finished() {
		s.diagnose(m)
	}
	return nil
}

// line sets the times of an epoch, of which before were spent by earlier processes, and returns its line of metrics.
func (s *session) line(m *Metrics, before float64) ([]byte, error) {
	m.Seconds = before + time.Since(s.epochFrom).Seconds()
	m.ImagesPerSecond = float64(s.epochImages()) / m.Seconds
	return m.MarshalJSON()
}

// write starts to write a checkpoint. If the next iteration changes the values, it also waits until the checkpoint is written: a second
// copy of the codes of many rows would need too much memory.
func (s *session) write(files []folder.File) error {
	s.saved = time.Now()
	err := s.writer.Start(s.folder, files)
	if err == nil && s.streams {
		err = s.writer.Wait()
	}
	return err
}

// saves reports whether a checkpoint is due, according to the clock of rank 0.
func (s *session) saves() (bool, error) {
	due := s.finished() || time.Since(s.saved).Seconds() >= s.spec.Train.CheckpointSeconds
	return s.processes.any(due && s.processes.leads())
}

// within reports the progress within an epoch if a report is due.
func (s *session) within(measure func() Metrics) {
	if s.options.Report != nil && time.Since(s.reported) >= reportEvery {
		s.report(measure(), false)
	}
}

func (s *session) report(m Metrics, done bool) {
	if s.options.Report == nil {
		return
	}
	s.reported = time.Now()
	epochs := s.training.Most
	steps := volume.Of([]int{s.stepsPerEpoch(), epochs})
	left := timeLeft(s.reported.Sub(s.began), s.progress.Step-s.beganAt, steps-s.progress.Step)
	if s.finished() {
		left = 0
	}
	s.options.Report(Progress{Run: s.run, Epochs: epochs, Steps: steps, Iterates: s.training.Method != "", Vectors: len(s.shape) == 1, EpochDone: done, Metrics: m, Left: left})
}

// timeLeft returns the estimated time for the remaining steps at the current speed, limited to the largest time.Duration.
func timeLeft(spent time.Duration, done, steps int) time.Duration {
	left := float64(spent) / float64(max(1, done)) * float64(steps)
	if left >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(left)
}

// writer writes checkpoints to the disk during training, one at a time. It gets encoded files, so training can continue to
// change the parameters.
type writer struct {
	done chan error // result of the checkpoint being written; nil if there is none
}

// Start waits for the previous checkpoint and starts to write the next one: first its metrics, then its files in order.
func (w *writer) Start(f *folder.Folder, files []folder.File) error {
	if err := w.Wait(); err != nil {
		return err
	}
	done := make(chan error, 1)
	w.done = done
	go func() {
		defer func() {
			if cause := recover(); cause != nil { // it would end the process with the exit code of a usage error
				done <- panics.Of(cause)
			}
		}()
		if err := f.SyncMetrics(); err != nil {
			done <- err
			return
		}
		done <- f.Write(files...)
	}()
	return nil
}

// Wait waits until the last checkpoint is on the disk and returns its error.
func (w *writer) Wait() error {
	if w.done == nil {
		return nil
	}
	err := <-w.done
	w.done = nil
	return err
}

// Failed returns the error of the last checkpoint if it has already failed.
func (w *writer) Failed() error {
	select {
	case err := <-w.done:
		w.done = nil
		return err
	default:
		return nil
	}
}
