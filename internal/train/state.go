package train

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/lists"
	"tessera/internal/regular"
	"tessera/internal/train/checkpoint"
	"tessera/losses"
	"tessera/optim"
)

// Names of the metadata in a checkpoint. The owner of a state writes it: [trainee.save] adds the parameters (below), the
// states of the optimizers (stepper.saveState) and of the hooks (hookList.save in hooks.go); a baseline adds its own state.
// This file adds the metadata.
const (
	formatKey      = "format"      // value: formatText
	contentsKey    = "contents"    // "state", "parameters", "best parameters"
	modelKey       = "model"       // the model's name
	kindKey        = "kind"        // kind of a baseline
	shapeKey       = "shape"       // shape of one image, JSON
	columnsKey     = "columns"     // columns other than images and labels that the model reads: [data.Column]s, JSON; omitted if there are none
	epochKey       = "epoch"       // number of complete epochs (for best parameters: their epoch)
	stepKey        = "step"        // number of steps
	identityKey    = "identity"    // only in a state: [identity], JSON
	declarationKey = "declaration" // the text of config.toml
	progressKey    = "progress"    // only in a state: [progress], JSON
	arithmeticKey  = "arithmetic"  // only in a state: [Arithmetic], JSON

	formatText  = "tessera 2"
	formatText1 = "tessera 1" // written by tessera 0.1.0: other names in states, and no declaration in some files

	optimizerPrefix = "optimizer/" // followed by path + "/" + index
)

// identity contains the properties of a run that must not change.
type identity struct {
	Seed      uint64   `json:"seed"`
	Batch     int      `json:"batch,omitempty"`
	Images    int      `json:"images"` // number of fitted images
	Optimizer string   `json:"optimizer,omitempty"`
	Method    string   `json:"method,omitempty"` // kind of a baseline
	Data      []string `json:"data,omitempty"`   // SHA-256 of the data files
	Labels    string   `json:"labels,omitempty"` // SHA-256 of the labels of the fitted images, if a loss reads them; see [labelSum]
}

// progress is the position of a run. Random streams need no state: the seed and these counters determine them.
type progress struct {
	Epoch    int       `json:"epoch"`              // number of complete epochs
	Step     int       `json:"step"`               // number of steps
	Position int       `json:"position,omitempty"` // number of images in the current epoch so far
	Sums     []float64 `json:"sums,omitempty"`     // sums of the loss terms over these images
	Counted  []int     `json:"counted,omitempty"`  // number of images in each of these sums, if players take turns
	Seconds  float64   `json:"seconds,omitempty"`  // time spent on the current epoch so far
	Weighed  []float64 `json:"weighed,omitempty"`  // sums of the adaptive weights over the images of Sums; 0 for other terms
	Weights  []float64 `json:"weights,omitempty"`  // weights of the loss terms for the next step, if a weight is adaptive; 0 for others
	Stopped  bool      `json:"stopped,omitempty"`  // stopped early

	Collapsed bool `json:"collapsed,omitempty"` // the codes have collapsed, see [job.watchCodes]

	Search *optim.SearchState `json:"search,omitempty"` // scalar state of a full-batch optimizer
	Begun  bool               `json:"begun,omitempty"`  // BeginEpoch was called for the current epoch; only with a full-batch optimizer
}

// count adds images to the counts of the terms that a program has computed, if the players take turns.
func (p *progress) count(of *program, images int) {
	for i := range p.Counted {
		if of.terms[i] >= 0 {
			p.Counted[i] += images
		}
	}
}

func newIdentity(spec *config.Model, images int, files []data.File) identity {
	id := identity{Seed: spec.Train.Seed, Images: images}
	if id.Method = spec.Training().Method; id.Method == "" {
		id.Batch, id.Optimizer = spec.Train.Batch, spec.Optimizer.Kind
	}
	for _, f := range files {
		id.Data = append(id.Data, f.SHA256)
	}
	return id
}

// readsLabels reports whether a loss of the model compares a value with labels.
func readsLabels(spec *config.Model) bool {
	return slices.ContainsFunc(spec.Losses, comparesLabels)
}

// comparesLabels reports whether a term compares a value with the labels.
func comparesLabels(l config.Loss) bool {
	r := l.Reads()
	return r.Classes && r.Against == losses.Labels
}

// labelSum returns the SHA-256 of the labels of the fitted images, int64, little-endian; "" if no loss reads labels. The
// checksum of a folder of images covers only the pixels, not the labels.
func labelSum(spec *config.Model, images *data.Images) string {
	if !spec.ReadsLabels() {
		return ""
	}
	var b []byte
	for _, label := range images.Labels() {
		b = binary.LittleEndian.AppendUint64(b, uint64(label))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// differs returns a description of a difference between the stored data s and the current data, "" if there is none.
// [sameDeclaration] compares the other properties.
func (id identity) differs(s identity) string {
	switch {
	case s.Images != id.Images:
		return fmt.Sprintf("it was trained on %d samples, the data set now gives %d", s.Images, id.Images)
	case !slices.Equal(s.Data, id.Data):
		return "the files of the data set have changed"
	case s.Labels != id.Labels:
		return "the labels of the fitted samples have changed"
	}
	return ""
}

// optimizerName returns the name of a tensor of the optimizer's state for one parameter.
func optimizerName(m *trainable, i int) string {
	return optimizerPrefix + m.Path + "/" + strconv.Itoa(i)
}

func add(f *checkpoint.File, m *graph.Model, values [][]float32) {
	for i, p := range m.Parameters {
		f.Tensors = append(f.Tensors, checkpoint.Tensor{Name: p.Path, Shape: p.Shape, Data: values[i]})
	}
}

// current returns the values of a model's parameters.
func current(m *graph.Model) [][]float32 {
	return lists.Map(m.Parameters, func(p *graph.Parameter) []float32 { return p.Data })
}

// stored is a state read from a file.
type stored struct {
	path string
	file *checkpoint.File
	identity
	progress
	arithmetic Arithmetic
	shape      []int
	columns    []data.Column
}

func (s *stored) declared() (*config.Model, error) {
	return parseConfig(s.path, []byte(s.file.Metadata[declarationKey]))
}

// readState reads a state and its metadata. A run without a state is reported as damaged.
func readState(path string) (*stored, error) {
	b, err := regular.ReadUnlinked(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, checkpoint.Errorf(path, "is missing")
	} else if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	f, err := decodeOwn(path, b)
	if err != nil {
		return nil, err
	}
	return stateOf(path, f)
}

// stateOf parses the metadata of a state.
func stateOf(path string, f *checkpoint.File) (s *stored, err error) {
	s = &stored{path: path, file: f}
	if s.shape, err = storedShape(path, f); err != nil {
		return nil, err
	}
	if s.columns, err = storedColumns(path, f); err != nil {
		return nil, err
	}
	for _, record := range []struct {
		key  string
		into any
	}{{identityKey, &s.identity}, {progressKey, &s.progress}, {arithmeticKey, &s.arithmetic}} {
		if err := json.Unmarshal([]byte(f.Metadata[record.key]), record.into); err != nil {
			return nil, checkpoint.Errorf(path, "damaged: %s: %v", record.key, err)
		}
	}
	return s, nil
}

// decodeOwn decodes a checkpoint and returns an error if this version did not write its format.
func decodeOwn(path string, b []byte) (*checkpoint.File, error) {
	f, err := checkpoint.Decode(b)
	if err != nil {
		return nil, checkpoint.Errorf(path, "%v", err)
	}
	return f, readable(path, f.Metadata)
}

// FormatError reports a checkpoint that another version or another program wrote and this version cannot read.
type FormatError struct {
	Path   string
	Format string // format in the metadata, "" if there is none
}

func (e *FormatError) Error() string {
	if e.Format == "" || e.Format == formatText1 {
		return e.Path + ": written by tessera 0.1.0 or an earlier 0.2.0-dev: open it with that version; this version reads format 2"
	}
	return fmt.Sprintf("%s: its format is %q; this version reads format 2 (%q)", e.Path, e.Format, formatText)
}

// readable returns a [*FormatError] if the metadata name another format.
func readable(path string, metadata map[string]string) error {
	if format := metadata[formatKey]; format != formatText {
		return &FormatError{path, format}
	}
	return nil
}

func storedShape(path string, f *checkpoint.File) ([]int, error) {
	var shape []int
	if err := json.Unmarshal([]byte(f.Metadata[shapeKey]), &shape); err != nil {
		return nil, checkpoint.Errorf(path, "damaged: %s: %v", shapeKey, err)
	}
	return shape, nil
}

// storedColumns returns the columns that the model of a checkpoint reads.
func storedColumns(path string, f *checkpoint.File) (list []data.Column, err error) {
	if text, ok := f.Metadata[columnsKey]; ok {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, checkpoint.Errorf(path, "damaged: %s: %v", columnsKey, err)
		}
	}
	return list, nil
}

// loadParameters sets a model's parameters from a checkpoint; a mismatch is an error. It ignores tensors with a slash in
// their names, which are not parameters.
func loadParameters(m *graph.Model, path string, f *checkpoint.File) error {
	known := map[string]bool{}
	for _, p := range m.Parameters {
		known[p.Path] = true
		if err := load(path, f, p.Path, p.Shape, p.Data); err != nil {
			return err
		}
	}
	for _, t := range f.Tensors {
		if !strings.Contains(t.Name, "/") && !known[t.Name] {
			return checkpoint.Mismatchf(path, "does not match its model: the model has no parameter %s", t.Name)
		}
	}
	return nil
}

// load copies one tensor.
func load(path string, f *checkpoint.File, name string, shape []int, into []float32) error {
	t, ok := f.Tensor(name)
	if !ok {
		return checkpoint.Mismatchf(path, "does not match its model: %s is missing", name)
	}
	if !slices.Equal(t.Shape, shape) {
		return checkpoint.Mismatchf(path, "does not match its model: %s has shape %v, want %v", name, t.Shape, shape)
	}
	copy(into, t.Data)
	return nil
}

// changed returns the first file of the data set whose checksum differs from the stored run, and the stored checksum; nil if
// there is none.
func (s *session) changed(stored identity) (file *data.File, was string) {
	if len(stored.Data) != len(s.files) {
		return nil, ""
	}
	for i, f := range s.files {
		if f.SHA256 != stored.Data[i] {
			return &f, stored.Data[i]
		}
	}
	return nil, ""
}

// fits checks that a state matches the declaration and the images, and that its counters are valid.
func (s *session) fits(from *stored) error {
	if err := sameDeclaration(s.spec, from); err != nil {
		return err
	}
	if file, was := s.changed(from.identity); file != nil {
		return checkpoint.Mismatchf(from.path, "does not match: %s %s", file.Path, changedText(*file, was))
	}
	if differs := s.identity.differs(from.identity); differs != "" {
		return checkpoint.Mismatchf(from.path, "does not match: %s", differs)
	}
	p := from.progress
	if p.Epoch < 0 || p.Step < 0 || p.Position < 0 || p.Position >= s.epochImages() || from.Batch > 0 && p.Position%from.Images%from.Batch != 0 {
		return checkpoint.Errorf(from.path, "damaged: impossible position: step %d, epoch %d, sample %d", p.Step, p.Epoch, p.Position)
	}
	return nil
}
