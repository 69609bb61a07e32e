package data

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"tessera/parallel/team"
)

// published is a downloaded data set of four IDX files of grey 28x28 images with known content: the common part of
// fashion-mnist and mnist.
type published struct {
	name    string
	mirrors []string // folders, tried in order
	files   [4]publishedFile
	classes []string
}

// publishedFile is one file of a published set. Mirrors compress it differently: only the uncompressed bytes have a
// known checksum.
type publishedFile struct {
	name   string // uncompressed; on mirrors and, mostly, on disk it is followed by .gz
	size   int64  // uncompressed
	sha256 string // of the uncompressed bytes
}

// The order of published.files.
const (
	trainImages = iota
	trainLabels
	testImages
	testLabels
)

// idxFiles returns the four files under the names and with the sizes that both sets have.
func idxFiles(sums [4]string) [4]publishedFile {
	return [4]publishedFile{
		{"train-images-idx3-ubyte", 16 + 60000*28*28, sums[trainImages]},
		{"train-labels-idx1-ubyte", 8 + 60000, sums[trainLabels]},
		{"t10k-images-idx3-ubyte", 16 + 10000*28*28, sums[testImages]},
		{"t10k-labels-idx1-ubyte", 8 + 10000, sums[testLabels]},
	}
}

// HasTest implements [Tester].
func (*published) HasTest() bool { return true }

// Origin tells `tessera data list` that the files can be downloaded.
func (*published) Origin() Origin { return Downloaded }

// Shape implements [Source]: it is known without the files.
func (*published) Shape(Dirs) ([]int, bool) { return []int{28, 28}, true }

// Load implements [Source]. The files that are needed are read at the same time.
func (p *published) Load(ctx context.Context, dirs Dirs, need Need) (*Set, error) {
	var (
		arrays [4]array
		files  [4]File
		errs   [4]error
		wait   team.Group
	)
	wanted := [4]bool{trainImages: need.Train, trainLabels: need.Train, testImages: need.Test, testLabels: need.Test}
	for i, f := range p.files {
		if wanted[i] {
			wait.Go(func() { arrays[i], files[i], errs[i] = p.read(ctx, dirs, f) })
		}
	}
	wait.Wait()
	set := &Set{Name: p.name, Shape: []int{28, 28}, HasTest: true, Classes: p.classes}
	for i, err := range errs {
		if err != nil {
			return nil, err
		}
		if wanted[i] {
			set.Files = append(set.Files, files[i])
		}
	}
	var err error
	if need.Train {
		if set.Train, err = labelled(arrays[trainImages], arrays[trainLabels]); err != nil {
			return nil, err
		}
	}
	if need.Test {
		set.Test, err = labelled(arrays[testImages], arrays[testLabels])
	}
	return set, err
}

// labelled joins images and their labels.
func labelled(images, labels array) (*Images, error) {
	l, err := labels.labels()
	if err != nil {
		return nil, err
	}
	return NewBytes(images.dims[1:], images.bytes, l)
}

// read finds a file, reads it and checks it.
func (p *published) read(ctx context.Context, dirs Dirs, f publishedFile) (array, File, error) {
	path, ok := dirs.find(p.name, f.name)
	if !ok {
		return array{}, File{}, dirs.missing(p.name, f.name)
	}
	b, file, err := p.check(ctx, path, f)
	if err != nil {
		return array{}, file, err
	}
	a, err := parseIDX(b)
	return a, file, badFile(p.name, path, err)
}

// dataFlag returns the --data flag with which a download replaces the file at path, DIR/NAME/FILE; empty if downloads go to
// DIR anyway.
func dataFlag(path string) string {
	dir := filepath.Dir(filepath.Dir(path))
	if dirs := SearchDirs(""); len(dirs) > 0 && filepath.Clean(dirs[0]) == dir {
		return ""
	}
	if strings.ContainsAny(dir, " \t'") {
		dir = strconv.Quote(dir)
	}
	return " --data " + dir
}

// check reads a file and compares it with the size and checksum of f.
func (p *published) check(ctx context.Context, path string, f publishedFile) ([]byte, File, error) {
	b, file, err := readFile(ctx, path, f.size)
	problem := ""
	switch {
	case errors.Is(err, errTooLarge):
		problem = fmt.Sprintf("wrong size: more than %d bytes uncompressed", f.size)
	case err != nil:
		err = badFile(p.name, path, err)
	case int64(len(b)) != f.size:
		problem = fmt.Sprintf("wrong size: %d bytes uncompressed, want %d", len(b), f.size)
	case file.SHA256 != f.sha256:
		problem = fmt.Sprintf("wrong checksum: the SHA-256 of the uncompressed bytes is %s, want %s", file.SHA256, f.sha256)
	}
	if problem != "" {
		err = &Error{Dataset: p.name, Path: path, Problem: problem}
	}
	if e, ok := err.(*Error); ok {
		e.Hint = `run "tessera data get ` + p.name + dataFlag(path) + `", which replaces it`
	}
	return b, file, err
}
