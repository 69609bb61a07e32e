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

// job is what a learner knows of its run: the model, the images, and where the run is, which the learner counts.
type job struct {
	options    Options
	spec       *config.Model
	shape      []int // of one image
	run        string
	images     *data.Images // fitted
	files      []data.File  // the data set was read from
	started    *data.File   // the first parameters were read from; nil where they were drawn
	identity   identity
	arithmetic Arithmetic // with which the run was begun
	progress   progress

	epochFrom time.Time // when this process began with the current epoch
}

// metadata returns what every checkpoint of a run says.
func (j *job) metadata(contents string, epoch, step int) map[string]string {
	shape, _ := json.Marshal(j.shape) // integers cannot fail
	m := map[string]string{formatKey: formatText, contentsKey: contents, modelKey: j.spec.Name, shapeKey: string(shape),
		epochKey: strconv.Itoa(epoch), stepKey: strconv.Itoa(step), declarationKey: string(config.Fill(j.spec))}
	if j.spec.Baseline != nil {
		m[kindKey] = j.spec.Kind
	}
	return m
}

// length returns how many epochs a run of spec has, unless it ends early. Of a baseline they are iterations.
func length(spec *config.Model) int {
	if method, ok := spec.Baseline.(baselines.Method); ok {
		return method.MostIterations()
	}
	return spec.Train.Epochs
}

// searches reports whether the optimizer evaluates the objective over all images.
func (j *job) searches() bool {
	_, search := j.spec.Optimizer.Optimizer.(optim.Search)
	return search
}

// stepsPerEpoch counts the last, shorter batch. An iteration of a baseline or of a search is one step.
func (j *job) stepsPerEpoch() int {
	if j.searches() || j.spec.Baseline != nil {
		return 1
	}
	return (j.identity.Images + j.spec.Train.Batch - 1) / j.spec.Train.Batch
}

// finished reports whether nothing is left to do.
func (j *job) finished() bool { return over(j.spec, j.progress) }

func over(spec *config.Model, p progress) bool { return p.Stopped || p.Epoch >= length(spec) }

// spent is the time spent on the current epoch, in seconds.
func (j *job) spent() float64 { return j.progress.Seconds + time.Since(j.epochFrom).Seconds() }
