package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/machine"
	"tessera/internal/parallel/team"
	"tessera/internal/sealed"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// StandaloneTrial is one trial without its sweep, with all data that its training and evaluation read. [Sweep.Run] and
// other machines train trials through it. Equal fields give equal bytes.
type StandaloneTrial struct {
	train.Options // Out is the folder of the run; Do sets Backend, Team and Load

	ID      string
	Model   *config.Model
	Fitted  *data.Set         // data set on which the trial is trained
	Tested  *data.Set         // data set on which the trial is evaluated
	Split   data.Split        // split of Tested or Fitted on which the trial is measured
	Metrics metrics.Selection // metrics to measure; nil for [metrics.Default]

	Rows map[*data.Images][]float32 // rows of values of images, shared by several trials; may be nil
}

// Do trains the trial, or resumes it from the checkpoint in its folder. Then it measures the trial and stores the
// metrics in eval.json. The errors are those of [train.Run], [train.Resume] and [evaluation.Measure].
func (o *StandaloneTrial) Do(ctx context.Context, team *team.Team) (*metrics.Result, error) {
	backend := engine.Backend{Team: team}
	options := o.Options
	options.Backend, options.Team = backend, team
	options.Load = func(context.Context, *config.Dataset) (*data.Set, error) { return o.Fitted, nil }
	var err error
	if begun(o.Out) {
		_, err = train.Resume(ctx, o.Out, options)
	} else {
		_, err = train.Run(ctx, o.Model, options)
	}
	if err != nil {
		return nil, err
	}
	return o.measure(ctx, backend, o.Split, keptFile)
}

// begun reports whether a folder contains a run. The folder of a run is complete as soon as it exists.
func begun(path string) bool {
	_, err := os.Stat(filepath.Join(path, folder.Config))
	return !errors.Is(err, fs.ErrNotExist)
}

// Identity returns the ID of a trial of this model with these data and initial parameters.
func (o *StandaloneTrial) Identity() (string, error) {
	start, err := train.StartOf(o.Model)
	if o.Start != "" {
		start, err = train.ParametersOf(o.Start)
	}
	if err != nil && o.Start != "" {
		return "", err
	}
	files := slices.Concat(o.Fitted.Files, o.Tested.Files)
	if start != nil && err == nil { // on an error, the training reports the error
		files = append(files, *start)
	}
	return identity(o.Model, files), nil
}

// identity returns a hash of the non-default values of a model, except its description, and of the files that it reads.
func identity(m *config.Model, files []data.File) string {
	h := sha256.New()
	h.Write(m.Canonical())
	for _, f := range files {
		h.Write([]byte(f.SHA256 + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// measure measures the trained trial on a split and writes the metrics to a file in the trial's folder.
func (o *StandaloneTrial) measure(ctx context.Context, backend ir.Backend, split data.Split, file string) (*metrics.Result, error) {
	parameters, err := train.ParametersOf(o.Out)
	if err != nil {
		return nil, err
	}
	measured, err := o.evaluate(ctx, backend, split)
	if err != nil {
		return nil, err
	}
	return measured, o.keep(file, keptMetrics{o.ID, parameters.SHA256, measured.Whole(), sealed.Open})
}

// keep writes the metrics of a trial, including those that are not applicable, to a file in the trial's folder.
func (o *StandaloneTrial) keep(file string, kept keptMetrics) error {
	text, err := sealed.Document(kept)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	disk := o.Disk
	if disk == nil {
		disk = folder.OS{}
	}
	held, err := folder.Open(o.Out, disk)
	if err != nil {
		return err
	}
	defer held.Close()
	return held.Write(folder.File{Name: file, Data: text})
}

// evaluate measures the trained trial on a split of its data set.
func (o *StandaloneTrial) evaluate(ctx context.Context, backend ir.Backend, split data.Split) (measured *metrics.Result, err error) {
	trained, err := train.Open(o.Out)
	if err != nil {
		return nil, err
	}
	coder := trained.Coder(backend)
	if c, ok := coder.(io.Closer); ok {
		defer func() { err = errors.Join(err, c.Close()) }()
	}
	set := o.Fitted
	if split == data.TestSplit {
		set = o.Tested
	}
	sample, err := evaluation.Take(set.Scaled(trained.Scaling), o.Model, coder.Shape(), split)
	if err != nil {
		return nil, err
	}
	sample.Rows, sample.Range = o.Rows[sample.Images], trained.Range
	return evaluation.Measure(ctx, o.Model, coder, sample, o.Metrics)
}

// keptMetrics is the contents of a trial's eval.json or test.json. It is valid while the parameters of the trial are
// the measured ones and the file has not changed.
type keptMetrics struct {
	Trial      string          `json:"trial"`
	Parameters string          `json:"parameters"` // SHA-256 of the file with the parameters that were measured
	Measured   *metrics.Result `json:"measured"`
	SHA256     string          `json:"sha256"` // checksum of the file itself; see package sealed
}

// kept returns the stored metrics of a finished trial on the sweep's images. It is nil if a requested metric is missing or was measured with other settings, or
// if the file is unreadable, damaged or belongs to other parameters.
func (s *Sweep) kept(t *Trial) *metrics.Result { return s.read(t, keptFile, s.split) }

// read returns the metrics in a file of a trial, nil if they belong to other parameters or another split.
func (s *Sweep) read(t *Trial, file string, split data.Split) *metrics.Result {
	var kept keptMetrics
	if sealed.Read(filepath.Join(t.Path, file), &kept) != nil || kept.Trial != t.ID || kept.Measured == nil || kept.Measured.Images == 0 {
		return nil
	}
	if parameters, err := train.ParametersOf(t.Path); err != nil || parameters.SHA256 != kept.Parameters {
		return nil
	}
	if split == data.TestSplit && !t.tested.HasTest {
		split = data.AllSplit
	}
	chosen := s.options.Metrics
	if _, holed := kept.Measured.Find("mse_observed"); holed {
		chosen = metrics.WithHoles(chosen) // as the evaluation of images with missing entries
	}
	picked, ok := chosen.Of(kept.Measured)
	if !ok || picked.Split != string(split) || !chosen.SameSettings(kept.Measured) {
		return nil
	}
	if picked.Tables = kept.Measured.Tables; len(picked.Tables) > 0 && len(picked.Values) < len(kept.Measured.Values) {
		return nil // which metric a table belongs to is not stored
	}
	picked.Vectors = len(t.fitted.Shape) == 1
	return picked
}

// stored returns the metrics in a file of a trial that has just been measured. The results of a sweep are made of stored metrics
// only: they have the same bytes wherever the sweep was interrupted.
func (s *Sweep) stored(t *Trial, file string, split data.Split) (*metrics.Result, error) {
	measured := s.read(t, file, split)
	if measured == nil {
		return nil, checkpoint.Errorf(filepath.Join(t.Path, file), "is missing, damaged or of other parameters")
	}
	return measured, nil
}

// verify returns an error if the model in the trial's folder does not match the trial's ID.
func (t *Trial) verify() error {
	stored, err := train.ConfigOf(t.Path)
	if err != nil {
		return err
	}
	stored.About = t.Model.About // the description is not part of the identity
	differing := config.Differences(t.Model.Resolved(t.fitted.Shape), stored.Resolved(t.fitted.Shape))
	if len(differing) == 0 {
		return nil
	}
	lines := lists.Map(differing, config.Difference.String)
	what, advice := "does not declare the model of this trial", "restore the file, or remove the folder to train the trial again"
	if e, err := train.ReadEnvironment(t.Path); err == nil && e.Version != machine.Version() {
		what = fmt.Sprintf("is of tessera %s, whose defaults differ from those of %s", e.Version, machine.Version())
		advice = "run the sweep with that version, or remove the folder to train the trial again"
	}
	return checkpoint.Mismatchf(filepath.Join(t.Path, folder.Config), "%s: %s; %s", what, strings.Join(lines, "; "), advice)
}
