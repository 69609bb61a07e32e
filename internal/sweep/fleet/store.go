package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"tessera/internal/train/folder"
)

// store contains files in a JetStream object store.
type store struct {
	retry
	js      jetstream.JetStream
	objects jetstream.ObjectStore
	bucket  string
	stream  handle
}

// storage returns the stores for the files and the records of a sweep. The buckets are opened later.
func (n names) storage(conn *nats.Conn, log func(string)) (*store, records, error) {
	js, err := jetstream.New(conn)
	patient := retry{requestTime, log}
	return &store{retry: patient, js: js, bucket: n.files()}, records{retry: patient, js: js, stream: &handle{}}, err
}

// handle looks up a stream once and caches it.
type handle struct {
	mu     sync.Mutex
	stream jetstream.Stream
}

func (h *handle) of(ctx context.Context, js jetstream.JetStream, name string) (jetstream.Stream, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stream != nil {
		return h.stream, nil
	}
	stream, err := js.Stream(ctx, name)
	if err == nil {
		h.stream = stream
	}
	return stream, err
}

// put stores files. Objects that an interrupted put with the same prefix has already stored are not sent again.
func (s *store) put(ctx context.Context, prefix string, files []folder.File) (*manifest, error) {
	m := &manifest{}
	var all []byte
	for _, f := range files {
		m.Files = append(m.Files, entry{f.Name, int64(len(f.Data)), sum(f.Data)})
		if len(files) == 1 { // a single file is a data set, which is large
			all = f.Data
		} else {
			all = append(all, f.Data...)
		}
	}
	for b := range slices.Chunk(all, partSize) {
		p := piece{Size: int64(len(b)), SHA256: sum(b)}
		p.Object = fmt.Sprintf("%s.%s.%d", prefix, p.SHA256[:32], len(m.Parts)) // with the index, so that equal parts are different objects
		if err := s.putPart(ctx, p, b); err != nil {
			return nil, err
		}
		m.Parts = append(m.Parts, p)
	}
	return m, m.check()
}

// putPart stores one object unless it already exists.
func (s *store) putPart(ctx context.Context, p piece, b []byte) error {
	return s.again(ctx, func(ctx context.Context) error {
		if info, err := s.objects.GetInfo(ctx, p.Object); err == nil && info.Size == uint64(p.Size) {
			return nil
		}
		_, err := s.objects.PutBytes(ctx, p.Object, b)
		return err
	})
}

// get returns the files of a manifest. It returns an error if the files are larger than the given number of bytes.
func (s *store) get(ctx context.Context, m *manifest, most int64) ([]folder.File, error) {
	if n := m.size(); n > most {
		return nil, fmt.Errorf("manifest: the files have %d bytes, want at most %d for this model", n, most)
	}
	var all bytes.Buffer
	for _, p := range m.Parts {
		b, err := s.getPart(ctx, p)
		if err != nil {
			return nil, err
		}
		all.Write(b)
	}
	return m.split(all.Bytes())
}

// getPart returns the bytes of one object, after verifying them.
func (s *store) getPart(ctx context.Context, p piece) (b []byte, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		o, err := s.objects.Get(ctx, p.Object)
		if err != nil {
			return err
		}
		defer o.Close()
		b, err = io.ReadAll(io.LimitReader(o, p.Size+1))
		if err == nil && (int64(len(b)) != p.Size || sum(b) != p.SHA256) {
			err = errChecksum
		}
		if err != nil {
			return fmt.Errorf("object %s: %w", p.Object, err)
		}
		return nil
	})
	return b, err
}

// drop removes the objects of a manifest and their entries. Objects that cannot be removed now are removed with the
// store.
func (s *store) drop(ctx context.Context, m *manifest) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	stream, err := s.stream.of(ctx, s.js, "OBJ_"+s.bucket)
	if err != nil {
		return
	}
	for _, p := range m.Parts {
		info, err := s.objects.GetInfo(ctx, p.Object)
		if err != nil {
			continue
		}
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$O."+s.bucket+".C."+info.NUID))
		_ = stream.Purge(ctx, jetstream.WithPurgeSubject("$O."+s.bucket+".M."+base64.URLEncoding.EncodeToString([]byte(p.Object))))
	}
}

// requestTime is the maximum time of one request to the server. A request without an answer is repeated.
const requestTime = 10 * time.Second

type retry struct {
	limit time.Duration // maximum time for one request
	log   func(string)
}

// again repeats a request until it succeeds, fails permanently, or the context ends. If the context ends, the error
// also contains the error of the last attempt. If a server answers but refuses for longer than the limit, for example
// because its storage is full, this is logged once. The owner of the connection reports the loss of the connection.
func (r retry) again(ctx context.Context, request func(context.Context) error) error {
	f := refusals{what: "a request", retry: r}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		one, cancel := context.WithTimeout(ctx, r.limit)
		err := request(one)
		cancel()
		if err == nil || final(err) {
			return err
		}
		f.note(err)
		if !sleep(ctx, wait) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// every calls f at intervals of d until ctx ends or stop is called. stop ends the context of f and waits for the last
// call.
func every(ctx context.Context, d time.Duration, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sleep(ctx, d) {
			f(ctx)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// publish sends a message to a stream. Repeated requests do not duplicate the message.
func (s *store) publish(ctx context.Context, subject, trial string, text []byte) error {
	unique := trial + newID()
	return s.again(ctx, func(ctx context.Context) error {
		_, err := s.js.Publish(ctx, subject, text, jetstream.WithMsgID(unique))
		return err
	})
}

// refusals counts how often the server refuses one repeated request.
type refusals struct {
	retry
	what     string    // name of the request, as in "a request"
	since    time.Time // time of the first refusal; zero after any other answer
	reported bool
}

// note reports whether the error of an attempt is a refusal. If refusals continue for longer than the limit, it logs
// them once. An error because another process has changed the record does not count as a refusal.
func (f *refusals) note(err error) bool {
	switch {
	case !answered(err) || errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		f.since = time.Time{}
		return false
	case f.since.IsZero():
		f.since = time.Now()
	case !f.reported && time.Since(f.since) > f.limit:
		f.reported = true
		f.log(fmt.Sprintf("the server has refused %s for %v: %v; retrying", f.what, time.Since(f.since).Round(time.Second), err))
	}
	return true
}

// answered reports whether an error means that the server has answered.
func answered(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api)
}

// final reports whether a repeated request would fail again.
func final(err error) bool {
	for _, known := range []error{jetstream.ErrObjectNotFound, jetstream.ErrBucketNotFound, jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound,
		jetstream.ErrKeyNotFound, jetstream.ErrKeyExists, jetstream.ErrKeyDeleted, jetstream.ErrKeyValueConfigRequired, errChecksum, errMessage} {
		if errors.Is(err, known) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code >= 400 && api.Code < 500 && api.ErrorCode != jetstream.JSErrCodeJetStreamNotEnabled
}
