package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// transfer fetches one file from one mirror into part.
type transfer struct {
	Download
	set  *published
	file publishedFile
	url  string
	part string
	etag string // of what part holds, so that a mirror does not continue another version
	best int64  // the most that part has held
}

// diskError is a write error: trying another mirror would not help.
type diskError struct{ error }

// statusError is a refusal by the mirror.
type statusError struct{ code int }

func (e statusError) Error() string {
	return fmt.Sprintf("the mirror answers %d %s", e.code, http.StatusText(e.code))
}

// final reports whether asking again would bring the same answer.
func (e statusError) final() bool {
	return e.code < 500 && e.code != http.StatusTooManyRequests && e.code != http.StatusRequestTimeout &&
		e.code != http.StatusRequestedRangeNotSatisfiable
}

// run fetches the file and checks it. Bytes that fail the check are discarded. If the first bytes came from an earlier try,
// perhaps from a mirror that compresses differently, the file is fetched once more from its start.
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
			return File{}, diskError{err}
		}
		if fresh {
			var wrong *Error
			if errors.As(err, &wrong) {
				err = &Error{Problem: wrong.Problem, Err: wrong.Err} // the path is that of a file that is gone
			}
			return File{}, err
		}
		fresh, t.etag = true, ""
	}
}

// empty reports whether nothing has been fetched yet.
func (t *transfer) empty() bool {
	info, err := os.Stat(t.part)
	return err != nil || info.Size() == 0
}

// fetch completes part. It requests the missing bytes as long as part grows, and gives up after three requests in a row
// without progress.
func (t *transfer) fetch(ctx context.Context) error {
	const tries = 3
	for barren := 0; ; {
		before := t.best
		err := t.request(ctx)
		var status statusError
		var disk diskError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &disk), errors.As(err, &status) && status.final():
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

// request asks once for what part lacks and appends it; err is nil when part is complete.
func (t *transfer) request(ctx context.Context) error {
	if info, err := os.Lstat(t.part); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // writing would follow a link
		if err := os.Remove(t.part); err != nil {
			return diskError{err}
		}
	}
	f, err := os.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return diskError{err}
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return diskError{err}
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
	if err := f.Truncate(start); err != nil { // a whole file replaces what there was
		return diskError{err}
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return diskError{err}
	}
	if err := t.copy(f, response, start, func() { watch.Reset(stall) }); err != nil {
		return causeOf(ctx, err)
	}
	if err := f.Sync(); err != nil {
		return diskError{err}
	}
	return nil
}

// ask sends the request for the bytes from have on.
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
	var known *url.Error
	if errors.As(err, &known) {
		err = known.Err // without the address, which is said already
	}
	return response, err
}

// begin returns the offset in the file at which the answer's body starts, or that part is complete already.
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

// restart discards part, so that the next request asks for the whole file, and returns why.
func (t *transfer) restart(why error) error {
	if err := os.Truncate(t.part, 0); err != nil {
		return diskError{err}
	}
	t.etag = ""
	return why
}

// copy appends the body to f.
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
				return diskError{err}
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

// causeOf returns why ctx was cancelled instead of the mere fact.
func causeOf(ctx context.Context, err error) error {
	var disk diskError
	if cause := context.Cause(ctx); cause != nil && !errors.As(err, &disk) {
		return cause
	}
	return err
}
