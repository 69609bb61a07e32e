package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"tessera/train/folder"
)

// Limits of what is sent as files.
const (
	partSize  = 8 << 20
	mostParts = 2048 // 16 GiB
	mostFiles = 16
)

// manifest lists files and the objects of the store that hold their bytes, one file after the other.
type manifest struct {
	Files []entry `json:"files"`
	Parts []piece `json:"parts"`
}

// entry is one file.
type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// piece is one object: at most partSize bytes.
type piece struct {
	Object string `json:"object"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// setFile is the name of a packed data set in a manifest.
const setFile = "set"

// known are the only names of files that are sent.
var known = []string{folder.Config, folder.Environment, folder.Metrics, folder.State, folder.Model, folder.Best, evalFile, setFile}

// evalFile holds the metrics of a trial.
const evalFile = "eval.json"

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// check returns an error for names that no run has, sizes that do not add up, and numbers out of range.
func (m *manifest) check() error {
	if m == nil {
		return nil
	}
	if len(m.Files) == 0 || len(m.Files) > mostFiles || len(m.Parts) > mostParts {
		return errors.New("manifest: too many or no files or parts")
	}
	var files, parts int64
	for i, f := range m.Files {
		if !slices.Contains(known, f.Name) || slices.ContainsFunc(m.Files[:i], func(e entry) bool { return e.Name == f.Name }) {
			return fmt.Errorf("manifest: file %.40q is not a file of a run, or is there twice", f.Name)
		}
		if f.Size < 0 || f.Size > mostParts*partSize || !isSHA(f.SHA256) {
			return fmt.Errorf("manifest: file %s: size or checksum out of range", f.Name)
		}
		files += f.Size
	}
	for _, p := range m.Parts {
		if !isObject(p.Object) || p.Size < 1 || p.Size > partSize || !isSHA(p.SHA256) {
			return errors.New("manifest: part out of range")
		}
		parts += p.Size
	}
	if files != parts {
		return fmt.Errorf("manifest: the files have %d bytes, the parts %d", files, parts)
	}
	return nil
}

// split cuts the bytes of the parts into the files and verifies their checksums.
func (m *manifest) split(b []byte) ([]folder.File, error) {
	var files []folder.File
	for _, f := range m.Files {
		if f.Size > int64(len(b)) {
			return nil, errors.New("manifest: bytes are missing")
		}
		one := slices.Clip(b[:f.Size])
		if sum(one) != f.SHA256 {
			return nil, fmt.Errorf("%s: %w", f.Name, errChecksum)
		}
		files, b = append(files, folder.File{Name: f.Name, Data: one}), b[f.Size:]
	}
	return files, nil
}

// errChecksum is for bytes that are not those that were sent.
var errChecksum = errors.New("the checksum is wrong")

// find returns the contents of a file of that name, nil for none.
func find(files []folder.File, name string) []byte {
	for _, f := range files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}
