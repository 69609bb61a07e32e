// Package hooks contains procedures that run around the training steps: pruning, moving averages, adversarial examples, early
// stopping.
//
// A [Hook] is one file: a struct whose tagged fields are the keys of its table [model.NAME.hook.HOOK], a registration in
// [Registry], and the method Attach, which returns the functions of the hook for one [Training]: its [Active] form. The loop of
// package train loads a batch, computes the gradients, updates the parameters and projects them. Between these actions it
// calls the functions of every hook in the order of their [Stage]. Values that persist between steps are saved with the run's
// state ([State]): a resumed run gives the same bytes.
package hooks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tessera/data"
	"tessera/metrics"
	"tessera/part"
)

// Hook is a declared procedure around the training steps: a pointer to a struct with its settings. Training must not change
// the settings; values that change belong to the active form.
type Hook interface {
	// Attach returns the active form for one training. The parameters exist but are not initialised yet; images are
	// available from Active.Prepare on. A hook must not keep anything else of the training.
	Attach(t Training) (*Active, error)
}

// Registry contains every hook that can be declared.
var Registry = part.New[Hook]("hook")

// Stage determines when a hook's functions are called relative to other hooks: in the order of the stages, within a stage
// in the order of the hooks' names. The phases of pruning keep their declared order.
type Stage int

// The stages. A hook may name a stage between two of them: Follow + 1 comes after the moving average, before early stopping.
const (
	Prepare  Stage = 100 // prepares images before the first step: decomposition
	Select   Stage = 200 // selects or changes parameters before a step: prune
	Distort  Stage = 300 // changes the images of a step: adversarial
	Follow   Stage = 400 // maintains values that depend on the parameters: average
	Evaluate Stage = 500 // evaluates a complete epoch: early_stopping
	Last     Stage = 600 // all hooks without a stage: plateau, revive, teacher
)

// Staged is implemented by hooks with a stage.
type Staged interface{ Stage() Stage }

// StageOf returns the stage of a hook, [Last] by default.
func StageOf(h Hook) Stage {
	if s, ok := h.(Staged); ok {
		return s.Stage()
	}
	return Last
}

// Preparing is implemented by hooks that prepare images for a first layer. They are attached to every model with a suitable
// first layer, declared or not.
type Preparing interface {
	// Prepares reports whether the hook handles that preparation; see layers.Preparing.
	Prepares(preparation any) bool
}

// Declared is what a hook can see of a model before it is trained.
type Declared struct {
	Pixels      int  // values of one image
	Decodes     bool // the model has a decoder
	Preparation any  // of the encoder's first layer, see layers.Preparing; nil if it needs none

	// Parameters lists the parameters that match a glob, without values, in the order of the model.
	Parameters func(glob string) []*Parameter
}

// Selective is implemented by hooks that suit only some models.
type Selective interface {
	// Suits returns the reason why the hook cannot work in a model.
	Suits(m Declared) error
}

// Distorting is implemented by hooks that change the encoded images. A batch then also contains the clean images.
type Distorting interface{ Distorts() }

// Lender is implemented by hooks that lend values of all parameters of the model ([Active.Lend]): a second model, whose values a loss
// reads by the name of the hook (key teacher).
type Lender interface{ Lends() }

// Globbed is implemented by hooks that apply to the parameters of a glob, which must match a trainable parameter.
type Globbed interface {
	// Glob returns the key and its value.
	Glob() (key, glob string)
}

// NeedsSteps is implemented by hooks that cannot be combined with a full-batch optimizer.
type NeedsSteps interface {
	// NeedsSteps returns the reason, in which %s is the optimizer, and the remedy.
	NeedsSteps() (problem, hint string)
}

// Replicated is implemented by hooks that do the same in every process of a distributed training. All processes have the same
// parameters, counters and metrics, and each runs programs of [Training.Compile] completely. [Step.Images] is only the
// process's part of the batch: a hook that reads it is not Replicated, and distributed training refuses it.
type Replicated interface {
	// Replicated reports whether the hook reads or changes Parameter.State, which is divided if the optimizer is sharded.
	Replicated() (state bool)
}

// Active is a hook in one training: the functions that the training loop calls. Each function may be nil. An error ends the
// training.
//
// The calls of a training, in order:
//
//	Restore                     of a resumed training
//	Prepare                     for the fitted images, then for the images that are measured between epochs
//	Initialise                  of a new training only: the parameters have their initial values
//	Begin                       in every process that trains
//	  BeginEpoch                before the first step of an epoch
//	    BeforeStep              the batch is loaded
//	    Gradients               the gradients are computed
//	    Project, AfterUpdate    during the update of the parameters, on several threads
//	    AfterStep               the parameters are updated
//	  EndEpoch                  the epoch is measured
//	Save                        for every checkpoint, also in the middle of an epoch
//	Close                       at the end
//
// With a full-batch optimizer (lbfgs) an epoch is one iteration without steps: no hook may have functions of steps.
type Active struct {
	Initialise func() error
	Begin      func() error
	BeginEpoch func() error
	BeforeStep func(s *Step) error
	AfterStep  func() error
	EndEpoch   func(e *Epoch) error

	// Prepare returns the input of the encoder's first layer that replaces these images. Only hooks that are [Preparing]
	// for that layer have this function. Programs that compute a gradient with respect to the images do not use it.
	Prepare func(images *data.Images) (Prepared, error)

	// Gradients is called in every step between the gradients and the update.
	Gradients func(g *Gradients) error

	// Project is called after the constraints of a trainable parameter p. values start at index from of p, or of a copy
	// of p ([Active.Substitute]). Project must be elementwise and idempotent. Several threads call it at once for different
	// values.
	Project func(p *Parameter, values []float32, from int)

	// AfterUpdate gets the values of a trainable parameter that start at index from, once in every step, after their
	// projection and while they are in the cache. It must be elementwise; scratch is a buffer of 4096 values per thread.
	// Several threads call it at once for different values.
	AfterUpdate func(p *Parameter, values []float32, from int, scratch []float32)

	// Average returns the hook's moving average of p, nil if there is none. It is prefetched before AfterUpdate, and
	// [Training.Rewrite] changes it.
	Average func(p *Parameter) []float32

	// Lend lists further parameters that the training's programs can read, under the path HOOK.PATH. The list and its
	// memory must not change.
	Lend func() []*Parameter

	// Substitute returns the values that replace those of p, after their projection, in the model that is validated, saved
	// and opened. At most one hook of a training may have it.
	Substitute func(p *Parameter) []float32

	// Best returns the epoch that replaces the last one, nil if there is none yet. At most one hook of a training may have
	// it.
	Best func() *BestEpoch

	// Rate is the factor of the learning rate in the current step.
	Rate func() float64

	Save    func(s *State)
	Restore func(s *State) error
	Close   func() error
}

// Stepwise reports whether the active form has functions that are only called in mini-batch training.
func (a *Active) Stepwise() bool {
	return a.BeforeStep != nil || a.Gradients != nil || a.AfterStep != nil || a.Project != nil || a.AfterUpdate != nil || a.Rate != nil
}

// Prepared computes a layer's input from prepared images.
type Prepared interface {
	// Batch writes the input for the images at those indices to dst, one after the other. Several threads call it at once.
	Batch(dst []float32, indices []int)
}

// Step is one step of a training, before it is computed.
type Step struct {
	// Images are the encoded images of the batch, one after the other; a [Distorting] hook may change them. In a model that
	// reads only views they are all first views, then all second views: 2 Size images.
	Images []float32
	Clean  []float32 // the images to reconstruct, if a hook of the model is Distorting; else nil
	Size   int       // number of images
}

// Gradients are the gradients of a step, before the players clip them and move their parameters.
type Gradients struct {
	Of []*Parameter // all trainable parameters

	// Values has the gradient of each of these parameters, as long as its Data; nil for one that does not move in this step. The memory
	// belongs to the program and must not be written, but Values[i] may be replaced, also by nil: the parameter then stays where it is.
	Values [][]float32

	// Again computes the gradients of the same batch, with the same noise, at the current values of the parameters, and sets Values to
	// them. Afterwards the hook must set the parameters back. Running averages of layers do not change a second time.
	Again func() error
}

// Epoch is a complete epoch.
type Epoch struct {
	Epoch   int            // from 1
	Step    int            // steps done since the beginning of the training
	Metrics metrics.Values // the loss, its terms and the metrics, by their keys in metrics.jsonl
}

// error is the criterion of the epoch: val_mse; without a decoder val_loss; without that the sum of the heads' negative
// log-likelihoods on the validation images; loss if none of them is measured.
func (e *Epoch) error() float64 {
	for _, name := range []string{"val_mse", "val_loss"} {
		if v, ok := e.Metrics.Number(name); ok {
			return v
		}
	}
	sum, measured := 0.0, false
	for _, v := range e.Metrics {
		if v.Missing == "" && isLikelihood(v.Name) {
			sum, measured = sum+v.Number, true
		}
	}
	if !measured {
		sum, _ = e.Metrics.Number("loss")
	}
	return sum
}

// isLikelihood reports whether a metric is the negative log-likelihood of a head on the validation images: val_nll, or
// val_HEAD.nll for several heads.
func isLikelihood(name string) bool {
	return name == "val_nll" || strings.HasPrefix(name, "val_") && strings.HasSuffix(name, ".nll")
}

// BestEpoch is the epoch with the lowest error, and its parameters.
type BestEpoch struct {
	Epoch  int
	Step   int
	Error  float64
	Values [][]float32 // of all parameters, in the order of the model
}

// Training gives a hook access to the training that it is attached to.
type Training interface {
	// Parameters lists the parameters that a glob matches, in the order of the model; "*" matches all.
	Parameters(glob string) []*Parameter
	// Evaluated returns the values of p in the model that is validated and saved: the values of p, or their
	// [Active.Substitute].
	Evaluated(p *Parameter) []float32
	// Rewrite calls change for the values of p and for every moving average of p ([Active.Average]). Only BeginEpoch,
	// BeforeStep, AfterStep and EndEpoch may call it.
	Rewrite(p *Parameter, change func(values []float32))
	// Project applies the constraints and the projections of hooks to p, as after every step. It may be called where
	// Rewrite may be called.
	Project(p *Parameter)
	// Preparation describes the preparation of the encoder's first layer, nil if it has none. See layers.Preparing.
	Preparation() any
	// Images are the training images in the order of the data set. Available from Active.Prepare on.
	Images() *data.Images
	// BatchSizes lists the sizes of the batches of an epoch.
	BatchSizes() []int
	// Compile returns a program that computes a value of the model without noise, at the current parameters. It is compiled
	// for these batch sizes; other sizes are compiled at their first use. Available from Active.Begin on; the program is
	// closed with the training.
	Compile(want Value, images ...int) (Program, error)
	// Random returns the hook's random stream for a counter, for example the step. Equal counters give equal numbers, also
	// after a resume.
	Random(counter int) *rand.Rand
	// Epoch is the number of complete epochs, Step the number of complete steps.
	Epoch() int
	Step() int
	// Stop ends the training after the current epoch.
	Stop()
	// Threads is the number of goroutines of Do, which calls f(0), ..., f(Threads()-1) concurrently and waits for all.
	Threads() int
	Do(f func(thread int))
}

// Parameter is one named tensor of a model.
type Parameter struct {
	Index     int    // in the model
	Path      string // encoder.0.weight
	Shape     []int
	Data      []float32   // row-major
	State     [][]float32 // the optimizer's state, each as long as Data; empty for a parameter that it does not update
	Trainable bool        // updated by the optimizer
	Frozen    bool        // never changes; a parameter that is neither is updated by a rule of its layer (a running average)
	Started   bool        // initialised from another run
}

// Value names the output of a program.
type Value int

// The values.
const (
	Code   Value = iota // of the images: (images, units)
	Output              // the reconstruction: (images, pixels)

	// ImageGradient is the gradient, with respect to the images, of the sum of the weighted terms that compare the output with
	// the images: (images, pixels). The terms are means over the given images, compared with the clean ones. A scheduled weight
	// has its last value, a multiplier its first.
	ImageGradient
)

// Program computes one value. It is not safe for concurrent use.
type Program interface {
	// Run returns the value for images; it is valid until the next Run. Only ImageGradient reads clean.
	Run(images, clean []float32) ([]float32, error)
}

// State is the state of a hook in a checkpoint: tensors and one JSON record. Their names in the file are hook/NAME/TENSOR
// and hook/NAME.
type State struct {
	Tensors []Tensor
	Record  json.RawMessage // nil if the hook has none
}

// Tensor is one named array of a state. Its values are read when the checkpoint is encoded, before the next step.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Put adds a tensor.
func (s *State) Put(name string, shape []int, values []float32) {
	s.Tensors = append(s.Tensors, Tensor{name, shape, values})
}

// Load copies the tensor of that name.
func (s *State) Load(name string, shape []int, into []float32) error {
	i := slices.IndexFunc(s.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("%s is missing", name)
	}
	if t := s.Tensors[i]; !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("%s has shape %v, want %v", name, t.Shape, shape)
	}
	copy(into, s.Tensors[i].Values)
	return nil
}

// putAll adds the values that a hook has of these parameters, under their paths.
func (s *State) putAll(of []*Parameter, values [][]float32) {
	for i, p := range of {
		s.Put(p.Path, p.Shape, values[i])
	}
}

// loadAll copies the values that putAll added.
func (s *State) loadAll(of []*Parameter, into [][]float32) error {
	for i, p := range of {
		if err := s.Load(p.Path, p.Shape, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// PutRecord sets the record. v must be a struct of finite numbers, strings and lists of them. PutRecord panics if v cannot
// be encoded as JSON, which is a bug of the hook.
func (s *State) PutRecord(v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("hooks: the record cannot be encoded as JSON: %v", err))
	}
	s.Record = text
}

// LoadRecord reads the record into v. It does not change v if there is no record.
func (s *State) LoadRecord(v any) error {
	if s.Record == nil {
		return nil
	}
	return json.Unmarshal(s.Record, v)
}
