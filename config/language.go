package config

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"

	"tessera/attack"
	"tessera/classical"
	"tessera/config/part/table"
	"tessera/constraints"
	"tessera/data"
	"tessera/data/augment"
	"tessera/data/text"
	"tessera/hooks"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

// language lists the registries and tables of models.toml. A new registry needs one line here.
var language = &table.Language{
	Vocabularies: []*table.Vocabulary{
		table.Words("layers", layers.Registry, Layer{}),
		table.Words("losses", losses.Registry, Loss{}),
		table.Words("constraints", constraints.Registry, Constraint{}),
		table.Words("optimizers", optim.Registry, Optimizer{}),
		table.Words("schedules", optim.Schedules, Schedule{}),
		table.Words("augmentations", augment.Registry, nil),
		table.Words("weights", losses.Weights, nil),
		table.Words("inits", layers.Inits, nil),
		table.Words("hooks", hooks.Registry, nil),
		table.Words("attacks", attack.Registry, nil),
		table.Words("datasets", data.Registry, Dataset{}),
		table.Words("scalings", data.Scalings, nil),
		table.Words("columns", data.Draws, Drawn{}),
		table.Words("baselines", classical.Registry, Model{}),
	},
	Hint: hint,
}

// hint returns a suggestion for an unknown key that is the earlier syntax of a hook, or an activation with settings,
// which is a separate layer.
func hint(part, key string, n *table.Node, kind string, near bool) string {
	if text := asHook(part, key, n); text != "" {
		return text
	}
	if text := misplaced(part, key); text != "" && !near {
		return text
	}
	if part != "" && !near && slices.Contains(ofModel, key) {
		return "it is a key of the model: write it above the headers of its tables, below [model.NAME]"
	}
	if _, is := attack.Registry.Lookup(kind); is {
		for _, e := range attack.Registry.All() {
			if slices.Contains(table.Keys(e.New(), ""), key) {
				return fmt.Sprintf("leave it out, or take the attack %q, which has it", e.Name)
			}
		}
	}
	if _, is := classical.Registry.Lookup(kind); is && slices.Contains([]string{"encoder", "decoder", "head", "view", "player", "optimizer", "hook"}, key) {
		return fmt.Sprintf("a model of kind %q has none: leave it out, or leave kind out for a network", kind)
	}
	text, _ := n.Child(key).Text()
	_, isLayer := layers.Registry.Lookup(text)
	if _, in := layers.Registry.Lookup(kind); !in || !isLayer || near || key != "activation" {
		return ""
	}
	return fmt.Sprintf("here an activation with settings is a separate layer: put { kind = %q } after this one", text)
}

// ofModel lists keys of a model that are easily written below the header of one of its tables.
var ofModel = []string{"encoder", "decoder", "dataset", "optimizer", "train", "extends", "about"}

// misplaced says where a key belongs that the optimizer has and train has not, or the reverse; "" for another key.
func misplaced(part, key string) string {
	has := func(of any) bool { return key != "kind" && slices.Contains(table.Keys(of, Autoencoder), key) }
	switch {
	case part == "optimizer" && has(&Train{}):
		return fmt.Sprintf("did you mean %q?", "train."+key)
	case part != "train":
		return ""
	case slices.Contains([]string{"learning_rate", "lr", "eta"}, strings.ToLower(key)):
		return `did you mean "optimizer.learning_rate"?`
	case has(&Optimizer{}):
		return fmt.Sprintf("did you mean %q?", "optimizer."+key)
	}
	for _, e := range optim.Registry.All() {
		if has(e.New()) {
			return fmt.Sprintf("did you mean %q?", "optimizer."+key)
		}
	}
	return ""
}

// Vocabularies returns the names that [Describe] accepts: "layers", "losses", ...
func Vocabularies() []string {
	return lists.Map(language.Vocabularies, func(v *table.Vocabulary) string { return v.Title })
}

// Describe lists the parts of one vocabulary with their keys and defaults, sorted by name. ok is false if there is no
// such vocabulary.
func Describe(title string) (list []table.Description, ok bool) { return language.Describe(title) }

// implicit returns the tables that every model has, declared or not. A baseline has only the data set. The Defaults
// methods set the keys of these tables.
var implicit = sync.OnceValue(func() *table.Node {
	root, _ := table.Parse(table.NewSource("", `
dataset = { name = "swimmer" }
decoder = [{ kind = "dense" }]
loss = [{ kind = "mse" }]
optimizer = { kind = "adam" }
`))
	return root.WithoutPositions()
})

// withDefaults merges a model's table into the defaults.
func withDefaults(n *table.Node) *table.Node {
	base := implicit()
	kind := n.Child("kind")
	if is, ok := kind.Text(); ok && is != Autoencoder {
		base = base.Only(func(key string) bool { return key == "dataset" })
	}
	merged := merging(new([]string)).Merge("", base, without(n, "kind"))
	if kind != nil {
		merged.Put("kind", kind)
	}
	return merged
}

// merging returns the [table.Merger] for models and changes; see [inherits]. It adds a note for each selection of images that a data
// set does not inherit.
func merging(notes *[]string) *table.Merger {
	return &table.Merger{Selector: selector, Adapt: otherFile, Keeps: func(name, key string, base, over *table.Node) bool {
		if name == "dataset" && selectsOther(key, base, over) {
			name, _ := over.Child("name").Text()
			*notes = append(*notes, fmt.Sprintf("dataset.%s = %s is not inherited by the data set %q: give dataset.%s to set it", key, base.Child(key), name, key))
			return false
		}
		if name == "dataset" && (key == "grammar" && over.Child("file") != nil || over.Child("grammar") != nil && slices.Contains(text.FileKeys, key)) {
			return false // one of them is in the place of the other
		}
		return inherits(name, key, base, over)
	}}
}

// otherFile leaves the name out that was found by the file of a data set, if the data set in its place reads such files and knows the other keys: a
// model of sequences of tokens stays one with another text.
func otherFile(name string, base, over *table.Node) *table.Node {
	file, found := over.Child("file"), over.Child("name")
	if name != "dataset" || file == nil || found == nil || found.Key != file.Key || !base.IsTable() { // the name is declared
		return over
	}
	was, _ := base.Child("name").Text()
	is, _ := found.Text()
	e, ok := data.Registry.Lookup(was)
	if !ok {
		return over
	}
	known := append(table.Keys(e.New(), ""), append(selectionKeys, "name")...)
	before, _ := base.Child("file").Text()
	tabular := base.Child("text") != nil || data.KindOf(before) == "csv"
	reads := text.Reads(was) && (text.Reads(is) || tabular && is == "csv") || was == "triples" && slices.Contains([]string{"csv", "npz"}, is)
	if reads && !slices.ContainsFunc(over.Keys, func(key string) bool { return !slices.Contains(known, key) }) {
		return over.Only(func(key string) bool { return key != "name" })
	}
	return over
}

// selectsOther reports whether a key of the data set base selects its test images although over replaces it by another data set, or by
// files: the selection was not written for these. A change of the name alone, as sweeps over data sets make it, keeps the selection.
func selectsOther(key string, base, over *table.Node) bool {
	text, _ := base.Child(key).Text()
	if text != "test" || !slices.Contains(selectionKeys, key) || over.Child(key) != nil || table.SameKind("name", base, over) {
		return false
	}
	name, _ := over.Child("name").Text()
	e, known := data.Registry.Lookup(name)
	return !over.IsPath() || known && data.IsOwn(e.New())
}

// selector returns the key of a table that names its part: the keys of the part belong to the same table.
func selector(table string) string {
	if table == "dataset" || table == "of" { // `of` is the data set that another one reads
		return "name"
	}
	return "kind"
}

// selectionKeys lists the keys that the dataset table has for every data set.
var selectionKeys = table.Keys(&data.Selection{}, "")

// impliedAttack is the attack of adversarial training that names none.
const impliedAttack = "pgd"

// inherits reports whether a key of the table base remains when over is merged into it. The selecting key of a data set is its name: another data set
// inherits the selection of images (limit, validation), but not the other keys, nor a selection of test images. For models see [ofKind].
func inherits(name, key string, base, over *table.Node) bool {
	if name == "attack" && base.Child("kind") == nil { // the kind that is meant without the key
		base = base.Only(func(string) bool { return true })
		base.Put("kind", table.NewTable().NewScalar(impliedAttack))
	}
	return table.SameKind(selector(name), base, over) || name == "dataset" && slices.Contains(selectionKeys, key)
}

// ofKind returns the table n of a model with the given kind. If the kind changes, only keys that models of both kinds
// have remain, such as the data set and the seed. If kind is not a text, n is returned unchanged.
func ofKind(n, kind *table.Node) *table.Node {
	is, ok := kind.Text()
	if !ok {
		return n
	}
	was, ok := n.Child("kind").Text()
	if !ok {
		was = Autoencoder
	}
	var common, train []string
	if was != is {
		common, train = table.Keys(&Model{}, ""), table.Keys(&Train{}, is)
	}
	changed := n.Only(func(key string) bool { return key != "kind" && (was == is || slices.Contains(common, key)) })
	if c := changed.Child("train"); was != is && c.IsTable() {
		changed.Put("train", c.Only(func(key string) bool { return slices.Contains(train, key) }))
	}
	changed.Put("kind", kind)
	return changed
}

func without(n *table.Node, key string) *table.Node {
	return n.Only(func(k string) bool { return k != key })
}

// subject returns the name by which messages refer to a model.
func subject(model string) string { return table.Subject("model", model) }

// aboutShape reports whether a key may affect the shape of a layer's output. Numbers may affect it, names do not.
func aboutShape(f table.Field) bool {
	k := f.Value.Kind()
	return k != reflect.Bool && k != reflect.Interface && f.Choices() == nil
}

// aboutValues reports whether a key may affect the range of a layer's output. Activations and inner layers may affect
// it.
func aboutValues(f table.Field) bool { return f.Choices() != nil || f.IsTable() }

// byName renames the key kind of a model's dataset table, which other parts use, to name. A dataset table without a
// name that refers to a run is a data set of the kind run, one that refers to a file is the kind that reads the file. A data set that is
// no name but a path is a table with the key file.
func byName(model *table.Node) {
	d := model.Child("dataset")
	if text, ok := d.Text(); ok && data.KindOf(text) != "" {
		if _, known := data.Registry.Lookup(text); !known {
			d = d.Named("file")
			model.Put("dataset", d)
		}
	}
	if !d.IsTable() {
		return
	}
	switch run, file := d.Child("run"), d.Child("file"); {
	case d.Child("name") != nil:
	case d.Child("kind") != nil:
		d.Rename("kind", "name")
	case run != nil:
		d.Put("name", run.NewScalar("run"))
	case file != nil && slices.ContainsFunc([]string{"absent", "row", "column", "value"}, func(key string) bool { return d.Child(key) != nil }): // keys of entries alone
		d.Put("name", file.NewScalar("triples"))
	case file != nil && text.NameFor(d.Keys) != "": // keys of texts alone
		d.Put("name", file.NewScalar(text.NameFor(d.Keys)))
	case d.Child("grammar") != nil && text.NameFor(d.Keys) != "":
		d.Put("name", d.NewScalar(text.NameFor(d.Keys)))
	case file != nil:
		if text, ok := file.Text(); ok {
			if kind := cmp.Or(data.KindOf(text), data.KindOf("./"+text)); kind != "" { // photos may be a folder
				d.Put("name", file.NewScalar(kind))
			}
		}
	}
}

// nameless reports a dataset table that has no name and contains keys that the default data set does not have. n is the
// table with the default name.
func nameless(n *table.Node) *table.Diagnostic {
	name := n.Child("name")
	if name == nil || name.At.Source != nil || n.At.Source == nil { // the name is declared, or the whole table is the default
		return nil
	}
	text, _ := name.Text()
	entry, _ := data.Registry.Lookup(text)
	known := append(table.Keys(entry.New(), ""), append(selectionKeys, "name")...)
	if !slices.ContainsFunc(n.Keys, func(key string) bool { return !slices.Contains(known, key) }) {
		return nil
	}
	d := table.Diagnostic{Problem: `dataset: missing key "name"`, Suggestion: "name is one of " + table.Quoted(data.Registry.Names())}
	for _, key := range n.Keys {
		if file, ok := n.Child(key).Text(); ok && !slices.Contains(known, key) {
			reader := data.ReaderOf(file)
			if reader == "" && path.Ext(file) == "" {
				reader = "images"
			}
			if reader != "" && slices.Contains(data.Registry.Names(), reader) {
				d.Suggestion = fmt.Sprintf("write dataset = %s, or in the table file = %s", table.StringText(file), table.StringText(file))
			}
			break
		}
	}
	d = d.In(n)
	return &d
}

// partsPage is the page that explains how to add a part.
const partsPage = "adding-a-part.md, which `tessera docs DIR` writes"

// lacks maps well-known names that cannot be declared, in lower case without separators, to advice on what to declare
// instead. The advice is "" if only a new part helps. Suggestions by edit distance would be unrelated names: pca for
// ica.
var lacks = map[string]string{
	// models
	"vae": vaeNote, "variational": vaeNote, "variationalautoencoder": vaeNote, "betavae": vaeNote, "gan": ganNote, "flow": "",
	"vqvae":     "a VQ-VAE is an auto-encoder with the layer vq: `tessera check --fill vq-vae` prints one",
	"diffusion": "a diffusion model has the layer diffuse: `tessera check --fill diffusion` prints one",
	"dbn":       rbmNote, "deepbeliefnet": rbmNote, "boltzmannmachine": rbmNote, "som": "", "ica": "", "fastica": "", "lda": "", "tsne": "", "umap": "", "mds": "", "isomap": "",
	"regression": linearNote, "logisticregression": linearNote, "linearregression": linearNote, "softmaxregression": linearNote,
	"classifier": classifierNote, "mlp": classifierNote, "cnn": classifierNote, "resnet": classifierNote,
	"svm":       "a linear SVM on the codes is a metric: `tessera eval RUN --metrics svm`",
	"sae":       "a sparse auto-encoder is an auto-encoder with the layer top_k, or with a loss on the code (kl, hoyer, l1)",
	"denoising": "a denoising auto-encoder begins with a layer of noise: masking_noise or gaussian_noise",
	// layers
	"causal": causalNote, "causalattention": causalNote, "gpt": causalNote, "nextword": causalNote, "causalselfattention": causalNote, "decoderonly": causalNote,
	"bert":     "a masked auto-encoder of tokens has the layers mask_patches and mask_tokens: `tessera check --fill masked-autoencoder` prints one of images",
	"word2vec": wordsNote, "skipgram": wordsNote, "fasttext": wordsNote, "tokenembedding": wordsNote,
	"clip": "CLIP compares two heads of a model by the loss contrastive (with), one for each column",
	"lstm": "", "gru": "", "rnn": "", "conv3d": "", "separableconv2d": "",
	"rmsnorm": "", "lambda": "", "spectralnorm": "",
	// losses
	"kldivergence": klNote, "kullbackleibler": klNote, "kldiv": klNote, "kldivloss": klNote, "vaekl": klNote,
	"perceptual": "", "lpips": "", "wasserstein": "", "adversarialloss": "", "triplet": "", "cosinesimilarity": "",
	// keys of a model
	"inputs":    "a layer or a head reads columns and values by their names: from = [\"images\", \"NAME\"]",
	"input":     "the encoder reads the images, whose shape the data set tells; layers and heads read other columns by from = \"NAME\"",
	"outputs":   "further outputs are heads: [model.NAME.head.HEAD]",
	"metrics":   "metrics are chosen when a run is measured: `tessera eval RUN --metrics NAME`",
	"callbacks": "procedures around the training steps are hooks: [model.NAME.hook.HOOK]",
	"device":    "models run on the CPU; `tessera train --threads N` sets the number of threads",
	"gpu":       "models run on the CPU; `tessera train --threads N` sets the number of threads",
	"dtype":     "numbers are float32",
	"precision": "numbers are float32",
}

// classifierNote and linearNote are the advice for models without a decoder.
const (
	classifierNote = "a classifier is an auto-encoder with a head: `tessera check --fill classifier` prints one"
	linearNote     = "a regression has no decoder, and a head that a loss compares with classes (cross_entropy) or a column of numbers (mse); " +
		"it is linear with encoder = [{ kind = \"flatten\" }]"
)

// causalNote is the advice for models that predict the next token.
const causalNote = "a model of language has a transformer with causal = true, the loss next_token and the data set tokens"

// wordsNote is the advice for embeddings of words.
const wordsNote = "vectors of words: `tessera check --fill skip-gram` prints a model of the data set contexts with the loss negative_sampling; so do cbow, glove and ppmi-nmf, and fasttext classifies sentences"

// rbmNote is the advice for machines that are declared as auto-encoders.
const rbmNote = "a restricted Boltzmann machine is an auto-encoder with the layer rbm: `tessera check --fill rbm` and `tessera check --fill deep-belief` print some"

// klNote explains the difference between the KL sparsity penalty and the KL term of a variational auto-encoder.
const klNote = "kl is the sparsity penalty on the mean activation of units; the KL term of a variational auto-encoder is gaussian_kl"

// vaeNote explains how a variational auto-encoder is declared.
const vaeNote = "a variational auto-encoder is an auto-encoder whose encoder ends with the layer gaussian, with the loss gaussian_kl"

// ganNote explains how a generative adversarial network is declared.
const ganNote = "a GAN is a model with a drawn column of noise and two players: models.md, which `tessera docs DIR` writes, has one"

func init() { language.Lacks = unsupported } // in init, because unsupported reads language

// Lacking explains what to declare in place of a well-known name that no vocabulary has, "" for other names.
func Lacking(name string) string { return unsupported("part", name) }

// plainName returns a name in lower case without separators.
func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}

// unsupported explains that a name belongs to another vocabulary, or that a well-known name cannot be declared. It
// returns "" for other names. The text what is the noun of the vocabulary, or "key".
func unsupported(what, name string) string {
	for _, v := range language.Vocabularies {
		asKey := v.What == "hook" && !slices.Contains(table.Keys(&Model{}, Autoencoder), name)
		if slices.Contains(v.Names(), name) && (what != "key" || asKey) {
			return elsewhere(v.What, name)
		}
	}
	instead, known := lacks[plainName(name)]
	switch is, err := os.Stat(name); {
	case what == "dataset" && err == nil && is.IsDir():
		return fmt.Sprintf("a folder is written with a slash at its end: %q", name+"/")
	case !known:
		return ""
	case instead == "":
		return "not supported; to write it as a part in Go, see " + partsPage
	}
	return "not supported: " + instead
}

// elsewhere explains that a name belongs to another vocabulary.
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
