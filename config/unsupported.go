package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/part/table"
)

// partsPage describes how to add what the language lacks.
const partsPage = "adding-a-part.md, which `tessera docs DIR` writes"

// lacks lists well-known names that cannot be declared, in lower case without separators, with what to use in their place; ""
// if only a new part helps. Edit distance would suggest an unrelated name: pca for ica.
var lacks = map[string]string{
	// models
	"vae": "", "variational": "", "variationalautoencoder": "", "betavae": "", "vqvae": "", "gan": "", "diffusion": "", "flow": "",
	"rbm": "", "dbn": "", "som": "", "ica": "", "fastica": "", "lda": "", "gmm": "", "tsne": "", "umap": "", "mds": "", "isomap": "",
	"regression": "",
	"classifier": "a classifier is an auto-encoder with a head: `tessera check --fill classifier` prints one",
	"svm":        "a linear SVM on the codes is a metric: `tessera eval RUN --metrics svm`",
	"sae":        "a sparse auto-encoder is an auto-encoder with the layer top_k, or with a loss on the code (kl, hoyer, l1)",
	"denoising":  "a denoising auto-encoder begins with a layer of noise: masking_noise or gaussian_noise",
	// layers
	"lstm": "", "gru": "", "rnn": "", "embedding": "", "conv1d": "", "conv3d": "", "separableconv2d": "", "groupnorm": "",
	"gaussian": "gaussian_noise adds noise to its input; a Gaussian code, as of a variational auto-encoder, needs a part in Go, see " + partsPage,
	"rmsnorm":  "", "lambda": "", "sample": "", "sampling": "", "spectralnorm": "",
	// losses
	"kldivergence": klNote, "kullbackleibler": klNote, "kldiv": klNote, "kldivloss": klNote, "gaussiankl": klNote, "vaekl": klNote,
	"perceptual": "", "lpips": "", "wasserstein": "", "adversarialloss": "", "triplet": "", "cosinesimilarity": "",
	// keys of a model
	"inputs":    "a model has one input, the image",
	"input":     "a model has one input, the image, whose shape the data set tells",
	"outputs":   "further outputs are heads: [model.NAME.head.HEAD]",
	"metrics":   "metrics are chosen when a run is measured: `tessera eval RUN --metrics NAME`",
	"callbacks": "procedures around the training steps are hooks: [model.NAME.hook.HOOK]",
	"device":    "models run on the CPU; `tessera train --threads N` sets the number of threads",
	"gpu":       "models run on the CPU; `tessera train --threads N` sets the number of threads",
	"dtype":     "numbers are float32",
	"precision": "numbers are float32",
}

// klNote tells two terms of the same name apart.
const klNote = "kl is the sparsity penalty on the mean activation of units; the KL term of a variational auto-encoder needs a part in Go, see " + partsPage

func init() { language.Lacks = unsupported } // which reads language

// plainName is a name in lower case without separators.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// unsupported explains that a name is one of another vocabulary, or that a well-known name cannot be declared; "" for other
// names. what is the noun of a vocabulary, or "key".
func unsupported(what, name string) string {
	for _, v := range language.Vocabularies {
		asKey := v.What == "hook" && !slices.Contains(table.Keys(&Model{}, Autoencoder), name)
		if slices.Contains(v.Names(), name) && (what != "key" || asKey) {
			return elsewhere(v.What, name)
		}
	}
	instead, known := lacks[plainName(name)]
	switch {
	case !known:
		return ""
	case instead == "":
		return "not supported; to write it as a part in Go, see " + partsPage
	}
	return "not supported: " + instead
}

// elsewhere names the vocabulary of a part.
func elsewhere(what, name string) string {
	switch what {
	case "hook":
		return fmt.Sprintf("%s is a hook: [model.NAME.hook.%s]", name, name)
	case "augmentation", "optimizer", "init":
		what = "an " + what
	default:
		what = "a " + what
	}
	return fmt.Sprintf("%s is %s", name, what)
}
