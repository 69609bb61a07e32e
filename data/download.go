package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tessera/internal/lists"
)

// EnvMirror is the environment variable with mirrors, separated by spaces, to use instead of the known ones. Each has the
// layout of a data folder: $TESSERA_MIRROR/fashion-mnist/train-images-idx3-ubyte.gz.
const EnvMirror = "TESSERA_MIRROR"

// Download contains the settings for downloading published data sets. The zero value is ready to use.
type Download struct {
	Mirrors  []string       // mirrors, tried in order, each with the layout of a data folder; nil selects $TESSERA_MIRROR, else the known mirrors
	Client   *http.Client   // HTTP client; nil selects http.DefaultClient
	Progress func(Progress) // called on the caller's goroutine while bytes arrive; may be nil
	Stall    time.Duration  // maximum time without data from a mirror; 0 selects 30 seconds

	pause time.Duration // time before a mirror is tried again; 0 selects a second
}

// Progress is the progress of the download of one file.
type Progress struct {
	Dataset, File string
	URL           string
	Done, Total   int64 // compressed bytes; Total is -1 if the mirror does not send it
	Err           error // error of this mirror; the next mirror is tried
}

// Get downloads the named data set into dir and returns its files. Files with the right checksum remain; others are replaced.
// A file is written to NAME.gz.part, which a later call resumes, and is renamed once its uncompressed bytes have the known
// checksum. If a mirror closes the connection early, Get requests the missing bytes. If a mirror does not have the file, or
// has other bytes, Get tries the next mirror.
//
// If every mirror fails, it returns an *Error with the reason for each mirror. Errors of the file system are returned
// unchanged.
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
		if isDisk(err) || ctx.Err() != nil {
			return File{}, cmp.Or(ctx.Err(), err)
		}
		problems = append(problems, fmt.Errorf("%s: %w", url, err))
		t.report(0, -1, err)
	}
	return File{}, &Error{Dataset: set.name, Path: f.name + ".gz", Problem: "no mirror provides it", Err: errors.New(strings.ReplaceAll(errors.Join(problems...).Error(), "\n", ", ")),
		Hint: "run the same command again to resume, or put the file into " + filepath.Dir(path) + " by hand"}
}

func (d Download) urls(set *published, f publishedFile) []string {
	mirrors := d.Mirrors
	if mirrors == nil {
		mirrors = strings.Fields(os.Getenv(EnvMirror))
	}
	urls := lists.Map(mirrors, func(m string) string { return strings.TrimSuffix(m, "/") + "/" + set.name + "/" + f.name + ".gz" })
	if len(mirrors) > 0 {
		return urls
	}
	for _, m := range set.mirrors {
		urls = append(urls, m+f.name+".gz")
	}
	return urls
}

type transfer struct {
	Download
	set  *published
	file publishedFile
	url  string
	part string
	etag string // entity tag of the data in part, so that a mirror does not continue another version
	best int64  // maximum size that part has reached
}

// isDisk reports whether an error is one of the file system: trying another mirror would not help.
func isDisk(err error) bool {
	var disk *fs.PathError
	return errors.As(err, &disk)
}

type statusError struct{ code int }

func (e statusError) Error() string {
	return fmt.Sprintf("the mirror answers %d %s", e.code, http.StatusText(e.code))
}

// final reports whether a repeated request would have the same response.
func (e statusError) final() bool {
	return e.code < 500 && e.code != http.StatusTooManyRequests && e.code != http.StatusRequestTimeout &&
		e.code != http.StatusRequestedRangeNotSatisfiable
}

// run fetches the file and checks it. Bytes that fail the check are discarded. If the first bytes were fetched earlier,
// perhaps from a mirror that compresses differently, the file is then fetched once more from the start.
func (t *transfer) run(ctx context.Context) (File, error) {
	fresh := t.empty()
	defer func() {
		if t.empty() {
			os.Remove(t.part)
		}
	}()
	for {
		if err := t.fetch(ctx); err != nil {
			return File{}, err
		}
		_, file, err := t.set.check(ctx, t.part, t.file)
		if err == nil || ctx.Err() != nil {
			return file, err
		}
		if err := os.Remove(t.part); err != nil {
			return File{}, err
		}
		if fresh {
			if wrong, ok := errors.AsType[*Error](err); ok {
				err = &Error{Problem: wrong.Problem, Err: wrong.Err} // the path is that of a file that is gone
			}
			return File{}, err
		}
		fresh, t.etag = true, ""
	}
}

func (t *transfer) empty() bool {
	info, err := os.Stat(t.part)
	return err != nil || info.Size() == 0
}

// fetch completes part. It requests missing bytes while part grows, and gives up after three consecutive requests without
// progress.
func (t *transfer) fetch(ctx context.Context) error {
	const tries = 3
	for barren := 0; ; {
		before := t.best
		err := t.request(ctx)
		var status statusError
		switch {
		case err == nil:
			return nil
		case isDisk(err), errors.As(err, &status) && status.final():
			return err
		case t.best > before:
			barren = 0
		default:
			if barren++; barren == tries {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(barren) * cmp.Or(t.pause, time.Second)):
		}
	}
}

// request requests the missing bytes of part once and appends the response; err is nil when part is complete.
func (t *transfer) request(ctx context.Context) error {
	if info, err := os.Lstat(t.part); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // writing would follow a link
		if err := os.Remove(t.part); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	t.best = max(t.best, have)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := cmp.Or(t.Stall, 30*time.Second)
	watch := time.AfterFunc(stall, func() { cancel(fmt.Errorf("the mirror has been silent for %v", stall)) })
	defer watch.Stop()

	response, err := t.ask(ctx, have)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer response.Body.Close()
	start, complete, err := t.begin(response, have)
	if err != nil || complete {
		return err
	}
	err = f.Truncate(start) // a whole file replaces what there was
	if _, wrong := f.Seek(start, io.SeekStart); err != nil || wrong != nil {
		return cmp.Or(err, wrong)
	}
	if err := t.copy(f, response, start, func() { watch.Reset(stall) }); err != nil {
		return causeOf(ctx, err)
	}
	return f.Sync()
}

func (t *transfer) ask(ctx context.Context, have int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // the .gz file itself, not unpacked on the way
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		if t.etag != "" {
			request.Header.Set("If-Range", t.etag)
		}
	}
	response, err := cmp.Or(t.Client, http.DefaultClient).Do(request)
	if known, ok := errors.AsType[*url.Error](err); ok {
		err = known.Err // without the address, which is said already
	}
	return response, err
}

// begin returns the offset in the file at which the response's body starts, or reports that part is already complete.
func (t *transfer) begin(response *http.Response, have int64) (start int64, complete bool, err error) {
	switch response.StatusCode {
	case http.StatusOK:
		t.etag = strongTag(response)
		return 0, false, nil
	case http.StatusPartialContent:
		var first, last int64
		if _, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-%d/", &first, &last); err != nil || first != have {
			return 0, false, t.restart(fmt.Errorf("the mirror sent the range %q instead of %d-",
				response.Header.Get("Content-Range"), have))
		}
		t.etag = strongTag(response)
		return have, false, nil
	case http.StatusRequestedRangeNotSatisfiable:
		if response.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have) {
			return have, true, nil
		}
		return 0, false, t.restart(statusError{response.StatusCode})
	}
	return 0, false, statusError{response.StatusCode}
}

// restart discards part, so that the next request is for the complete file. It returns the error why.
func (t *transfer) restart(why error) error {
	if err := os.Truncate(t.part, 0); err != nil {
		return err
	}
	t.etag = ""
	return why
}

func (t *transfer) copy(f *os.File, response *http.Response, done int64, alive func()) error {
	total := int64(-1)
	if response.ContentLength >= 0 {
		total = done + response.ContentLength
	}
	most := t.file.size + 1<<16 // gzip adds a little to what it cannot shrink
	buf := make([]byte, 1<<16)
	for {
		n, err := response.Body.Read(buf)
		if n > 0 {
			alive()
			if _, err := f.Write(buf[:n]); err != nil {
				return err
			}
			done += int64(n)
			t.best = max(t.best, done)
			t.report(done, total, nil)
		}
		switch {
		case done > most:
			return t.restart(fmt.Errorf("the mirror sends more than the %d bytes of the uncompressed file", t.file.size))
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

func (t *transfer) report(done, total int64, err error) {
	if t.Progress != nil {
		t.Progress(Progress{Dataset: t.set.name, File: t.file.name + ".gz", URL: t.url, Done: done, Total: total, Err: err})
	}
}

// strongTag returns the entity tag of the response if it is strong: only strong tags identify bytes.
func strongTag(response *http.Response) string {
	tag := response.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return tag
}

func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !isDisk(err) {
		return cause
	}
	return err
}
