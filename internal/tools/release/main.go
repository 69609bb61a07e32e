// Command release builds the command tessera for every supported platform.
//
//	go -C tools run ./release --out ../dist
//
// The folder contains one archive for each platform (.zip for Windows, .tar.gz for the others) with the command, the licence
// and the README, the file SHA256SUMS, and the file TESTED.md, which lists the binaries that were run and the systems. The
// archives of one commit and one version of Go have equal bytes: builds use -trimpath, and files have the time of the commit.
package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"tessera/internal/tools/internal/module"
)

// platforms lists the supported platforms.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// A platform is an operating system and an architecture, by Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary returns the file name of the command.
func (p platform) binary() string {
	if p.os == "windows" {
		return "tessera.exe"
	}
	return "tessera"
}

// native reports whether this machine runs binaries of the platform.
func (p platform) native() bool { return p.os == runtime.GOOS && p.arch == runtime.GOARCH }

type entry struct {
	name string
	mode os.FileMode
	data []byte
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	out := flag.String("out", "../../dist", "new folder for the archives")
	flag.Parse()
	if err := release(*out); err != nil {
		log.Fatal(err)
	}
}

func release(out string) error {
	stamp, err := module.Output(exec.Command("git", "log", "-1", "--format=%ct %h"))
	if err != nil {
		return err
	}
	seconds, commit, _ := strings.Cut(strings.TrimSpace(stamp), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	changed, err := module.Output(exec.Command("git", "status", "--porcelain"))
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("the working tree differs from commit %s: commit first\n%s", commit, changed)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var sums, tested bytes.Buffer
	fmt.Fprintf(&tested, "# Commit %s, %s\n\nThe binaries were built on %s/%s. What was run:\n\n| platform | run |\n| --- | --- |\n",
		commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, p := range platforms {
		log.Print(p)
		file, err := build(p, work)
		if err != nil {
			return err
		}
		ran := "built only"
		if p.native() {
			if ran, err = try(file, work); err != nil {
				return err
			}
		}
		fmt.Fprintf(&tested, "| %s | %s |\n", p, ran)
		name, err := pack(p, file, out, time.Unix(unix, 0))
		if err != nil {
			return err
		}
		archive, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(archive), name)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(out, "SHA256SUMS"), sums.Bytes(), 0o644),
		os.WriteFile(filepath.Join(out, "TESTED.md"), tested.Bytes(), 0o644))
}

// build returns the path of the command for a platform.
func build(p platform, work string) (string, error) {
	file := filepath.Join(work, p.os+"-"+p.arch, p.binary())
	c, err := module.Go("build", "-trimpath", "-ldflags=-s -w", "-o", file, "./apps/tessera")
	if err != nil {
		return "", err
	}
	c.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0")
	_, err = module.Output(c)
	return file, err
}

// try runs a binary for this machine: it trains the model of the quick start in an empty folder. It returns a description of
// the result.
func try(file, work string) (string, error) {
	for _, args := range [][]string{{"version"}, {"train", "swimmer-parts"}, {"eval", "runs/swimmer-parts"}} {
		c := exec.Command(file, args...)
		c.Dir = work
		if _, err := module.Output(c); err != nil {
			return "", err
		}
	}
	return "`tessera version`, `tessera train swimmer-parts`, `tessera eval runs/swimmer-parts`", nil
}

// pack writes the archive of a platform and returns its name.
func pack(p platform, file, out string, changed time.Time) (string, error) {
	entries := []entry{{name: p.binary(), mode: 0o755}, {name: "LICENSE", mode: 0o644}, {name: "README.md", mode: 0o644}}
	for i, path := range []string{file, "../../LICENSE", "../../README.md"} {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		entries[i].data = data
	}
	name, write := fmt.Sprintf("tessera-%s-%s.tar.gz", p.os, p.arch), writeTar
	if p.os == "windows" {
		name, write = fmt.Sprintf("tessera-%s-%s.zip", p.os, p.arch), writeZip
	}
	f, err := os.Create(filepath.Join(out, name))
	if err != nil {
		return "", err
	}
	return name, errors.Join(write(f, entries, changed), f.Close())
}

func writeTar(w io.Writer, entries []entry, changed time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: changed, Format: tar.FormatPAX}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func writeZip(w io.Writer, entries []entry, changed time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: changed.UTC()}
		h.SetMode(e.mode)
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	return z.Close()
}
