package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"tessera/internal/numeral"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// Restarts are trainings of one model from several seeds, of which a run is the best. restarts.json in the run has them.
type Restarts struct {
	Format string    `json:"format"`
	Split  string    `json:"split"` // samples on which the objective was measured: names of splits
	Seeds  []Restart `json:"seeds"` // in the order of the trainings
	SHA256 string    `json:"sha256"`
}

// Restart is one of the trainings of [Restarts].
type Restart struct {
	Seed     uint64   `json:"seed"`
	Loss     *float64 `json:"loss"` // objective; nil for a training that diverged
	Diverged string   `json:"diverged,omitempty"`
}

// restartsFormat is the version of restarts.json.
const restartsFormat = "tessera restarts 1"

// Least returns the index of the training with the least objective, -1 if all have diverged.
func (r *Restarts) Least() int {
	least := -1
	for i, s := range r.Seeds {
		if s.Loss != nil && (least < 0 || *s.Loss < *r.Seeds[least].Loss) {
			least = i
		}
	}
	return least
}

// Losses returns the least and the largest objective.
func (r *Restarts) Losses() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range r.Seeds {
		if s.Loss != nil {
			low, high = min(low, *s.Loss), max(high, *s.Loss)
		}
	}
	return low, high
}

// String says how much the objective varies, as in "best of 5 seeds: 2 (loss 0.0123 to 0.0145 on the train and validation split)".
func (r *Restarts) String() string {
	low, high := r.Losses()
	return fmt.Sprintf("best of %d seeds: %d (loss %s to %s on the %s split)", len(r.Seeds), r.Seeds[r.Least()].Seed, numeral.Digits(low, 3), numeral.Digits(high, 3), r.Split)
}

// KeepRestarts writes restarts.json into the folder of a run. The errors are those of [folder.Open], and [*folder.WriteError].
func KeepRestarts(run string, r Restarts) (err error) {
	r.Format, r.SHA256 = restartsFormat, sealed.Open
	text, err := sealed.Document(r)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	f, err := folder.Open(run, folder.OS{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return f.Write(folder.File{Name: folder.Restarts, Data: text})
}

// ReadRestarts reads restarts.json of a run; nil if it has none. The error for a damaged file is a [*checkpoint.Error].
func ReadRestarts(run string) (*Restarts, error) {
	path := filepath.Join(run, folder.Restarts)
	text, err := regular.ReadUnlinked(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var r Restarts
	switch {
	case sealed.Check(text) != nil || json.Unmarshal(text, &r) != nil || r.Least() < 0:
		return nil, checkpoint.Errorf(path, "%v", sealed.ErrDamaged)
	case r.Format != restartsFormat:
		return nil, checkpoint.Errorf(path, "got the format %q, want %q", r.Format, restartsFormat)
	}
	return &r, nil
}

// manyOptima is the finding that trainings from other seeds ended in clearly worse optima.
func manyOptima(run string) []Finding {
	r, err := ReadRestarts(run)
	if err != nil || r == nil { // only the run's own files are needed to judge it
		return nil
	}
	low, high := r.Losses()
	failed := slices.ContainsFunc(r.Seeds, func(s Restart) bool { return s.Loss == nil })
	if !failed && high-low <= spreadOfSeeds*math.Abs(low) {
		return nil
	}
	problem := fmt.Sprintf("the result depends on the seed: the loss of %d seeds is %s to %s", len(r.Seeds), numeral.Digits(low, 3), numeral.Digits(high, 3))
	if failed {
		problem += ", and trainings diverged"
	}
	return []Finding{{problem, "train with a few more units: most poor optima lack a unit for one of the parts"}}
}
