package data

import (
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// zeros is a reader of endless zeros.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// inflating writes a gzip file with a header and the given number of zeros, and returns its path.
func inflating(t *testing.T, header []byte, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bomb.gz")
	f, err := os.Create(path)
	fatal.If(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(header)
	_, copied := io.CopyN(z, zeros{}, size)
	fatal.If(t, errors.Join(err, copied, z.Close(), f.Close()))
	return path
}

// idxOf returns the header of an IDX file of bytes.
func idxOf(dims ...uint32) []byte {
	header := []byte{0, 0, idxUint8, byte(len(dims))}
	for _, d := range dims {
		header = binary.BigEndian.AppendUint32(header, d)
	}
	return header
}

// Memory is allocated only for bytes that the header declares and the file contains, not for all bytes to which a file
// inflates.
func TestAFileThatInflatesToMoreOrLessThanItsHeaderSaysTakesLittleMemory(t *testing.T) {
	leftOutShort(t)
	const size, most = 48 << 20, 8 << 20
	noise := make([]byte, 1<<13) // which does not shrink: the claim is not impossible at sight
	random := rand.NewChaCha8([32]byte{})
	fatal.If(t, expect.Err(random.Read(noise)))
	for name, c := range map[string]struct {
		header []byte
		says   string
	}{
		"no array":            {nil, "neither an NPY nor an IDX"},
		"more than it says":   {idxOf(2, 28, 28), "the file has more"},
		"less than it says":   {append(idxOf(49, 1<<10, 1<<10), noise...), "the header says 51380240 bytes in all, the file has 50339856"},
		"more than fits":      {idxOf(1<<20, 1<<10, 1<<10), "more than a gzip file of"},
		"more, a large array": {idxOf(40, 1<<10, 1<<10), "the file has more"},
	} {
		path := inflating(t, c.header, size)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadImages(context.Background(), path, nil)
		runtime.ReadMemStats(&after)
		expect.As[*Error](t, err, c.says, name)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: took %d bytes of memory, want at most %d", name, took, most)
		}
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if err := errors.Join(os.WriteFile(plain, nil, 0o600), os.Truncate(plain, 1<<32)); err != nil { // takes no disk
		t.Fatal(err)
	}
	expect.Error(t, expect.Err(ReadImages(context.Background(), plain, nil)), "neither an NPY nor an IDX", "a plain file")
}
