package train

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/classical"
	"tessera/config"
	"tessera/config/part"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/regular"
	"tessera/internal/tokens"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/sae"
	"tessera/internal/train/torch"
)

// tensorFile is how the name of a file of parameters ends; others have vectors of words.
const tensorFile = ".safetensors"

// start initialises a new run with the parameters of another run, of a sparse dictionary or of a file, and projects them. A run of principal
// components provides the parameters of two dense layers. A resumed run reads its parameters from its own state, because the other run may have
// been deleted.
//
// If the other folder is not a run or has no parameters, the error is a [part.KeyError]. If parameters are missing or have
// another shape, it is a [*checkpoint.Error] that names each of them.
func (n *trainee) start() error {
	s := n.spec.Start
	if s == nil {
		return nil
	}
	place := cmp.Or(n.options.Start, s.From())
	var err error
	switch {
	case s.File != "" && !strings.HasSuffix(place, tensorFile):
		n.started, err = n.spell(place, s)
	case s.File != "":
		n.started, err = n.fill(place, s)
	case sae.Weights(place) != "":
		var d *sae.Dictionary
		if d, err = sae.Read(place); err == nil {
			from := &graph.Model{Spec: n.spec}
			d.Parameters(func(path string, t data.Tensor) {
				from.Parameters = append(from.Parameters, &graph.Parameter{Path: path, Shape: t.Shape, Data: t.Data})
			})
			n.started, err = &d.File, n.take(from, d.File.Path, s.On)
		}
	default:
		n.started, err = n.follow(place, s)
	}
	if err != nil {
		return fmt.Errorf("model %q: start: %w", n.spec.Name, err)
	}
	n.stepper.Project()
	return nil
}

// follow copies the parameters of a run.
func (n *trainee) follow(run string, s *config.Start) (*data.File, error) {
	refuse := func(problem string) (*data.File, error) {
		return nil, part.KeyError{Key: "run", Problem: s.Run + " is " + problem}
	}
	from, err := Open(run)
	switch {
	case errors.Is(err, folder.ErrNotRun):
		return refuse("not the folder of a run; train it first, or fetch it by `tessera get`")
	case err != nil:
		return nil, err
	case from.Model == nil:
		if from.Model = projected(from); from.Model == nil {
			return refuse(fmt.Sprintf("a run of kind %q, which has no network parameters", from.Spec.Kind))
		}
	}
	if err := n.take(from.Model, from.Path, s.On); err != nil {
		return nil, err
	}
	if err := n.compare(from, run, s); err != nil {
		return nil, err
	}
	if was, is := data.ScaleIsFitted(from.Spec.Dataset.Source), data.ScaleIsFitted(n.spec.Dataset.Source); was != is && n.options.Warn != nil {
		with := map[bool]string{false: "not scaled by their statistics", true: "scaled by their statistics"}
		n.options.Warn(fmt.Sprintf("start: the samples of %s are %s, those of this model are %s: its parameters read values in another unit; declare the same scale", s.Run, with[was], with[is]))
	}
	return ParametersOf(run)
}

// fill copies the tensors of a file in the layouts of PyTorch's modules.
func (n *trainee) fill(path string, s *config.Start) (*data.File, error) {
	file, err := data.ReadTensors(path)
	if err != nil {
		return nil, err
	}
	if file.Metadata[declarationKey] != "" && file.Metadata["format"] != "pt" {
		return nil, part.KeyErrorf("file", "%s has parameters in the layouts of a run; name its folder: run = %q", path, filepath.Dir(path))
	}
	problems, err := torch.Fill(n.model, func(path string) bool { return config.MatchPath(s.On, path) }, torch.Renamed(s.Names), file.ByName)
	if err == nil && problems != nil {
		err = checkpoint.Mismatchf(path, "does not match: %s; it has %s; rename parameters with `names`, or exclude them with `on`", strings.Join(problems, "; "),
			strings.Join(slices.Sorted(maps.Keys(file.ByName)), ", "))
	}
	return &file.File, err
}

// projected returns an auto-encoder of two dense layers with the parameters of an affine baseline; nil for other baselines.
func projected(t *Trained) *graph.Model {
	affine, ok := t.Baseline.(classical.Affine)
	if !ok {
		return nil
	}
	weight, bias := affine.Affine()
	atoms := t.Baseline.Atoms()
	units, pixels := len(bias), len(weight)/len(bias)
	return &graph.Model{Spec: t.Spec, Parameters: []*graph.Parameter{
		{Path: "encoder.0.weight", Shape: []int{pixels, units}, Data: weight},
		{Path: "encoder.0.bias", Shape: []int{units}, Data: bias},
		{Path: "decoder.0.weight", Shape: []int{units, pixels}, Data: atoms.Values},
		{Path: "decoder.0.bias", Shape: []int{pixels}, Data: atoms.Bias},
	}}
}

// StartOf returns the file from which a new run of a model takes its initial parameters; nil if they are random.
func StartOf(spec *config.Model) (*data.File, error) {
	if spec == nil || spec.Start == nil {
		return nil, nil
	}
	return ParametersOf(spec.Start.From())
}

// ParametersOf returns the file from which [Open] would read the parameters of a run, or from which a model would start: the file itself, or that of
// a sparse dictionary in a folder.
func ParametersOf(place string) (*data.File, error) {
	path := sae.Weights(place)
	if info, err := os.Stat(place); err == nil && !info.IsDir() || strings.HasSuffix(place, tensorFile) {
		path = place
	}
	contents, err := []byte(nil), error(nil)
	if path != "" {
		contents, err = regular.ReadFile(path)
	} else {
		path, contents, err = folderOf(place).parameters()
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(contents)
	return &data.File{Path: path, SHA256: hex.EncodeToString(sum[:])}, nil
}

// take copies every parameter that matches the glob, or none if one of them is unsuitable.
func (n *trainee) take(from *graph.Model, path, glob string) error {
	var problems []string
	taken := map[*graph.Parameter]*graph.Parameter{}
	for _, p := range n.model.Parameters {
		if !config.MatchPath(glob, p.Path) {
			continue
		}
		if q, err := from.Parameter(p.Path); err != nil {
			problems = append(problems, p.Path+" is missing")
		} else if !slices.Equal(q.Shape, p.Shape) {
			problems = append(problems, fmt.Sprintf("%s has shape %v, want %v", p.Path, q.Shape, p.Shape))
		} else {
			taken[p] = q
		}
	}
	if len(problems) > 0 {
		return checkpoint.Mismatchf(path, "does not match: %s; exclude parameters with `on`", strings.Join(problems, "; "))
	}
	for p, q := range taken {
		copy(p.Data, q.Data)
	}
	return nil
}

// compare returns an error if rows of a table of words are copied to rows of other words, and warns of other parameters that are copied by position
// although the values or classes of that run have other names.
func (n *trainee) compare(from *Trained, run string, s *config.Start) error {
	warn := func(names, difference, help string) {
		if difference != "" && n.options.Warn != nil {
			n.options.Warn(fmt.Sprintf("start: the %s of %s differ from those of this model (%s): parameters are copied by position; %s, or exclude those parameters with `on`", names, s.Run, difference, help))
		}
	}
	takes := func(prefix string) bool {
		return slices.ContainsFunc(n.model.Parameters, func(p *graph.Parameter) bool {
			return strings.HasPrefix(p.Path, prefix) && config.MatchPath(s.On, p.Path)
		})
	}
	if takes("head.") {
		warn("classes", unlike(from.Classes, n.samples.classes), "name the classes as there")
	}
	if was, is := from.Tokens, n.samples.tokens; was != nil && is != nil {
		names := func(t *tokens.Tokenizer) (list []string) {
			for i := range t.Size() {
				list = append(list, t.Name(int32(i)))
			}
			return list
		}
		difference := unlike(names(was), names(is))
		if rows := wordTable(n.model, is.Texts()); difference != "" && rows != nil && config.MatchPath(s.On, rows.Path) {
			return part.KeyErrorf("run", "%s has another vocabulary (%s): the rows of %s would be those of other words; data set tokens: take its vocabulary with tokenizer = %q; "+
				"others: export its vectors (--to vec) and start from them, they are matched by word", s.Run, difference, rows.Path, from.Path)
		}
		warn("words", difference, "fit both to the same texts")
		return nil
	}
	if takes("encoder.") {
		was, is := from.ColumnNames, n.samples.columnNames
		if was == nil && is == nil {
			was, is = valueNames(run, from.Spec.Dataset), valueNames("", n.spec.Dataset)
		}
		warn("values", unlike(was, is), "put the columns into the order that they have there (key columns)")
	}
	return nil
}

// valueNames returns the names of the values of a sample; nil if they have none or the file of a run has changed.
func valueNames(run string, d config.Dataset) []string {
	if run == "" {
		namer, ok := d.Source.(data.Namer)
		if !ok {
			return nil
		}
		names, _, _ := namer.ValueNames(context.Background())
		return names
	}
	names, _ := Origin(run, d.Source, nil).ValueNames(context.Background(), d)
	return names
}

// unlike describes the first difference of two lists of names; "" if there is none or one of them is unknown.
func unlike(was, is []string) string {
	if was == nil || is == nil {
		return ""
	}
	for i := range max(len(was), len(is)) {
		if i >= len(was) || i >= len(is) || was[i] != is[i] {
			name := func(list []string) string {
				if i < len(list) {
					return strconv.Quote(list[i])
				}
				return "none"
			}
			return fmt.Sprintf("number %d is %s there and %s here", i, name(was), name(is))
		}
	}
	return ""
}
