package data

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/fatal"
)

func TestADownloadDoesNotFollowALink(t *testing.T) {
	set, contents := tiny("tiny")
	m := newMirror(t, packed(t, set, contents, gzip.BestCompression), nil)
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	write(t, dir, "tiny/keep", "")
	fatal.If(t, os.WriteFile(other, []byte("mine"), 0o600))
	if err := os.Symlink(other, filepath.Join(dir, "tiny", set.files[trainImages].name+".gz.part")); err != nil {
		t.Skip(err)
	}
	fatal.If(t, fetch(t, set, dir, m))
	if b, err := os.ReadFile(other); string(b) != "mine" {
		t.Errorf("the file that the link names holds %.20q (%v)", b, err)
	}
	wantComplete(t, set, dir)
}
