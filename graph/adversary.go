package graph

import (
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/attack"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph/ops"
	"tessera/losses"
)

// adversaryPrefix is the start of the names of gradients for attacks on heads.
const adversaryPrefix = "attack on "

// Adversary returns the name of a pair of outputs that an attack on a head needs: the gradient of an objective of the
// head with respect to the images, and the logits of the head. A program for this name computes only this pair, without
// noise. Its inputs are [Images] and [Labels], (batch, classes). A row of [Labels] is one-hot; for [attack.KL] it is
// the prediction for the clean image. For cross entropy and similar objectives, a row of zeros gives the gradient 0.
// The objective is summed over the batch, so row i of the gradient belongs to image i alone. The declared loss terms
// have no effect.
func Adversary(objective attack.Objective, head string) string {
	return adversaryPrefix + head + " by " + string(objective)
}

// adversary returns the head and the objective if the request is for an attack, and "" otherwise.
func (r Request) adversary() (head string, objective attack.Objective) {
	for _, name := range r.Want {
		if rest, ok := strings.CutPrefix(name, adversaryPrefix); ok {
			head, by, _ := strings.Cut(rest, " by ")
			return head, attack.Objective(by)
		}
	}
	return "", ""
}

// adversary adds the gradient of an objective of a head, and the logits of the head.
func (b *builder) adversary(head string, objective attack.Objective) error {
	z, err := b.flatValue(value{head, pass{stream: Images}})
	if err != nil {
		return err
	}
	images := b.streams[Images]
	if images == nil || !ancestors(z)[images] {
		return fmt.Errorf("%q is not computed from the images: there is nothing to attack", head)
	}
	var c ops.Chain
	targets := b.classes(Labels, z.Shape()[1])
	var sum *gorgonia.Node
	if objective == attack.Margin {
		known := c.Sum(targets, 1)
		others := c.Sub(z, c.Scale(targets, 1e30)) // so that the class itself is never the largest
		most := c.Sum(c.Do("largest", func() (*gorgonia.Node, error) { return ops.TopK(others, 1) }), 1)
		sum = c.Sum(c.Mul(known, c.Sub(most, c.Sum(c.Mul(targets, z), 1))))
	} else { // the entropy of the targets, which is part of the divergence, is constant and is left out
		sum = c.Neg(c.Sum(c.Mul(targets, c.LogSoftmax(z))))
	}
	if c.Err() != nil {
		return c.Err()
	}
	grads, err := gorgonia.Grad(sum, images)
	if err != nil {
		return fmt.Errorf("differentiating %s of %s: %w", objective, head, err)
	}
	if err := b.tap(Adversary(objective, head), grads[0]); err != nil {
		return err
	}
	return b.tap(head, z)
}

// Head is a head whose values are class logits. It implements [attack.WhiteBox]. It uses the compiled programs of its
// coder.
type Head struct {
	coder   *Coder
	name    string
	classes int
}

// Head returns a head of the model for attacks. It returns an error if the head's values are not class logits, or if they
// depend on columns other than images.
func (c *Coder) Head(name string) (*Head, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Values(), name) || name == losses.Code || name == losses.Output {
		return nil, fmt.Errorf("model %q: got %q, want one of its heads: %s", c.model.Spec.Name, name, table.Quoted(c.ClassHeads()))
	}
	if sources := c.model.Layout.Sources(name); !slices.Equal(sources, []string{losses.Images}) {
		return nil, fmt.Errorf("model %q: %q is computed from the columns %q: only images can be attacked", c.model.Spec.Name, name, sources)
	}
	return &Head{c, name, c.model.Layout.Size(name)}, nil
}

// Attacked implements [metrics.HeadAttacker].
func (c *Coder) Attacked(head string, scaling *data.Scaling) (attack.WhiteBox, error) {
	h, err := c.Head(head)
	if err != nil || scaling == nil {
		return h, err
	}
	if err := scaling.Linear(); err != nil {
		return nil, fmt.Errorf("an attack of head %q: %w", head, err)
	}
	return &scaledHead{Head: h, scaling: scaling}, nil
}

// scaledHead is a head of a model that was trained on scaled samples. Its methods take images before the scaling.
type scaledHead struct {
	*Head
	scaling  *data.Scaling
	gradient []float32
}

func (h *scaledHead) Logits(images []float32) ([]float32, error) {
	return h.Head.Logits(h.scaling.Applied(images))
}

// Gradient implements [attack.WhiteBox]. By the chain rule, the derivatives are multiplied by the derivative of the
// scaling.
func (h *scaledHead) Gradient(objective attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	gradient, logits, err = h.Head.Gradient(objective, h.scaling.Applied(images), targets)
	if err != nil {
		return nil, nil, err
	}
	h.gradient = append(h.gradient[:0], gradient...)
	h.scaling.Pull(h.gradient)
	return h.gradient, logits, nil
}

func (h *Head) Shape() []int { return h.coder.Shape() }

func (h *Head) Classes() int { return h.classes }

func (h *Head) Logits(images []float32) ([]float32, error) {
	logits, _, err := h.coder.Once(h.name, images)
	return logits, err
}

func (h *Head) Gradient(objective attack.Objective, images, targets []float32) (gradient, logits []float32, err error) {
	return h.coder.Once(Adversary(objective, h.name), images, targets)
}
