package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"tessera/config"
	"tessera/data"
	"tessera/internal/regular"
	"tessera/internal/train/folder"
)

// mostSets is the maximum number of data sets that a worker keeps in memory.
const mostSets = 4

// sets contains the data sets in a worker's memory, which its trials share. The most recently used set is last.
type sets struct {
	worker *worker
	mu     sync.Mutex
	list   []*loaded
}

// loaded is one data set in memory.
type loaded struct {
	source data.Source
	need   data.Need
	sums   []string
	set    *data.Set
	rows   map[*data.Images][]float32
}

// of returns the data set of a task. It comes from memory, from the folders of this machine if the files there have the
// checksums of the task, from the cache, or from the coordinator.
func (l *sets) of(ctx context.Context, s *serving, t *task, d *config.Dataset, need data.Need, what string, sums []string) (*loaded, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, one := range l.list {
		if one.need.Equal(need) && slices.Equal(one.sums, sums) && reflect.DeepEqual(one.source, d.Source) {
			l.list = append(slices.Delete(l.list, i, i+1), one)
			return one, nil
		}
	}
	set, err := l.read(ctx, s, t, d, need, what, sums)
	if err != nil {
		return nil, err
	}
	set.ReadAtOnce(l.worker.options.Jobs)
	one := &loaded{source: d.Source, need: need, sums: sums, set: set}
	if what == needTested {
		images, err := set.Evaluation()
		if err != nil {
			return nil, err
		}
		if !images.Sparse() && !images.OnDisk() { // few rows of a sparse matrix are measured
			one.rows = map[*data.Images][]float32{images: images.Float32()}
		}
	}
	if l.list = append(l.list, one); len(l.list) > mostSets {
		l.list = slices.Delete(l.list, 0, 1)
	}
	return one, nil
}

func (l *sets) read(ctx context.Context, s *serving, t *task, d *config.Dataset, splits data.Need, what string, want []string) (*data.Set, error) {
	if l.worker.options.sets != nil {
		if set := l.worker.options.sets(t.Trial, what); set != nil {
			return set, nil
		}
	}
	set, err := data.Load(ctx, d.Source, l.worker.options.Dirs, splits)
	if err == nil && slices.Equal(sums(set.Files), want) {
		return set, nil
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	m, err := s.ask(ctx, &need{Trial: t.Trial, What: what})
	if err != nil {
		return nil, err
	}
	if set, err = s.fetchSet(ctx, m); err != nil {
		return nil, err
	}
	if !slices.Equal(sums(set.Files), want) {
		return nil, fmt.Errorf("data set %s of the coordinator: %w", set.Name, errChecksum)
	}
	return set, nil
}

// ask requests the files that a trial reads from the coordinator.
func (s *serving) ask(ctx context.Context, n *need) (*manifest, error) {
	text, err := encode(n)
	if err != nil {
		return nil, err
	}
	var answer supply
	slow := retry{5 * time.Minute, s.options.Log} // a long limit, because packing a large data set takes minutes
	err = slow.again(ctx, func(ctx context.Context) error {
		m, err := s.conn.RequestWithContext(ctx, s.names.subject("need"), text)
		if err != nil {
			return err
		}
		answer = supply{}
		return decode(m.Data, &answer)
	})
	if err == nil && answer.Problem != "" {
		err = fmt.Errorf("the coordinator cannot send it: %s", answer.Problem)
	}
	if err == nil && answer.Manifest == nil {
		err = errMessage
	}
	return answer.Manifest, err
}

// fetchSet returns the data set of a manifest from the cache of this machine. If necessary it first fetches the set. An
// interrupted fetch continues with the missing parts.
func (s *serving) fetchSet(ctx context.Context, m *manifest) (*data.Set, error) {
	if len(m.Files) != 1 || m.Files[0].Name != setFile {
		return nil, errMessage
	}
	dir := filepath.Join(s.options.Cache, "data")
	path := filepath.Join(dir, m.Files[0].SHA256)
	if b := cached(path); b != nil {
		return data.Unpack(b)
	}
	fetching := filepath.Join(dir, ".fetching-"+m.Files[0].SHA256)
	held, err := folder.Hold(fetching, s.options.Disk)
	for errors.Is(err, folder.ErrLocked) { // while another process on this machine fetches the set
		if !sleep(ctx, 100*time.Millisecond) {
			return nil, ctx.Err()
		}
		held, err = folder.Hold(fetching, s.options.Disk)
	}
	if err != nil {
		return nil, err
	}
	defer held.Close()
	if b := cached(path); b != nil { // the other process has fetched the set
		_ = s.options.Disk.RemoveAll(held.Path())
		return data.Unpack(b)
	}
	b, err := s.fetchParts(ctx, held, m)
	if err != nil {
		return nil, err
	}
	if err := s.options.Disk.WriteFile(path+folder.Unfinished, func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
		return nil, &folder.WriteError{Path: path, Err: err}
	}
	if err := s.options.Disk.Rename(path+folder.Unfinished, path); err != nil {
		return nil, &folder.WriteError{Path: path, Err: err}
	}
	_ = s.options.Disk.RemoveAll(held.Path())
	return data.Unpack(b)
}

// cached returns the contents of a file whose name is its SHA-256. It returns nil if the file is missing or damaged.
func cached(path string) []byte {
	b, err := regular.ReadFile(path)
	if err != nil || sum(b) != filepath.Base(path) {
		return nil
	}
	return b
}

// fetchParts fetches the parts that the folder lacks, and returns the bytes of all parts.
func (s *serving) fetchParts(ctx context.Context, held *folder.Folder, m *manifest) ([]byte, error) {
	var all bytes.Buffer
	for _, p := range m.Parts {
		b, err := os.ReadFile(held.Join(p.SHA256))
		if err != nil || sum(b) != p.SHA256 {
			if b, err = s.store.getPart(ctx, p); err != nil {
				return nil, err
			}
			if err := held.Write(folder.File{Name: p.SHA256, Data: b}); err != nil {
				return nil, err
			}
		}
		all.Write(b)
	}
	if _, err := m.split(all.Bytes()); err != nil {
		return nil, err
	}
	return all.Bytes(), nil
}

func pack(set *data.Set) ([]byte, error) {
	var b bytes.Buffer
	err := set.Pack(&b)
	return b.Bytes(), err
}
