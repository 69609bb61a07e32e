package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	a, err := parseArray(b)
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

// Origin is the origin of the images of a data set. A source that is not [Generated] has a method Origin() Origin.
type Origin string

// The origins.
const (
	Generated  Origin = "generated"  // made in code
	Downloaded Origin = "downloaded" // published files with known checksums, in a data folder
	OwnFiles   Origin = "own files"  // named by the keys of the dataset table
)

// Status describes one data set and its files.
type Status struct {
	Name   string       `json:"name"`
	About  string       `json:"about"`
	Origin Origin       `json:"origin"`
	Files  []FileStatus `json:"files,omitempty"` // of a downloaded set
}

// FileStatus describes one file of a downloaded set.
type FileStatus struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`   // "" if it was not found
	Bytes   int64  `json:"bytes,omitempty"`  // on the disk
	Problem error  `json:"-"`                // an *Error: it is missing or, after Verify, wrong
	SHA256  string `json:"sha256,omitempty"` // of the uncompressed bytes, after Verify
}

// Complete reports whether no file of the set has a known problem.
func (s Status) Complete() bool { return s.Problem() == nil }

// Problem returns the problem of the first file that has one.
func (s Status) Problem() error {
	for _, f := range s.Files {
		if f.Problem != nil {
			return f.Problem
		}
	}
	return nil
}

// List returns every data set with the places of its files, without reading them.
func List(dirs Dirs) []Status {
	var all []Status
	for _, entry := range Registry.All() {
		source := entry.New()
		s := Status{Name: entry.Name, About: entry.About, Origin: origin(source)}
		if p, ok := source.(*published); ok {
			s.Files = p.locate(dirs)
		}
		all = append(all, s)
	}
	return all
}

// IsOwn reports whether a source reads files that its keys name.
func IsOwn(s Source) bool {
	_, memory := s.(*Memory)
	return s != nil && origin(s) == OwnFiles && !memory
}

// origin returns where the images of a source come from.
func origin(s Source) Origin {
	if o, ok := s.(interface{ Origin() Origin }); ok {
		return o.Origin()
	}
	return Generated
}

// Verify reads the files of a downloaded set and compares their checksums. The status has the results. The error is for a
// name that is not a downloaded set, or a cancelled context.
func Verify(ctx context.Context, name string, dirs Dirs) (Status, error) {
	set, err := publishedSet(name)
	if err != nil {
		return Status{}, err
	}
	entry, _ := Registry.Lookup(name)
	s := Status{Name: name, About: entry.About, Origin: Downloaded, Files: set.locate(dirs)}
	for i, f := range set.files {
		if s.Files[i].Path == "" {
			continue
		}
		_, file, err := set.check(ctx, s.Files[i].Path, f)
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		s.Files[i].SHA256, s.Files[i].Problem = file.SHA256, err
	}
	return s, nil
}

// Published returns the names of the data sets that are downloaded, sorted.
func Published() []string {
	var names []string
	for _, entry := range Registry.All() {
		if _, ok := entry.New().(*published); ok {
			names = append(names, entry.Name)
		}
	}
	return names
}

// publishedSet returns the downloaded set of that name.
func publishedSet(name string) (*published, error) {
	entry, ok := Registry.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("data: unknown data set %q", name)
	}
	set, ok := entry.New().(*published)
	if !ok {
		return nil, fmt.Errorf("data: %s is not downloaded: there is nothing to get or to verify", name)
	}
	return set, nil
}

// locate returns where the files of a set are.
func (p *published) locate(dirs Dirs) []FileStatus {
	var files []FileStatus
	for _, f := range p.files {
		s := FileStatus{Name: f.name + ".gz"}
		path, ok := dirs.find(p.name, f.name)
		if !ok {
			s.Problem = dirs.missing(p.name, f.name)
		} else if info, err := os.Stat(path); err == nil {
			s.Path, s.Bytes = path, info.Size()
		}
		files = append(files, s)
	}
	return files
}

// EnvDir is the environment variable that names a data folder.
const EnvDir = "TESSERA_DATA"

// Dirs are the folders that are searched for files, in this order. Each holds one folder per data set:
// DIR/fashion-mnist/train-images-idx3-ubyte.gz.
type Dirs []string

// SearchDirs returns the folders that are searched for data: flag (the --data option, "" if it was not given),
// $TESSERA_DATA, and the folder tessera in the user's cache. Downloads go to the first of them.
func SearchDirs(flag string) Dirs {
	var dirs Dirs
	add := func(dir string) {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	add(flag)
	add(os.Getenv(EnvDir))
	if cache, err := os.UserCacheDir(); err == nil {
		add(filepath.Join(cache, "tessera"))
	}
	return dirs
}

// find returns the path of a data set's file, uncompressed or gzipped, from the first folder that has it.
func (d Dirs) find(dataset, name string) (path string, ok bool) {
	for _, dir := range d {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(dir, dataset, name+suffix)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, true
			}
		}
	}
	return "", false
}

// missing is the error for a file that no folder holds.
func (d Dirs) missing(dataset, name string) error {
	places := make([]string, len(d))
	for i, dir := range d {
		places[i] = filepath.Join(dir, dataset)
	}
	return &Error{
		Dataset: dataset,
		Path:    name + ".gz",
		Problem: "not found in " + strings.Join(places, " or "),
		Hint: `run "tessera data get ` + dataset + `", or point --data or ` + EnvDir + ` at the folder that holds ` +
			dataset + `/`,
	}
}
