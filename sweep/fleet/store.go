package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/train/folder"
)

// store keeps files in a JetStream object store.
type store struct {
	retry
	js      jetstream.JetStream
	objects jetstream.ObjectStore
	bucket  string
	stream  handle
}

// handle is a stream whose handle is asked for once.
type handle struct {
	mu     sync.Mutex
	stream jetstream.Stream
}

// of returns the stream of that name.
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

// put stores files. Objects that an interrupted put of the same prefix left are not sent again.
func (s *store) put(ctx context.Context, prefix string, files []folder.File) (*manifest, error) {
	m := &manifest{}
	var readers []io.Reader
	for _, f := range files {
		m.Files = append(m.Files, entry{f.Name, int64(len(f.Data)), sum(f.Data)})
		readers = append(readers, bytes.NewReader(f.Data))
	}
	all, buffer := io.MultiReader(readers...), []byte(nil)
	for {
		if buffer == nil {
			buffer = make([]byte, min(partSize, totalSize(files)+1))
		}
		n, err := io.ReadFull(all, buffer)
		if n > 0 {
			p := piece{Size: int64(n), SHA256: sum(buffer[:n])}
			p.Object = prefix + "." + p.SHA256[:32]
			if err := s.putPart(ctx, p, buffer[:n]); err != nil {
				return nil, err
			}
			m.Parts = append(m.Parts, p)
		}
		if err != nil { // the end: memory does not fail
			return m, m.check()
		}
	}
}

func totalSize(files []folder.File) (n int) {
	for _, f := range files {
		n += len(f.Data)
	}
	return n
}

// putPart stores one object, unless it is there.
func (s *store) putPart(ctx context.Context, p piece, b []byte) error {
	return s.again(ctx, func(ctx context.Context) error {
		if info, err := s.objects.GetInfo(ctx, p.Object); err == nil && info.Size == uint64(p.Size) {
			return nil
		}
		_, err := s.objects.PutBytes(ctx, p.Object, b)
		return err
	})
}

// get returns the files of a manifest.
func (s *store) get(ctx context.Context, m *manifest) ([]folder.File, error) {
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

// getPart returns the verified bytes of one object.
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

// drop removes the objects of a manifest, with their entries in the store. What remains is removed with the whole store.
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
