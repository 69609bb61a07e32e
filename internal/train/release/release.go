// Package release packs trained models into archives, and reads them from a folder or a web server.
//
// A release is a folder: NAME.tar.gz has the files of a run without its checkpoint, NAME.md describes it, and SHA256SUMS has the
// checksum of every archive, in the format of sha256sum.
package release

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/numeral"
	"tessera/internal/regular"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// Env is the environment variable with the folder, or the address, of a release.
const Env = "TESSERA_MODELS"

const (
	suffix = ".tar.gz"
	sums   = "SHA256SUMS"
	card   = ".md"

	most     = 4 << 30 // bytes of an archive, and of the files in it
	mostSums = 1 << 20
)

// packed lists the files of a run that an archive has, as far as they exist.
var packed = []string{folder.Config, folder.Environment, folder.Metrics, folder.Model, folder.Best, folder.PostHoc, folder.Restarts, folder.Picture}

// name is what a model may be called.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Model is an archive of a release.
type Model struct {
	Name   string
	SHA256 string
}

// Pack writes the archive and the description of a run into the folder of a release. The same run gives the same bytes.
func Pack(run, model string, description []byte, to string) (Model, error) {
	if !name.MatchString(model) {
		return Model{}, fmt.Errorf("release: got the name %q, want letters, digits, dots, - and _", model)
	}
	var b bytes.Buffer
	compressed := gzip.NewWriter(&b)
	archive := tar.NewWriter(compressed)
	for _, file := range packed {
		content, err := regular.ReadUnlinked(filepath.Join(run, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Model{}, err
		}
		err = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Join(model, file), Size: int64(len(content)), Mode: 0o644, Format: tar.FormatPAX})
		if err == nil {
			_, err = archive.Write(content)
		}
		if err != nil {
			return Model{}, err
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return Model{}, err
	}
	m := Model{model, digest(b.Bytes())}
	if err := os.MkdirAll(to, 0o777); err != nil {
		return m, err
	}
	known, err := List(context.Background(), to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	known = append(slices.DeleteFunc(known, func(old Model) bool { return old.Name == model }), m)
	slices.SortFunc(known, func(a, b Model) int { return cmp.Compare(a.Name, b.Name) })
	var list strings.Builder
	for _, k := range known {
		fmt.Fprintf(&list, "%s  %s%s\n", k.SHA256, k.Name, suffix)
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{model + suffix, b.Bytes()}, {model + card, description}, {sums, []byte(list.String())}} { // the checksum last
		file := filepath.Join(to, f.name)
		if err := atomicfile.Write(file, func(w io.Writer) error { _, err := w.Write(f.content); return err }); err != nil {
			return m, err
		}
	}
	return m, nil
}

// List returns the models of a release, a folder or an address.
func List(ctx context.Context, from string) ([]Model, error) {
	text, err := read(ctx, from, sums, mostSums)
	if err != nil {
		return nil, err
	}
	var all []Model
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		sum, file, ok := strings.Cut(lines.Text(), "  ")
		model, archive := strings.CutSuffix(file, suffix)
		if b, err := hex.DecodeString(sum); !ok || !archive || err != nil || len(b) != sha256.Size || !name.MatchString(model) {
			return nil, &data.Error{Path: at(from, sums), Problem: fmt.Sprintf("line %d: got %q, want a SHA-256, two spaces and NAME%s", n, lines.Text(), suffix)}
		}
		all = append(all, Model{model, sum})
	}
	return all, lines.Err()
}

// Get reads the archive of a model and writes its files into a new folder. It returns an error, and leaves nothing behind, if the archive
// has another checksum or is not a run.
func Get(ctx context.Context, from string, m Model, run string) error {
	if _, err := os.Lstat(run); err == nil {
		return fmt.Errorf("%s: %w", run, folder.ErrExists)
	}
	b, err := read(ctx, from, m.Name+suffix, most)
	if err != nil {
		return err
	}
	if got := digest(b); got != m.SHA256 {
		return &data.Error{Path: at(from, m.Name+suffix), Problem: fmt.Sprintf("wrong checksum: got %s, want %s of %s", got, m.SHA256, sums), Hint: "get it again; if that does not help, the release is damaged"}
	}
	if err := os.MkdirAll(filepath.Dir(run), 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFolder(run, func(to string) error {
		if err := unpack(b, m.Name, to); err != nil {
			return &data.Error{Path: at(from, m.Name+suffix), Err: err}
		}
		if _, err := train.Open(to); err != nil {
			return &data.Error{Path: at(from, m.Name+suffix), Err: err}
		}
		return nil
	})
}

// unpack writes the files of an archive, which are those of a run and nothing else.
func unpack(b []byte, model, to string) error {
	compressed, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return err
	}
	archive, left := tar.NewReader(io.LimitReader(compressed, most)), int64(most)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		file, ok := strings.CutPrefix(h.Name, model+"/")
		if !ok || h.Typeflag != tar.TypeReg || !slices.Contains(packed, file) {
			return fmt.Errorf("got the file %q, want files of a run in %s/", h.Name, model)
		}
		if left -= h.Size; left < 0 {
			return fmt.Errorf("it has more than %s", numeral.Bytes(most))
		}
		content, err := io.ReadAll(archive)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, file), content, 0o666)
		}
		if err != nil {
			return err
		}
	}
}

// remote reports whether a release is on a web server.
func remote(from string) bool {
	u, err := url.Parse(from)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// at returns the path or the address of a file of a release.
func at(from, file string) string {
	if remote(from) {
		return strings.TrimSuffix(from, "/") + "/" + file
	}
	return filepath.Join(from, file)
}

// read returns a file of a release. It is an error if the file has more than `most` bytes.
func read(ctx context.Context, from, file string, most int64) ([]byte, error) {
	place := at(from, file)
	var body io.ReadCloser
	if remote(from) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
		if err != nil {
			return nil, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return nil, &data.Error{Path: place, Err: err}
		}
		if body = response.Body; response.StatusCode != http.StatusOK {
			_ = body.Close()
			return nil, &data.Error{Path: place, Problem: "the server answers " + response.Status}
		}
	} else {
		f, err := regular.Open(place)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &data.Error{Path: place, Problem: data.NotFound, Err: err, Hint: "a release is a folder that `tessera pack` writes, or a server of it"}
		} else if err != nil {
			return nil, &data.Error{Path: place, Err: err}
		}
		body = f
	}
	defer body.Close()
	b, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return nil, &data.Error{Path: place, Err: err}
	case int64(len(b)) > most:
		return nil, &data.Error{Path: place, Problem: "it has more than " + numeral.Bytes(most)}
	}
	return b, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
