package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tessera/internal/machine"
)

// A comparison contains both programs and the results of base.
type comparison struct {
	base, now program
	cache     string // folder with the results of base on this machine
	work      string // temporary folder
	empty     string // folder without models.toml
}

// prepare builds both programs. The program of base is kept in the cache.
func prepare(ctx context.Context, o options, root, commit, work string) (_ *comparison, err error) {
	if o.data != "" {
		if o.data, err = filepath.Abs(o.data); err != nil {
			return nil, err
		}
	}
	key, err := cacheKey(o)
	if err != nil {
		return nil, err
	}
	cache, err := filepath.Abs(filepath.Join(o.cache, commit[:12], key))
	if err != nil {
		return nil, err
	}
	p := program{data: o.data, threads: o.threads}
	c := &comparison{base: p, now: p, cache: cache, work: work, empty: filepath.Join(work, "empty")}
	c.base.binary, c.now.binary = filepath.Join(cache, "tessera"), filepath.Join(work, "now")
	if err := errors.Join(os.Mkdir(c.empty, 0o755), os.MkdirAll(cache, 0o755)); err != nil {
		return nil, err
	}
	if _, err := os.Stat(c.base.binary); errors.Is(err, fs.ErrNotExist) {
		built := filepath.Join(cache, filepath.Base(work)) // renamed when it is complete
		if err := buildCommit(ctx, root, commit, work, built); err != nil {
			return nil, fmt.Errorf("build %.12s: %w", commit, err)
		}
		if err := os.Rename(built, c.base.binary); err != nil {
			return nil, err
		}
	}
	if err := build(ctx, root, c.now.binary); err != nil {
		return nil, fmt.Errorf("build the working tree: %w", err)
	}
	return c, nil
}

// cacheKey identifies everything on which the results of base depend, apart from its commit: this program with its compiler,
// the machine, the flags.
func cacheKey(o options) (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	self, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintln(digest(self), machine.CPU(), machine.Features(), os.Getenv(envSIMD), o.threads)
	return strings.TrimPrefix(digest([]byte(text)), "sha256:")[:12], nil
}

// subjects returns the subjects of base, and the names of models and sweeps that only the working tree has.
func (c *comparison) subjects(ctx context.Context) (base []subject, added []string, err error) {
	if base, err = c.base.plan(ctx, c.empty); err != nil {
		return nil, nil, fmt.Errorf("base: %w", err)
	}
	for _, kind := range []string{kindModel, kindSweep} {
		now, err := c.now.names(ctx, c.empty, kind+"s")
		if err != nil {
			return nil, nil, fmt.Errorf("now: %w", err)
		}
		added = append(added, unknown(base, kind, now)...)
	}
	return base, added, nil
}
