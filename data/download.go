package data

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// EnvMirror is the environment variable that names mirrors, separated by spaces, that are tried instead of the known ones.
// Each has the layout of a data folder: $TESSERA_MIRROR/fashion-mnist/train-images-idx3-ubyte.gz.
const EnvMirror = "TESSERA_MIRROR"

// Download configures how published data sets are fetched. The zero value is ready to use.
type Download struct {
	Mirrors  []string       // tried in order, each with the layout of a data folder; nil takes $TESSERA_MIRROR, else the known ones
	Client   *http.Client   // nil takes http.DefaultClient
	Progress func(Progress) // told while bytes come in, on the caller's goroutine; may be nil
	Stall    time.Duration  // how long a mirror may be silent; 0 takes 30 seconds

	pause time.Duration // before a mirror is asked again; 0 takes a second
}

// Progress is the progress of the download of one file.
type Progress struct {
	Dataset, File string
	URL           string
	Done, Total   int64 // compressed bytes; Total is -1 where the mirror does not say
	Err           error // why this mirror was given up; the next one is tried
}

// Get downloads the data set of that name into dir and returns its files. Files with the right checksum are kept, others are
// replaced. A file is written to NAME.gz.part, which a later call resumes, and is renamed when its uncompressed bytes have
// the known checksum. If a mirror cuts the connection, Get requests the missing bytes. If a mirror does not have the file,
// or has other bytes, Get tries the next mirror.
//
// If every mirror fails, the error is an *Error with the reason for each. Errors of the file system are returned unchanged.
func (d Download) Get(ctx context.Context, name, dir string) ([]File, error) {
	set, err := publishedSet(name)
	if err != nil {
		return nil, err
	}
	return d.get(ctx, set, dir)
}

func (d Download) get(ctx context.Context, set *published, dir string) ([]File, error) {
	folder := filepath.Join(dir, set.name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	var files []File
	for _, f := range set.files {
		file, err := d.file(ctx, set, f, dir)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

// file downloads one file into dir.
func (d Download) file(ctx context.Context, set *published, f publishedFile, dir string) (File, error) {
	old, found := Dirs{dir}.find(set.name, f.name)
	if found {
		if _, file, err := set.check(ctx, old, f); err == nil || ctx.Err() != nil {
			return file, err
		}
	}
	path := filepath.Join(dir, set.name, f.name+".gz")
	var problems []error
	for _, url := range d.urls(set, f) {
		t := &transfer{Download: d, set: set, file: f, url: url, part: path + ".part"}
		file, err := t.run(ctx)
		if err == nil {
			if err := os.Rename(t.part, path); err != nil {
				return File{}, err
			}
			if found && old != path { // an uncompressed copy that failed its checksum would be found first
				if err := os.Remove(old); err != nil {
					return File{}, err
				}
			}
			return File{Path: path, SHA256: file.SHA256}, nil
		}
		var disk diskError
		if errors.As(err, &disk) {
			return File{}, disk.error
		}
		if ctx.Err() != nil {
			return File{}, ctx.Err()
		}
		problems = append(problems, fmt.Errorf("%s: %w", url, err))
		t.report(0, -1, err)
	}
	return File{}, &Error{Dataset: set.name, Path: f.name + ".gz", Problem: "no mirror provides it", Err: oneLine(problems),
		Hint: "run the same command again to resume, or put the file into " + filepath.Dir(path) + " by hand"}
}

// urls returns where a file may be found.
func (d Download) urls(set *published, f publishedFile) []string {
	mirrors := d.Mirrors
	if mirrors == nil {
		mirrors = strings.Fields(os.Getenv(EnvMirror))
	}
	var urls []string
	for _, m := range mirrors {
		urls = append(urls, strings.TrimSuffix(m, "/")+"/"+set.name+"/"+f.name+".gz")
	}
	if len(mirrors) > 0 {
		return urls
	}
	for _, m := range set.mirrors {
		urls = append(urls, m+f.name+".gz")
	}
	return urls
}

// oneLine joins errors into one whose message is one line.
func oneLine(errs []error) error {
	texts := make([]string, len(errs))
	for i, err := range errs {
		texts[i] = err.Error()
	}
	return errors.New(strings.Join(texts, ", "))
}
