package graph

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/ops"
)

// The objective over all images needs no program of all images. It is
//
//	mean over images of R  +  P(codes of all images)  +  D(weights)
//
// where R are the terms that see images one by one, P those of the code, which may look at all codes together, and D
// those of weights. With the codes H of all images, an [Encoder] program at a time, a [Penalties] program gives P + D and
// the derivatives dP/dH and dD/dw; then [Portion] programs of a few images each give R and the derivatives of
// R + sum(dP/dH * H) with respect to the weights, which add up to those of the whole.

// CodeName is the name of the codes of all images in a [Penalties] program, a parameter of shape (images, units), and
// PullName that of the input of a [Portion] program that takes dP/dH.
const (
	CodeName = "code"
	PullName = "pull"
)

// Penalised reports which terms the model has beside those that see images: whether any, and whether some are taken on
// the code.
func (m *Model) Penalised() (any, code bool) {
	for _, l := range m.Spec.Losses {
		if !seesImages(l) {
			any = true
			_, on := l.Loss.(losses.CodePenalty)
			code = code || on
		}
	}
	return any, code
}

// seesImages reports whether a term is a mean over images.
func seesImages(l config.Loss) bool {
	switch l.Loss.(type) {
	case losses.Reconstruction, losses.JacobianPenalty, losses.AtomPenalty:
		return true
	}
	return false
}

// portion adds what some images add to the objective over all: their part of the mean, and the pull on their codes.
func (b *builder) portion(x, code, output, target *gorgonia.Node) error {
	if b.options.Of < b.options.Batch {
		return fmt.Errorf("%d images are no portion of %d", b.options.Batch, b.options.Of)
	}
	loss, err := b.sum(seesImages, float64(b.options.Batch)/float64(b.options.Of), x, code, output, target)
	if err != nil {
		return err
	}
	if err := b.repeatable(); err != nil {
		return err
	}
	if _, ok := b.model.Penalised(); ok {
		var c ops.Chain
		pull := c.Sum(c.Mul(b.input(PullName, nil, b.options.Batch, b.model.Units()), code))
		if loss != nil {
			pull = c.Add(loss, pull)
		}
		if loss = pull; c.Err() != nil {
			return c.Err()
		}
	}
	return b.differentiate(loss)
}

// repeatable refuses layers whose training is not the same each time, and not that of inference.
func (b *builder) repeatable() error {
	for _, in := range b.program.Inputs {
		if in.Sampler != nil && !in.Fixed {
			return fmt.Errorf("%s is noise: the objective over all images must be the same at every look", in.Name)
		}
	}
	if len(b.program.Updates) > 0 {
		return fmt.Errorf("%s is moved by the images of one batch: there are none", b.program.Updates[0].Parameter.Path)
	}
	return nil
}

// penalties adds the terms that see no images, on the codes of all.
func (b *builder) penalties() error {
	any, ofCode := b.model.Penalised()
	if !any {
		return errors.New("the model has no penalties")
	}
	var code *gorgonia.Node
	if ofCode {
		shape := []int{b.options.Batch, b.model.Units()}
		code = b.leaf(CodeName, shape)
		b.program.Parameters = append(b.program.Parameters, Binding{Node: code,
			Parameter: &Parameter{Path: CodeName, Shape: shape, Data: make([]float32, volume.Of(shape)), Trainable: true}})
	}
	loss, err := b.sum(func(l config.Loss) bool { return !seesImages(l) }, 1, nil, code, nil, nil)
	if err != nil {
		return err
	}
	return b.differentiate(loss)
}
