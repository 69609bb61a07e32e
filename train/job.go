package train

import (
	"encoding/json"
	"strconv"
	"time"

	"tessera/baselines"
	"tessera/config"
	"tessera/data"
	"tessera/optim"
)

// job is the learner's view of its run: the model, the images and the progress, which the learner updates.
type job struct {
	options    Options
	processes  *processes
	spec       *config.Model
	shape      []int // of one image
	run        string
	images     *data.Images // fitted
	samples    samples
	files      []data.File // files of the data set
	started    *data.File  // file of the initial parameters; nil if they are random
	identity   identity
	arithmetic Arithmetic // with which the run was started
	progress   progress

	epochFrom time.Time // when this process started the current epoch
}

// metadata returns the metadata of every checkpoint of a run.
func (j *job) metadata(contents string, epoch, step int) map[string]string {
	shape, _ := json.Marshal(j.shape) // integers cannot fail
	m := map[string]string{formatKey: formatText, contentsKey: contents, modelKey: j.spec.Name, shapeKey: string(shape),
		epochKey: strconv.Itoa(epoch), stepKey: strconv.Itoa(step), declarationKey: string(config.Fill(j.spec))}
	if j.spec.Baseline != nil {
		m[kindKey] = j.spec.Kind
	}
	return m
}

// length returns the maximum number of epochs of a run of spec; for a baseline, of iterations.
func length(spec *config.Model) int {
	if method, ok := spec.Baseline.(baselines.Method); ok {
		return method.MostIterations()
	}
	return spec.Train.Epochs
}

// searches reports whether the optimizer is a full-batch optimizer.
func (j *job) searches() bool {
	_, search := j.spec.Optimizer.Optimizer.(optim.Search)
	return search
}

// stepsPerEpoch includes the last, smaller batch of every pass. An iteration of a baseline or of a full-batch optimizer is one step.
func (j *job) stepsPerEpoch() int {
	if j.searches() || j.spec.Baseline != nil {
		return 1
	}
	return j.passes() * j.stepsPerPass()
}

func (j *job) stepsPerPass() int {
	return (j.identity.Images + j.spec.Train.Batch - 1) / j.spec.Train.Batch
}

// passes is how often an epoch passes over the images: once, or as often as train.min_epoch_steps needs.
func (j *job) passes() int {
	if j.searches() || j.spec.Baseline != nil {
		return 1
	}
	return max(1, (j.spec.Train.MinEpochSteps+j.stepsPerPass()-1)/j.stepsPerPass())
}

// epochImages counts the images of an epoch, in each of its passes.
func (j *job) epochImages() int { return j.passes() * j.identity.Images }

// finished reports whether the run is complete.
func (j *job) finished() bool { return over(j.spec, j.progress) }

func over(spec *config.Model, p progress) bool { return p.Stopped || p.Epoch >= length(spec) }

// spent is the time spent on the current epoch, in seconds.
func (j *job) spent() float64 { return j.progress.Seconds + time.Since(j.epochFrom).Seconds() }
