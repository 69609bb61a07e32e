// Package hooks contains procedures that run around the training steps: pruning, moving averages, adversarial examples, early
// stopping.
//
// A [Hook] is one file: a struct whose tagged fields are the keys of its table [model.NAME.hook.HOOK], a registration in
// [Registry], and the method Attach. Attach returns the hook's functions for one [Training] as an [Active]. The loop of
// package train loads a batch, computes the gradients, updates the parameters and projects them. Between these actions it
// calls the functions of every hook in the order of their [Stage]. A hook saves values that persist between steps in the
// run's [State], so that a resumed run gives the same bytes.
package hooks

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"tessera/attack"
	"tessera/config/part"
	"tessera/data"
	"tessera/metrics"
)

// Hook is a declared procedure around the training steps: a pointer to a struct with its settings. A training must not change
// the settings; values that change belong to the [Active] hook.
type Hook interface {
	// Attach returns the hook's functions for one training. At this time the parameters exist but are not initialised; images
	// are available from Active.Prepare on. A hook must not keep references to other data of the training.
	Attach(t Training) (*Active, error)
}

// Registry contains every hook that can be declared.
var Registry = part.New[Hook]("hook")

// Stage determines when a hook's functions are called relative to other hooks: in the order of the stages, and within a stage
// in the order of the hooks' names. The phases of pruning keep the order of their declaration.
type Stage int

// The stages. A hook may define a stage between two of them: Follow + 1 comes after the moving average and before early
// stopping.
const (
	Prepare  Stage = 100 // prepares images before the first step: decomposition, decorrelation
	Select   Stage = 200 // selects or changes parameters before a step: prune
	Distort  Stage = 300 // changes the images of a step: adversarial
	Repeat   Stage = 350 // computes the gradients of a step again, before other hooks change them: sharpness
	Follow   Stage = 400 // maintains values that depend on the parameters: average
	Evaluate Stage = 500 // evaluates a complete epoch: early_stopping
	Last     Stage = 600 // default: background, plateau, revive, surgery, teacher
)

// Staged is implemented by hooks with a stage other than [Last].
type Staged interface{ Stage() Stage }

// StageOf returns the stage of a hook, [Last] by default.
func StageOf(h Hook) Stage {
	if s, ok := h.(Staged); ok {
		return s.Stage()
	}
	return Last
}

// Preparing is implemented by hooks that prepare images for a first layer. Every model with a suitable first layer has such a
// hook, declared or not.
type Preparing interface {
	// Prepares reports whether the hook can perform this preparation; see layers.Preparing.
	Prepares(preparation any) bool
}

// Declared contains the properties of a model that a hook can use before the training.
type Declared struct {
	Pixels      int    // values of one image
	Decodes     bool   // the model has a decoder
	Decoder     string // kind of the decoder's first layer that has weights or reads those of the encoder; empty for none
	Target      string // what the output is trained to equal: "images", or another column or value
	Terms       int    // number of loss terms
	Preparation any    // preparation that the encoder's first layer requires, see layers.Preparing; nil for none

	// Parameters lists the parameters that match a glob, without values, in the order of the model.
	Parameters func(glob string) []*Parameter
}

// Selective is implemented by hooks that are suitable only for some models.
type Selective interface {
	// Suits returns an error with the reason why the hook is not suitable for a model.
	Suits(m Declared) error
}

// Distorting is implemented by hooks that change the images that the encoder reads. A batch then also contains the clean
// images.
type Distorting interface{ Distorts() }

// Lender is implemented by hooks that provide a second set of values for all parameters ([Active.Lend]): a second model,
// whose values losses select by the name of the hook (key teacher).
type Lender interface{ Lends() }

// Separating is implemented by hooks that read the gradients of single loss terms ([Gradients.Terms]). The programs of the
// steps compute these gradients only for such a hook.
type Separating interface {
	// Separates lists the names of these terms, nil for all terms of the model.
	Separates() []string
}

// Globbed is implemented by hooks that apply to the parameters that match a glob. At least one of them must be trainable.
type Globbed interface {
	// Glob returns the key that contains the glob, and the glob.
	Glob() (key, glob string)
}

// Phased is implemented by hooks that act only in a phase of the training.
type Phased interface {
	// Begins returns the number of epochs after which the phase begins, and what a training without the phase lacks.
	Begins() (epoch int, without string)
}

// NeedsSteps is implemented by hooks that cannot be combined with a full-batch optimizer.
type NeedsSteps interface {
	// NeedsSteps returns the reason and the remedy for an error message. %s in the reason stands for the optimizer.
	NeedsSteps() (problem, hint string)
}

// Replicated is implemented by hooks that run identically in every process of a distributed training. All processes have the
// same parameters, counters and metrics, and each process runs programs of [Training.Compile] on the same images.
// [Step.Images], however, contains only this process's part of the batch: a hook that reads it is not Replicated, and
// distributed training rejects it.
type Replicated interface {
	// Replicated reports whether the hook reads or changes Parameter.State, which is divided among the processes if the
	// optimizer is sharded.
	Replicated() (state bool)
}

// Active is a hook attached to one training: the functions that the training loop calls. Each function may be nil. An error
// ends the training.
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
// With a full-batch optimizer (lbfgs) an epoch is one iteration without steps: no hook may have functions that are called in
// steps.
type Active struct {
	Initialise func() error
	Begin      func() error
	BeginEpoch func() error
	BeforeStep func(s *Step) error
	AfterStep  func() error
	EndEpoch   func(e *Epoch) error

	// Prepare returns the prepared input of the encoder's first layer for these images. Only hooks that are [Preparing] for
	// this layer have this function. Programs that compute a gradient with respect to the images do not use the prepared
	// input.
	Prepare func(images *data.Images) (Prepared, error)

	// Gradients is called in every step after the gradients are computed and before the update.
	Gradients func(g *Gradients) error

	// Project is called after the constraints have projected a trainable parameter p. values start at index from of p, or of
	// a copy of p ([Active.Substitute]). Project must be elementwise and idempotent. Several threads call it at once for
	// different values.
	Project func(p *Parameter, values []float32, from int)

	// AfterUpdate gets the values of a trainable parameter from index from on, once in every step, after their projection and
	// while they are in the cache. It must be elementwise; scratch is a buffer of 4096 values per thread. Several threads
	// call it at once for different values.
	AfterUpdate func(p *Parameter, values []float32, from int, scratch []float32)

	// Average returns the hook's moving average of p, nil if there is none. The training loop prefetches it before
	// AfterUpdate, and [Training.Rewrite] changes it.
	Average func(p *Parameter) []float32

	// Lend lists parameters of the hook that the training's programs can read, under the path HOOK.PATH. The list and its
	// memory must not be reallocated.
	Lend func() []*Parameter

	// Substitute returns the values that replace p, after projection, in the model that is validated, saved and opened. At
	// most one hook of a training may have this function.
	Substitute func(p *Parameter) []float32

	// Best returns the epoch that replaces the last one, nil if there is none yet. At most one hook of a training may have
	// this function.
	Best func() *BestEpoch

	// Rate returns the factor of the learning rate in the current step.
	Rate func() float64

	Save    func(s *State)
	Restore func(s *State) error
	Close   func() error
}

// Stepwise reports whether the hook has functions that are called only in mini-batch training.
func (a *Active) Stepwise() bool {
	return a.BeforeStep != nil || a.Gradients != nil || a.AfterStep != nil || a.Project != nil || a.AfterUpdate != nil || a.Rate != nil
}

// Prepared computes a layer's input from prepared images.
type Prepared interface {
	// Batch writes the inputs for the images at these indices to dst, one after the other. Several threads call it at once.
	Batch(dst []float32, indices []int)
}

// Step is one step of a training, before it is computed.
type Step struct {
	// Images are the encoded images of the batch, one after the other; a [Distorting] hook may change them. For a model that
	// reads only views, Images contains all first views, then all second views: 2 Size images.
	Images []float32
	Clean  []float32 // the images to reconstruct, if a hook of the model is Distorting; else nil
	Labels []float32 // the classes of the images, one-hot; zeros for an image without a label; nil if no term of the model reads labels
	Size   int       // number of images
	Epochs float64   // number of epochs before the step, including fractions
}

// Gradients contains the gradients of a step, before the players clip them and update their parameters.
type Gradients struct {
	Of []*Parameter // all trainable parameters

	// Values contains the gradient of each of these parameters, nil for a parameter that is not updated in this step. The
	// memory of a gradient belongs to the program and must not be written, but a hook may replace Values[i], also by nil: the
	// parameter is then not updated.
	Values [][]float32

	// Terms contains the gradients of the weighted loss terms that [Separating] hooks of the model name, in the order of the
	// model. A hook must not write to them. Values contains the sum over all terms of the model.
	Terms []TermGradient

	// Again computes the gradients of the same batch, with the same noise, at the current values of the parameters after the
	// projections of hooks ([Active.Project]), and replaces Values and Terms. The hook must then restore the parameters.
	// Running averages of layers are not updated a second time. It is an error if a hook called before has changed Values: the
	// changes would be lost. A hook that calls Again therefore has the stage [Repeat].
	Again func() error
}

// TermGradient is the gradient of one loss term with respect to each parameter of [Gradients.Of]. It is nil for a parameter
// that the term does not depend on, and for a parameter whose player does not minimise the term in this step.
type TermGradient struct {
	Term   string // name of the term in metrics.jsonl, without "loss."
	Values [][]float32
}

// Epoch describes a complete epoch.
type Epoch struct {
	Epoch   int            // number of the epoch, from 1
	Step    int            // steps done since the beginning of the training
	Metrics metrics.Values // the loss, its terms and the metrics, with the keys of metrics.jsonl
}

// error returns the error of the epoch: val_mse; without a decoder val_loss; without val_loss the sum of the heads' negative
// log-likelihoods on the validation images; if none of these is measured, the training loss.
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
	Values [][]float32 // values of all parameters, in the order of the model
}

// Training gives a hook access to the training.
type Training interface {
	// Parameters lists the parameters that a glob matches, in the order of the model; "*" matches all.
	Parameters(glob string) []*Parameter
	// Evaluated returns the values of p in the model that is validated and saved: the values of p, or their
	// [Active.Substitute].
	Evaluated(p *Parameter) []float32
	// Rewrite calls change for the values of p and for every moving average of p ([Active.Average]). Only BeginEpoch,
	// BeforeStep, AfterStep and EndEpoch may call it.
	Rewrite(p *Parameter, change func(values []float32))
	// Project applies the constraints and the projections of hooks to p, as after every step. It may be called in the same
	// functions as Rewrite.
	Project(p *Parameter)
	// Preparation returns the preparation that the encoder's first layer requires, nil if it requires none. See
	// layers.Preparing.
	Preparation() any
	// Images returns the training images in the order of the data set. Available from Active.Prepare on.
	Images() *data.Images
	// BatchSizes lists the different sizes of the batches of an epoch: the full one, and that of the last batch if it is smaller.
	BatchSizes() []int
	// Compile returns a program that computes a value of the model without noise, with the current parameters. It is compiled
	// for the given batch sizes; for other sizes it is compiled on first use. Available from Active.Begin on; the training
	// closes the program.
	Compile(want Value, images ...int) (Program, error)
	// CompileHead returns a program for attacks on a head: the gradient of an objective with respect to the images, without
	// noise, with the current parameters. images are the batch sizes, as in Compile.
	CompileHead(head string, objective attack.Objective, images ...int) (HeadProgram, error)
	// Random returns the hook's random stream for a counter, for example the step. Equal counters give equal numbers, even
	// after a resume.
	Random(counter int) *rand.Rand
	// Epoch returns the number of complete epochs; Step returns the number of complete steps.
	Epoch() int
	Step() int
	// Stop ends the training after the current epoch.
	Stop()
	// Threads returns the number of goroutines of Do. Do calls f(0), ..., f(Threads()-1) concurrently and waits for all.
	Threads() int
	Do(f func(thread int))
}

// Parameter is one named tensor of a model.
type Parameter struct {
	Index     int    // index in the model
	Path      string // encoder.0.weight
	Shape     []int
	Data      []float32   // row-major
	State     [][]float32 // the optimizer's state, each slice as long as Data (those of a rule for whole parameters: as it says); empty if the optimizer does not update the parameter
	Trainable bool        // updated by the optimizer
	Frozen    bool        // never changes; if neither Trainable nor Frozen, a rule of the layer updates the parameter (a running average)
	Started   bool        // initialised from another run
}

// Value names an output that a program can compute.
type Value int

// The outputs.
const (
	Code   Value = iota // codes of the images: (images, units)
	Output              // reconstructions: (images, pixels)

	// ImageGradient is the gradient, with respect to the images, of the sum of the weighted terms that compare the output
	// with the images: (images, pixels). The terms are means over the given images, which are compared with the clean ones. A
	// scheduled weight has its final value, an adaptive multiplier its initial value.
	ImageGradient
)

// Program computes one value. It is not safe for concurrent use.
type Program interface {
	// Run returns the value for images; the result is valid until the next Run. Only ImageGradient reads clean.
	Run(images, clean []float32) ([]float32, error)
}

// HeadProgram computes the gradient and the logits for an attack on a head. It is not safe for concurrent use.
type HeadProgram interface {
	// Run returns the gradient with respect to images and the logits of the head; both are valid until the next Run. targets
	// are the one-hot classes of the images, or probabilities for [attack.KL]. Nil targets mean zeros: they suffice if only
	// the logits are needed.
	Run(images, targets []float32) (gradient, logits []float32, err error)
}

// State is the state of a hook in a checkpoint: tensors and one JSON record. In the file they have the names hook/NAME/TENSOR
// and hook/NAME.
type State struct {
	Tensors []Tensor
	Record  json.RawMessage // the JSON record; nil if there is none
}

// Tensor is one named array of a state. Values is read when the checkpoint is encoded, which is before the next step.
type Tensor struct {
	Name   string
	Shape  []int
	Values []float32
}

// Put adds a tensor.
func (s *State) Put(name string, shape []int, values []float32) {
	s.Tensors = append(s.Tensors, Tensor{name, shape, values})
}

// Load copies the tensor with that name.
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

// putAll adds one tensor for each parameter of the list of, named by its path.
func (s *State) putAll(of []*Parameter, values [][]float32) {
	for i, p := range of {
		s.Put(p.Path, p.Shape, values[i])
	}
}

// loadAll reads the tensors that putAll has written.
func (s *State) loadAll(of []*Parameter, into [][]float32) error {
	for i, p := range of {
		if err := s.Load(p.Path, p.Shape, into[i]); err != nil {
			return err
		}
	}
	return nil
}

// PutRecord sets the record. v must be a struct of finite numbers, strings and lists of them. PutRecord panics if v cannot be
// encoded as JSON, because this is a bug of the hook.
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
