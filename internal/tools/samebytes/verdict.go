package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tessera/internal/atomicfile"
)

// A verdict is the result of comparing one subject.
type verdict struct {
	subject   string
	values    int // number of compared values
	different []difference
	added     []string // values that only now has
	leftOut   string   // why nothing was compared; "" if something was compared
	err       error    // error of measuring base
}

// compareAll compares up to jobs subjects at once. The channels are in the order of the subjects.
func (c *comparison) compareAll(ctx context.Context, subjects []subject, jobs int) []chan verdict {
	verdicts := make([]chan verdict, len(subjects))
	for i := range verdicts {
		verdicts[i] = make(chan verdict, 1)
	}
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range subjects {
			next <- i
		}
	}()
	for range jobs {
		go func() {
			for i := range next {
				verdicts[i] <- c.compareOne(ctx, subjects[i])
			}
		}()
	}
	return verdicts
}

func (c *comparison) compareOne(ctx context.Context, s subject) verdict {
	v := verdict{subject: s.String()}
	base, err := c.baseRecord(ctx, s)
	if err != nil {
		v.err = err
		return v
	}
	if v.leftOut = base.LeftOut; v.leftOut != "" {
		return v
	}
	now, err := c.measureNow(ctx, s)
	if err != nil {
		v.different = []difference{{"command", "works", err.Error()}}
		return v
	}
	if s.kind != kindSweep {
		for _, key := range []string{codes, outputs} {
			if value, ok := base.Values[key]; ok { // a model without a decoder has no outputs
				base.Values[key+ofBase] = value
			}
		}
	}
	v.values = len(base.Values)
	v.different, v.added = compare(base.Values, now)
	return v
}

// A record contains the results of base for one subject, in the form of the cache.
type record struct {
	LeftOut string `json:"left_out,omitempty"`
	Values  values `json:"values,omitempty"`
}

// baseRecord returns the results of base, from the cache if possible.
func (c *comparison) baseRecord(ctx context.Context, s subject) (r record, err error) {
	path := filepath.Join(c.cache, s.fileName()+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		return r, json.Unmarshal(text, &r)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if r, err = c.measureBase(ctx, s); err != nil || r.LeftOut != "" {
		return r, err // data may be there next time
	}
	return r, atomicfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// measureBase trains with base and stores the run, so that the working tree can open it.
func (c *comparison) measureBase(ctx context.Context, s subject) (r record, err error) {
	folder, images, err := c.workFolder(s)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(folder)
	r.Values, err = c.base.measure(ctx, s, folder, images)
	var failed *failure
	if errors.As(err, &failed) && failed.code == exitNoData {
		return record{LeftOut: failed.said}, nil
	}
	if err != nil || s.kind == kindSweep {
		return r, err
	}
	return r, c.keepRun(s, filepath.Join(folder, runFolder))
}

// keepRun copies the folder of a run into the cache, without the files that only a resume or a user needs.
func (c *comparison) keepRun(s subject, run string) error {
	for _, name := range []string{"state.safetensors", "atoms.png"} {
		if err := os.Remove(filepath.Join(run, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	kept := c.keptRun(s)
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(kept), "part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	if err := os.CopyFS(part, os.DirFS(run)); err != nil { // a copy, because the cache may be on another disk
		return err
	}
	if err := os.Rename(part, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have kept the same run
		return err
	}
	return nil
}

// keptRun returns the folder in the cache of the run that base trained.
func (c *comparison) keptRun(s subject) string { return filepath.Join(c.cache, "runs", s.fileName()) }

// measureNow trains with the working tree, and opens the run of base with it.
func (c *comparison) measureNow(ctx context.Context, s subject) (values, error) {
	folder, images, err := c.workFolder(s)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	v, err := c.now.measure(ctx, s, folder, images)
	if err != nil || s.kind == kindSweep {
		return v, err
	}
	return v, c.now.addCodes(ctx, v, folder, c.keptRun(s), images, ofBase)
}

// workFolder returns an empty folder, and the path of the file of images to encode, "" for a sweep.
func (c *comparison) workFolder(s subject) (folder, images string, err error) {
	if folder, err = os.MkdirTemp(c.work, "subject-"); err != nil || s.kind == kindSweep {
		return folder, "", err
	}
	file, err := imagesOf(s.dataset, c.dataFolders())
	var absent *noImages
	if errors.As(err, &absent) {
		return folder, "", nil // train says what is missing
	}
	if err != nil {
		return folder, "", err
	}
	images = filepath.Join(folder, "images.npy")
	return folder, images, os.WriteFile(images, file, 0o644)
}

// dataFolders returns the folders in which the programs, and this one, search for test images.
func (c *comparison) dataFolders() []string {
	var folders []string
	if c.now.data != "" {
		folders = append(folders, c.now.data)
	}
	if user, err := os.UserCacheDir(); err == nil {
		folders = append(folders, filepath.Join(user, "tessera"))
	}
	return folders
}
