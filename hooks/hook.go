// Package hooks contains procedures around the training steps: pruning, moving averages, adversarial examples, early
// stopping.
//
// A hook is one file: a struct whose tagged fields are the keys of its table [model.NAME.hook.HOOK], a registration, and
// the method Attach, which makes the running form for one training. The loop of package train loads a batch, computes the
// gradients, updates the parameters and projects them. Between these actions it calls the functions of every running hook
// in the order of their [Stage]. A hook with values that persist between steps saves them with the run's state: a resumed
// run then gives the same bytes.
package hooks

import (
	"strings"

	"tessera/data"
	"tessera/metrics"
	"tessera/part"
)

// Hook is a declared procedure around the training steps: a pointer to a struct with the settings. Training must not change
// the settings; values that change belong to the running form.
type Hook interface {
	// Attach returns the running form for one training. The parameters exist but are not initialised yet; images are
	// available from Active.Prepare on. A hook must not keep anything else of the training.
	Attach(t Training) (*Active, error)
}

// Registry contains every hook that can be declared.
var Registry = part.New[Hook]("hook")

// Active is the running form of a hook: the functions that the training loop calls. Each function may be nil. An error ends
// the training.
//
// The calls of a training, in order:
//
//	Restore                     of a resumed training
//	Prepare                     for the fitted images, and then for those that are measured between epochs
//	First                       of a new training alone: the parameters have their first values
//	Begin                       in every process that trains
//	  BeginEpoch                before the first step of an epoch
//	    BeforeStep              the batch is loaded
//	    Project, Moved          while the parameters are moved, on several threads
//	    AfterStep               the parameters are moved
//	  EndEpoch                  the epoch is measured
//	Save                        for every checkpoint, also in the middle of an epoch
//	Close                       at the end
//
// With a full-batch optimizer (lbfgs) an epoch is one iteration without steps: no hook may have functions of steps.
type Active struct {
	First      func() error
	Begin      func() error
	BeginEpoch func() error
	BeforeStep func(s *Step) error
	AfterStep  func() error
	EndEpoch   func(e *Epoch) error

	// Prepare returns the input of the encoder's first layer that replaces these images. Only hooks that are [Preparing]
	// for that layer have this function. Programs that compute a gradient with respect to the images do not use it.
	Prepare func(images *data.Images) (Prepared, error)

	// Project is called after the constraints of a trainable parameter p. values start at index from of p, or of a copy
	// that is shown instead of p. Project must be elementwise and idempotent. Several threads call it at once for different
	// values.
	Project func(p *Parameter, values []float32, from int)

	// Moved gets the values of a trainable parameter that start at index from, once in every step, after their projection
	// and while they are in the cache. It must be elementwise; scratch is a buffer of 4096 values per thread. Several
	// threads call it at once for different values.
	Moved func(p *Parameter, values []float32, from int, scratch []float32)

	// Follows returns the hook's values that follow p (a moving average), nil if there are none. They are prefetched before
	// Moved, and [Training.Rewrite] changes them.
	Follows func(p *Parameter) []float32

	// Lends lists further parameters that the training's programs can read, under the path HOOK.PATH. The list and its
	// memory must not change.
	Lends func() []*Parameter

	// Shown returns the values of p in the model that is validated, saved and opened, after their projection. At most one
	// hook of a training may have it.
	Shown func(p *Parameter) []float32

	// Kept returns the parameters of the epoch that replaces the last one, nil if there is none yet. At most one hook of a
	// training may have it.
	Kept func() *Kept

	// Rate is the factor of the learning rate in the current step.
	Rate func() float64

	Save    func(s *State)
	Restore func(s *State) error
	Close   func() error
}

// Stepwise reports whether the running form has functions that are only called in mini-batch training.
func (a *Active) Stepwise() bool {
	return a.BeforeStep != nil || a.AfterStep != nil || a.Project != nil || a.Moved != nil || a.Rate != nil
}

// Prepared computes a layer's input from prepared images.
type Prepared interface {
	// Batch writes the input for the images at those indices to dst, one after the other. Several threads call it at once.
	Batch(dst []float32, indices []int)
}

// Preparing is implemented by hooks that prepare images for a first layer. They are attached to every model with a suitable
// first layer, declared or not.
type Preparing interface {
	// Prepares reports whether the hook handles that preparation; see layers.Preparing.
	Prepares(preparation any) bool
}

// Step is one step of a training, before it is computed.
type Step struct {
	// Images are the encoded images of the batch, one after the other; a [Distorting] hook may change them. In a model that
	// reads only views they are all first views, then all second views: 2 Size images.
	Images []float32
	Clean  []float32 // the images to reconstruct, if a hook of the model is Distorting; else nil
	Size   int       // number of images
}

// Epoch is a complete epoch.
type Epoch struct {
	Epoch   int            // from 1
	Step    int            // steps done since the beginning of the training
	Metrics metrics.Values // the loss, its terms and the metrics, by their keys in metrics.jsonl
}

// error is the criterion of the epoch: val_mse; without a decoder the sum of the heads' negative log-likelihoods on the
// validation images; loss if neither is measured.
func (e *Epoch) error() float64 {
	if v, ok := e.Metrics.Number("val_mse"); ok {
		return v
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

// Kept are the parameters of one epoch.
type Kept struct {
	Epoch  int
	Step   int
	Error  float64
	Values [][]float32 // of all parameters, in the order of the model
}

// Distorting is implemented by hooks that change the encoded images; a batch then also holds the clean images.
type Distorting interface{ Distorts() }

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

// Replicated is implemented by hooks that do the same on every process of a distributed training: all have the same parameters,
// counters and metrics, and programs of [Training.Compile] run completely on each. [Step.Images] is only the part of the batch that
// the process computes; a hook that reads it is not Replicated, and distributed training refuses it.
type Replicated interface {
	// Replicated reports whether the hook reads or changes Parameter.State, which is divided if the optimizer is sharded.
	Replicated() (state bool)
}
