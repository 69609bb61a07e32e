package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"tessera/config"
	"tessera/internal/sealed"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/posthoc"
)

// postHocFile is the contents of posthoc.json: the procedures fitted to the heads of a run after its training.
type postHocFile struct {
	Format     string                  `json:"format"`
	Parameters string                  `json:"parameters"` // SHA-256 of the file of the parameters that the procedures were fitted to
	Heads      map[string]posthoc.Head `json:"heads"`
	SHA256     string                  `json:"sha256"`
}

// postHocFormat is the version of posthoc.json.
const postHocFormat = "tessera posthoc 1"

// ReadPostHoc reads the procedures fitted to the heads of the run into PostHoc. For a model that was not read from a folder
// there are none. It returns a [*checkpoint.Error] if the file is damaged, or if the procedures were fitted to other
// parameters because the training has continued.
func (t *Trained) ReadPostHoc() error {
	if t.kept == nil {
		return nil
	}
	text, path, err := t.kept()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var kept postHocFile
	if sealed.Check(text) != nil || json.Unmarshal(text, &kept) != nil {
		return checkpoint.Errorf(path, "%v", sealed.ErrDamaged)
	}
	if kept.Format != postHocFormat {
		return checkpoint.Errorf(path, "got the format %q, want %q", kept.Format, postHocFormat)
	}
	if kept.Parameters != t.Digest {
		return checkpoint.Errorf(path, "was fitted to other parameters of this run: its training has continued since")
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Heads)) {
		if t.Model == nil || !slices.ContainsFunc(t.Spec.ClassHeads(), func(h config.ClassHead) bool { return h.Value == name }) {
			return checkpoint.Errorf(path, "the model has no head %q that predicts classes", name)
		}
		if err := kept.Heads[name].Check(t.Layout.Size(name)); err != nil {
			return checkpoint.Errorf(path, "head %q: %v", name, err)
		}
	}
	t.PostHoc = kept.Heads
	return nil
}

// digestOf returns the SHA-256 of a file.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// KeepPostHoc writes the procedures fitted to the heads of a run. run is the folder, and parameters is the SHA-256 of the file
// of the parameters that they were fitted to; "" skips this check. If heads is empty, the file is removed. The errors are
// those of [folder.Open], and [*folder.WriteError].
func KeepPostHoc(run, parameters string, heads map[string]posthoc.Head) (err error) {
	f, err := folder.Open(run, folder.OS{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if len(heads) == 0 {
		return f.Remove(folder.PostHoc)
	}
	_, b, err := folderOf(run).parameters()
	if err != nil {
		return err
	}
	now := digestOf(b)
	if parameters != "" && parameters != now {
		return checkpoint.Mismatchf(run, "its training has continued since the run was opened; open it again")
	}
	text, err := sealed.Document(postHocFile{postHocFormat, now, heads, sealed.Open})
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return f.Write(folder.File{Name: folder.PostHoc, Data: text})
}
