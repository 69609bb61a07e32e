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
func (t *Trained) ReadPostHoc() (err error) {
	if t.kept != nil {
		t.PostHoc, err = t.readPostHoc(t.kept)
	}
	return err
}

func (t *Trained) readPostHoc(read func() (text []byte, path string, err error)) (map[string]posthoc.Head, error) {
	text, path, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var kept postHocFile
	if sealed.Check(text) != nil || json.Unmarshal(text, &kept) != nil {
		return nil, checkpoint.Errorf(path, "%v", sealed.ErrDamaged)
	}
	if kept.Format != postHocFormat {
		return nil, checkpoint.Errorf(path, "got the format %q, want %q", kept.Format, postHocFormat)
	}
	if t.Digest == "" { // trained in this process: what was fitted before belongs to other parameters
		_, b, err := folderOf(t.folder).parameters()
		if err != nil || digestOf(b) != kept.Parameters {
			return nil, err
		}
	} else if kept.Parameters != t.Digest {
		return nil, checkpoint.Errorf(path, "was fitted to other parameters of this run: its training has continued since")
	}
	for _, name := range slices.Sorted(maps.Keys(kept.Heads)) {
		if t.Model == nil || !slices.ContainsFunc(t.Spec.ClassHeads(), func(h config.ClassHead) bool { return h.Value == name }) {
			return nil, checkpoint.Errorf(path, "the model has no head %q that predicts classes", name)
		}
		if err := kept.Heads[name].Check(t.Layout.Size(name)); err != nil {
			return nil, checkpoint.Errorf(path, "head %q: %v", name, err)
		}
	}
	return kept.Heads, nil
}

// digestOf returns the SHA-256 of a file.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ChangePostHoc changes the procedures fitted to the heads of the run in its folder, and returns them. While it reads, changes and writes
// posthoc.json, it holds the folder, so that no change of another process is lost. With fresh, it discards what the file contains, even
// if that is damaged. If change leaves no heads, the file is removed. PostHoc remains as it was read. The errors are those of
// [Trained.ReadPostHoc] and [folder.Open], and [*folder.WriteError], and an error for a model that has no folder.
func (t *Trained) ChangePostHoc(fresh bool, change func(heads map[string]posthoc.Head)) (heads map[string]posthoc.Head, err error) {
	if t.folder == "" {
		return nil, fmt.Errorf("%s: the model was not read from the folder of a run, which keeps calibrations and thresholds: open that folder", t.Path)
	}
	f, err := folder.Open(t.folder, folder.OS{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	of := folderOf(t.folder)
	if !fresh {
		if heads, err = t.readPostHoc(of.postHoc); err != nil {
			return nil, err
		}
	}
	if heads == nil {
		heads = map[string]posthoc.Head{}
	}
	if change(heads); len(heads) == 0 {
		return nil, f.Remove(folder.PostHoc)
	}
	_, b, err := of.parameters()
	if err != nil {
		return nil, err
	}
	digest := digestOf(b)
	if t.Digest != "" && t.Digest != digest {
		return nil, checkpoint.Mismatchf(t.folder, "its training has continued since the run was opened; open it again")
	}
	text, err := sealed.Document(postHocFile{postHocFormat, digest, heads, sealed.Open})
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if err := f.Write(folder.File{Name: folder.PostHoc, Data: text}); err != nil {
		return nil, err
	}
	return heads, nil
}
