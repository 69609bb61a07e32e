package attack

import (
	"cmp"

	"tessera/internal/vectors"
)

// Objective is the function that an attack on a classifier maximises.
type Objective string

// The objectives, as functions of the logits z of one image and of its class c.
const (
	// CrossEntropy is -log p_c, p = softmax(z).
	CrossEntropy Objective = "cross_entropy"
	// Margin is max_{j != c} z_j - z_c. It is positive if the image is misclassified. Unlike cross entropy it has a
	// gradient also for images of whose class the model is certain (Carlini and Wagner, Towards Evaluating the
	// Robustness of Neural Networks, 2017).
	Margin Objective = "margin"
	// KL is the Kullback-Leibler divergence sum_j q_j log(q_j / p_j) of the prediction p for the image from the
	// prediction q for the clean image. It does not read the labels. At the clean image it is 0 and its gradient is 0,
	// so the attack must start at a random point (Zhang et al., Theoretically Principled Trade-off between Robustness
	// and Accuracy, 2019).
	KL Objective = "kl"
)

// Choices lists the objectives.
func (Objective) Choices() []string {
	return []string{string(CrossEntropy), string(Margin), string(KL)}
}

// Softmax returns the softmax of each row of logits.
func Softmax(logits []float32, classes int) []float32 {
	p, row := make([]float32, len(logits)), make([]float64, classes)
	for at := 0; at < len(logits); at += classes {
		vectors.Softmax(row, logits[at:at+classes])
		for j, v := range row {
			p[at+j] = float32(v)
		}
	}
	return p
}

// TOML returns the text of an objective. The default, "", is cross entropy.
func (o Objective) TOML() any { return string(cmp.Or(o, CrossEntropy)) }
