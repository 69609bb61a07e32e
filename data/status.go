package data

import (
	"context"
	"fmt"
	"os"
)

// Origin is where the images of a data set come from. A source that is not [Generated] has a method Origin() Origin.
type Origin string

// The origins.
const (
	Generated  Origin = "generated"  // made in code
	Downloaded Origin = "downloaded" // published files with known checksums, in a data folder
	OwnFiles   Origin = "own files"  // named by the keys of the dataset table
)

// Status is what is known about one data set.
type Status struct {
	Name   string       `json:"name"`
	About  string       `json:"about"`
	Origin Origin       `json:"origin"`
	Files  []FileStatus `json:"files,omitempty"` // of a downloaded set
}

// FileStatus is what is known about one file of a downloaded set.
type FileStatus struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`   // "" where it was not found
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

// List returns every data set and where its files are, without reading them.
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

// IsOwn reports whether a source reads files of the user's own, named by its keys.
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
