package fleet

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"tessera/data"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/internal/train/sae"
	"tessera/losses"
	"tessera/metrics"
)

// protocol is the version of the messages. Machines with different versions of the protocol or of tessera reject each
// other.
const protocol = 1

// Limits of messages. NATS allows a megabyte by default.
const (
	mostMessage = 1 << 20
	mostText    = 16 << 10 // length of a name or a problem
	mostRunning = 4096     // number of concurrent trials on one machine
	mostTries   = 64
)

// Patterns of identifiers.
var (
	isID     = regexp.MustCompile(`^[0-9a-f]{16}$`).MatchString              // IDs of trials, sweeps and processes
	isSHA    = regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString              // SHA-256
	isObject = regexp.MustCompile(`^[0-9a-z][0-9a-z.-]{0,199}$`).MatchString // name of an object in the store
)

// hello is the message with its state that a worker sends every second.
type hello struct {
	Protocol int       `json:"protocol"`
	Version  string    `json:"version"` // version of tessera
	ID       string    `json:"id"`      // ID of the process
	Name     string    `json:"name"`    // name of the machine and the process
	CPU      string    `json:"cpu"`
	Kernels  string    `json:"kernels"`
	Cores    int       `json:"cores"` // maximum number of concurrent trials
	Sweep    string    `json:"sweep,omitempty"`
	Leaving  bool      `json:"leaving,omitempty"`
	Running  []running `json:"running,omitempty"`
}

type running struct {
	Trial           string   `json:"trial"`
	Epoch           int      `json:"epoch"`
	Epochs          int      `json:"epochs"`
	Step            int      `json:"step"`
	Steps           int      `json:"steps"`
	Loss            *float64 `json:"loss,omitempty"` // nil if not finite
	ImagesPerSecond float64  `json:"images_per_second"`
}

// The states of a sweep.
const (
	stateRun    = "run"
	stateCancel = "cancel" // workers must return their trials
	stateEnd    = "end"    // all trials have ended
)

// welcome is the answer to a hello message.
type welcome struct {
	Protocol int    `json:"protocol"`
	Refused  string `json:"refused,omitempty"` // the reason why the worker must not take trials
	Sweep    string `json:"sweep,omitempty"`
	State    string `json:"state,omitempty"`
	Lease    int    `json:"lease_ms,omitempty"` // time in milliseconds after which a trial that no worker reports is given to another worker
}

type task struct {
	Protocol    int               `json:"protocol"`
	Trial       string            `json:"trial"`
	Label       string            `json:"label"`       // model and settings of the trial, for messages
	Declaration string            `json:"declaration"` // declaration of the model with all defaults
	Split       data.Split        `json:"split"`
	Metrics     metrics.Selection `json:"metrics"`
	Fitted      []string          `json:"fitted"`          // SHA-256 of the files of the training images
	Tested      []string          `json:"tested"`          // SHA-256 of the files of the images on which the trial is measured
	Start       string            `json:"start,omitempty"` // SHA-256 of the file of the initial parameters
}

// try is an attempt of a worker that has started a trial and not finished it.
type try struct {
	Worker  string `json:"worker"`
	Problem string `json:"problem,omitempty"` // "" while the worker is running the trial, or if the worker died
}

// record is the state of a trial without a result.
type record struct {
	Tries      []try     `json:"tries,omitempty"` // attempts since the last checkpoint
	Step       int       `json:"step,omitempty"`  // step of the last checkpoint
	Checkpoint *manifest `json:"checkpoint,omitempty"`
}

// result is the message at the end of a trial.
type result struct {
	Protocol int       `json:"protocol"`
	Trial    string    `json:"trial"`
	Task     string    `json:"task"` // [task.digest]
	Worker   string    `json:"worker"`
	Digest   string    `json:"digest,omitempty"` // SHA-256 of eval.json, which identifies the parameters and contains all metrics
	Problem  string    `json:"problem,omitempty"`
	GaveUp   bool      `json:"gave_up,omitempty"` // several attempts failed, and the machines may have caused the problem
	Run      *manifest `json:"run,omitempty"`     // the run; also present if the training diverged
}

// need requests from the coordinator the files that a trial reads: needFitted, needTested or needStart.
type need struct {
	Trial string `json:"trial"`
	What  string `json:"what"`
}

const (
	needFitted = "fitted"
	needTested = "tested"
	needStart  = "start"
)

// supply is the answer to a need.
type supply struct {
	Problem  string    `json:"problem,omitempty"`
	Manifest *manifest `json:"manifest,omitempty"`
}

// message is a message that can check its values.
type message interface{ check() error }

func encode(m message) ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	b, err := json.Marshal(m)
	if err == nil && len(b) > mostMessage-4096 { // the headers of the message need space, too
		err = fmt.Errorf("a message of %d bytes is too long (want at most %d)", len(b), mostMessage-4096)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return b, nil
}

// errMessage is the error for bytes that are not a message of this protocol.
var errMessage = errors.New("not a message of this version of tessera")

// decode reads a message strictly: unknown keys, values out of range and trailing bytes are errors.
func decode(b []byte, m message) error {
	if len(b) > mostMessage {
		return fmt.Errorf("%w: %d bytes", errMessage, len(b))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: something follows it", errMessage)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	return nil
}

// want returns an error unless holds is true. The error names the invalid value by the text what.
func want(holds bool, what string) error {
	if holds {
		return nil
	}
	return errors.New(what + " is out of range")
}

// short returns an error for a text that is too long.
func short(what string, texts ...string) error {
	for _, t := range texts {
		if len(t) > mostText {
			return errors.New(what + " is too long")
		}
	}
	return nil
}

func (h *hello) check() error {
	for _, r := range h.Running {
		if err := want(isID(r.Trial) && r.Epoch >= 0 && r.Epochs >= 0 && r.Step >= 0 && r.Steps >= 0, "running"); err != nil {
			return err
		}
	}
	return cmp.Or(want(h.Protocol == protocol, "protocol"), want(isID(h.ID), "id"), want(h.Cores >= 0 && h.Cores <= mostRunning, "cores"),
		want(h.Sweep == "" || isID(h.Sweep), "sweep"), want(len(h.Running) <= mostRunning, "running"),
		short("a text", h.Version, h.Name, h.CPU, h.Kernels))
}

func (w *welcome) lease() time.Duration { return time.Duration(w.Lease) * time.Millisecond }

func (w *welcome) check() error {
	state := w.State == stateRun || w.State == stateCancel || w.State == stateEnd
	return cmp.Or(want(w.Protocol == protocol, "protocol"), want(w.Refused != "" || isID(w.Sweep) && state && w.Lease > 0 && w.Lease < 1<<30, "sweep, state or lease"),
		short("refused", w.Refused))
}

func (t *task) check() error {
	for _, sum := range append(append([]string{}, t.Fitted...), t.Tested...) {
		if !isSHA(sum) {
			return errors.New("fitted or tested is out of range")
		}
	}
	return cmp.Or(want(t.Protocol == protocol, "protocol"), want(isID(t.Trial), "trial"), t.Split.Check(), want(t.Declaration != "", "declaration"),
		want(t.Start == "" || isSHA(t.Start), "start"))
}

func (r *record) check() error {
	for _, t := range r.Tries {
		if err := short("tries", t.Worker, t.Problem); err != nil {
			return err
		}
	}
	return cmp.Or(want(len(r.Tries) <= mostTries, "tries"), want(r.Step >= 0, "step"), r.Checkpoint.check())
}

func (r *result) check() error {
	return cmp.Or(want(r.Protocol == protocol, "protocol"), want(isID(r.Trial), "trial"), want(isSHA(r.Task), "task"),
		want((r.Problem == "") == isSHA(r.Digest), "digest"), want(r.Problem != "" || r.Run != nil, "run"),
		short("a text", r.Worker, r.Problem), r.Run.check())
}

func (n *need) check() error {
	return cmp.Or(want(isID(n.Trial), "trial"), want(n.What == needFitted || n.What == needTested || n.What == needStart, "what"))
}

func (s *supply) check() error {
	return cmp.Or(short("problem", s.Problem), want(s.Problem != "" || s.Manifest != nil, "manifest"), s.Manifest.check())
}

// progress converts the description of a running trial to a [train.Progress].
func (r running) progress() train.Progress {
	p := train.Progress{Epochs: r.Epochs, Steps: r.Steps}
	p.Epoch, p.Step, p.ImagesPerSecond = r.Epoch, r.Step, r.ImagesPerSecond
	if r.Loss != nil {
		p.Loss = *r.Loss
	}
	return p
}

// cut shortens a text to the limit for messages.
func cut(text string) string {
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText-4], "") + "..."
	}
	return text
}

// Limits for transferred files.
const (
	partSize  = 8 << 20
	mostParts = 2048 // 16 GiB
	mostFiles = 16
)

// manifest lists files, and the objects in the store that together contain the concatenated bytes of the files.
type manifest struct {
	Files []entry `json:"files"`
	Parts []piece `json:"parts"`
}

type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// piece is one object: at most partSize bytes.
type piece struct {
	Object string `json:"object"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// setFile is the name of a packed data set in a manifest.
const setFile = "set"

// known lists the names of all files that may be transferred.
var known = []string{folder.Config, folder.Environment, folder.Metrics, folder.State, folder.Model, folder.Best, evalFile, setFile,
	sae.ConfigFile, sae.LensFile, sae.EleuthFile, startFile}

// evalFile contains the metrics of a trial.
const evalFile = "eval.json"

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// check returns an error for names that are not files of a run, for inconsistent sizes, and for numbers out of range.
func (m *manifest) check() error {
	if m == nil {
		return nil
	}
	if len(m.Files) == 0 || len(m.Files) > mostFiles || len(m.Parts) > mostParts {
		return errors.New("manifest: too many or no files or parts")
	}
	var files, parts int64
	for i, f := range m.Files {
		if !slices.Contains(known, f.Name) || slices.ContainsFunc(m.Files[:i], func(e entry) bool { return e.Name == f.Name }) {
			return fmt.Errorf("manifest: file %.40q is not a file of a run, or is there twice", f.Name)
		}
		if f.Size < 0 || f.Size > mostParts*partSize || !isSHA(f.SHA256) {
			return fmt.Errorf("manifest: file %s: size or checksum out of range", f.Name)
		}
		files += f.Size
	}
	objects := map[string]bool{}
	for _, p := range m.Parts {
		if objects[p.Object] {
			return fmt.Errorf("manifest: object %s is there twice", p.Object)
		}
		objects[p.Object] = true
		if !isObject(p.Object) || p.Size < 1 || p.Size > partSize || !isSHA(p.SHA256) {
			return errors.New("manifest: part out of range")
		}
		parts += p.Size
	}
	if files != parts {
		return fmt.Errorf("manifest: the files have %d bytes, the parts %d", files, parts)
	}
	return nil
}

func (m *manifest) size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// largestRun returns an upper bound on the size of a trial's run in bytes. It allows for two copies of the model, and
// for a state with tens of values per parameter, and per unit and image. Actual states are much smaller; the limit of a
// manifest is much larger.
func largestRun(one *sweep.StandaloneTrial) int64 {
	const fixed, perEpoch, perValue, copies = 64 << 20, 8 << 10, 8, 64
	m, shape := one.Model, one.Fitted.Shape
	pixels := int64(1)
	for _, n := range shape {
		pixels *= int64(n)
	}
	var parameters, units int64
	states := int64(0)
	if m.Baseline != nil {
		units = int64(m.Baseline.Describe().Units)
		parameters = (units + 1) * (pixels + units + 1)
	} else if l, err := m.Layout(shape); err == nil { // on an error, the training reports the error
		for _, p := range l.Parameters() {
			n := int64(1)
			for _, d := range p.Shape {
				n *= int64(d)
			}
			parameters += n
		}
		units = int64(l.Size(losses.Code))
		states = int64(m.Optimizer.Optimizer.States())
	}
	images := int64(0)
	if one.Fitted.Train != nil {
		images = int64(one.Fitted.Train.Len())
	}
	if one.Fitted.Test != nil {
		images += int64(one.Fitted.Test.Len())
	}
	return fixed + perEpoch*min(1<<32, int64(m.Training().Most)) + perValue*((copies+states)*parameters+copies*images*(units+1))
}

// split divides the concatenated bytes b into the files and verifies their checksums.
func (m *manifest) split(b []byte) ([]folder.File, error) {
	var files []folder.File
	for _, f := range m.Files {
		if f.Size > int64(len(b)) {
			return nil, errors.New("manifest: bytes are missing")
		}
		one := slices.Clip(b[:f.Size])
		if sum(one) != f.SHA256 {
			return nil, fmt.Errorf("%s: %w", f.Name, errChecksum)
		}
		files, b = append(files, folder.File{Name: f.Name, Data: one}), b[f.Size:]
	}
	return files, nil
}

var errChecksum = errors.New("the checksum is wrong")

func find(files []folder.File, name string) []byte {
	for _, f := range files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// resumable reports whether files contains all files that are necessary to resume the run.
func resumable(files []folder.File) bool {
	return find(files, folder.Config) != nil && find(files, folder.State) != nil
}
