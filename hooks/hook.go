// Package hooks holds what happens around the steps of a training: pruning, moving averages, adversarial examples, early
// stopping.
//
// A hook is one file: a struct whose tagged fields are the keys of its table [model.NAME.hook.HOOK], a registration, and the
// method Attach, which makes its running form for one training. The loop of package train loads a batch, computes the
// gradients, moves the parameters and projects them; before, between and after it calls the functions of every running hook,
// hook after hook in the order of their [Stage]. A hook that keeps values between steps saves them with the run's state, so that
// a resumed run gives the same bytes.
package hooks

import (
	"tessera/data"
	"tessera/metrics"
	"tessera/part"
)

// Hook is a declared procedure around the steps of a training. It is a pointer to a struct with the settings, which a
// training must not change: what a training changes belongs to the running form.
type Hook interface {
	// Attach returns the running form for one training. The parameters exist; they have not their first values yet, and
	// images are there from Active.Prepare on. A hook must not keep anything else of the training.
	Attach(t Training) (*Active, error)
}

// Registry holds every hook that can be declared.
var Registry = part.New[Hook]("hook")

// Active is the running form of a hook: what the loop calls, and when. All functions may be nil. An error ends the training.
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
// With an optimizer that searches on all images at once (lbfgs) an epoch is one iteration: there are no steps, and no hook may
// have functions of them.
type Active struct {
	First      func() error
	Begin      func() error
	BeginEpoch func() error
	BeforeStep func(s *Step) error
	AfterStep  func() error
	EndEpoch   func(e *Epoch) error

	// Prepare returns what the first layer of the encoder reads in the place of these images. Only a hook that is [Preparing] for
	// that layer has it; a program that needs the images themselves, for a gradient with respect to them, does not use it.
	Prepare func(images *data.Images) (Prepared, error)

	// Project is part of the projection of a trainable parameter p: it follows the constraints. values are those from index
	// from on; they are a part of p, or of a copy that is shown in the place of p. It must treat every element by itself and
	// change nothing when it is called again. It is called by several threads at once, for different values.
	Project func(p *Parameter, values []float32, from int)

	// Moved gets the values of a trainable parameter from index from on, once in every step, after their projection and
	// while they are in the cache. It must treat every element by itself; scratch has 4096 values of its thread to work in.
	// It is called by several threads at once, for different values.
	Moved func(p *Parameter, values []float32, from int, scratch []float32)

	// Follows returns what this hook keeps of the values of p, nil where it keeps nothing: it is fetched into the cache before
	// Moved, and changed by [Training.Rewrite].
	Follows func(p *Parameter) []float32

	// Lends lists parameters that the programs of the training can read beside those of the model, under the path NAME.PATH with
	// the name of the hook. The list and its memory stay the same.
	Lends func() []*Parameter

	// Shown returns the values that p has in the model that is validated, kept and opened. They are projected first. At most
	// one hook of a training may have it.
	Shown func(p *Parameter) []float32

	// Kept returns the parameters of the epoch that is to be used in the place of the last one, nil where there is none yet.
	// At most one hook of a training may have it.
	Kept func() *Kept

	// Rate multiplies the learning rate of the present step.
	Rate func() float64

	Save    func(s *State)
	Restore func(s *State) error
	Close   func() error
}

// Stepwise reports whether the running form has functions that only a training in steps calls.
func (a *Active) Stepwise() bool {
	return a.BeforeStep != nil || a.AfterStep != nil || a.Project != nil || a.Moved != nil || a.Rate != nil
}

// Prepared computes what a layer reads in the place of images.
type Prepared interface {
	// Batch writes it for the images of those indices to dst, one after the other. Several threads call it at once.
	Batch(dst []float32, indices []int)
}

// Preparing is a hook that belongs to every model whose encoder begins with a layer of some preparation, declared or not.
type Preparing interface {
	// Prepares reports whether it is for that preparation; see layers.Preparing.
	Prepares(preparation any) bool
}

// Step is one step of a training, before it is computed.
type Step struct {
	Images []float32 // of the batch, one after the other: what is encoded. A hook that is [Distorting] may change them
	Clean  []float32 // what is reconstructed, where a hook of the model is Distorting; nil elsewhere
	Size   int       // how many images
}

// Epoch is a complete epoch.
type Epoch struct {
	Epoch   int            // from 1
	Step    int            // steps done since the beginning of the training
	Metrics metrics.Values // the loss, its terms and what was measured, by their keys in metrics.jsonl
}

// error is what judges the epoch: val_mse, or the loss where no images validate.
func (e *Epoch) error() float64 {
	if v, ok := e.Metrics.Number("val_mse"); ok {
		return v
	}
	v, _ := e.Metrics.Number("loss")
	return v
}

// Kept are the parameters of one epoch.
type Kept struct {
	Epoch  int
	Step   int
	Error  float64
	Values [][]float32 // of all parameters, in the order of the model
}

// Distorting is a hook that changes the images which are encoded: a batch then holds the clean ones beside them.
type Distorting interface{ Distorts() }

// Globbed is a hook that works on the parameters of a glob, which must match one that is trained.
type Globbed interface {
	// Glob returns the key and its value.
	Glob() (key, glob string)
}

// NeedsSteps is a hook that an optimizer which searches on all images at once must not have.
type NeedsSteps interface {
	// NeedsSteps says why, and what to do: %s is the optimizer.
	NeedsSteps() (problem, hint string)
}
