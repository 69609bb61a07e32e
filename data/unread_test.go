package data

import (
	"archive/zip"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/safetensors"
)

// An array that nobody reads is not in memory: only the checksum of the file depends on it.
func TestUnreadArraysAreNotInMemory(t *testing.T) {
	const most, unread = 8 << 20, 16 << 20 // bytes
	samples := []float32{1, 2, 3, 4}
	path := filepath.Join(t.TempDir(), "samples")

	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, values := range map[string][]float32{"x": samples, "far": make([]float32, unread/4)} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err == nil {
			err = WriteNPY(w, []int{2, len(values) / 2}, values)
		}
		fatal.If(t, err)
	}
	fatal.If(t, z.Close())
	tensors, err := safetensors.AppendHeader(nil, map[string]string{}, []safetensors.Tensor{{Name: "x", Shape: []int{2, 2}}, {Name: "far", Shape: []int{2, unread / 8}}})
	fatal.If(t, err)
	tensors = append(tensors, make([]byte, 4*len(samples)+unread)...)

	for name, of := range map[string]struct {
		content []byte
		source  func(path string) Source
	}{
		"npz": {archive.Bytes(), func(path string) Source {
			return &Files{Kind: "npz", File: path, Tensor: "x", Columns: ColumnNames{"far": {"far"}}}
		}},
		"safetensors": {tensors, func(path string) Source {
			return &Files{Kind: "safetensors", File: path, Tensor: "x", Columns: ColumnNames{"far": {"far"}}}
		}},
	} {
		fatal.If(t, os.WriteFile(path+"."+name, of.content, 0o600))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s := of.source(path + "." + name)
		if _, known := s.Shape(Dirs{}); !known {
			t.Errorf("%s: the shape is unknown", name)
		}
		set, err := s.Load(context.Background(), Dirs{}, Need{Train: true})
		fatal.If(t, err)
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > most {
			t.Errorf("%s: allocates %d bytes, want at most %d", name, got, most)
		}
		expect.Equal(t, set.Train.Len(), 2, name)
	}
}

// A file that another program writes while it is read is an error.
func TestAFileThatChangesWhileItIsReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples.npz")
	write := func(name string, n int) {
		fatal.If(t, os.WriteFile(name, make([]byte, n), 0o600))
	}
	for name, change := range map[string]func(){
		"longer":   func() { write(path, 20) },
		"replaced": func() { write(path+".new", 10); _ = os.Rename(path+".new", path) },
		"removed":  func() { _ = os.Remove(path) },
	} {
		write(path, 10)
		c, err := openContents(path)
		fatal.If(t, err)
		expect.NoError(t, c.unchanged(), name, "before")
		change()
		expect.AnyError(t, c.unchanged(), name)
		_ = c.Close()
	}
}
