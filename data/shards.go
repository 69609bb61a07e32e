package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isGlob reports whether a name that no file has stands for several files.
func isGlob(name string) bool { return strings.ContainsAny(name, "*?[") }

// Exists reports whether a file or folder has this name, or files have names that it stands for.
func Exists(name string) bool {
	if _, err := os.Stat(name); err == nil {
		return true
	}
	if !isGlob(name) {
		return false
	}
	paths, err := filepath.Glob(name)
	return err == nil && len(paths) > 0
}

// combined returns the checksum of several files as that of one file.
func combined(name string, files []File) File {
	if len(files) == 1 {
		return File{Path: name, SHA256: files[0].SHA256}
	}
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintln(h, f.SHA256)
	}
	return File{Path: name, SHA256: hex.EncodeToString(h.Sum(nil))}
}

// openShards opens all files that a glob matches, in the order of their names, as one file whose samples are those of all files.
func (r reading) openShards(ctx context.Context) (o Opened, err error) {
	pattern := r.File
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return o, &Error{Path: pattern, Problem: "is not a valid pattern of names", Err: err}
	}
	if len(paths) == 0 {
		return o, &Error{Path: pattern, Problem: NotFound, Hint: "no file has such a name; paths are relative to the folder in which the command is run"}
	}
	slices.Sort(paths)
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	o = Opened{path: pattern, loose: r.loose}
	for _, path := range paths {
		r.File = path
		shard, err := r.open(ctx)
		if err == nil && (shard.images != nil || shard.Matrix != nil) {
			err = &Error{Path: path, Problem: "is not a file of arrays or of columns", Hint: "only such files are read as the parts of one"}
		}
		if err != nil {
			shard.close()
			return o, FileError("", path, err)
		}
		o.shards = append(o.shards, shard)
	}
	if o.shards[0].csv != nil {
		o.csv, err = joinedTable(o.shards)
		return o, err
	}
	for _, p := range o.shards[0].parts {
		joined, err := joinedPart(pattern, p, o.shards)
		if err != nil {
			return o, err
		}
		o.parts = append(o.parts, joined)
	}
	return o, nil
}

func (o Opened) unchanged() error {
	if o.contents != nil {
		return o.contents.unchanged()
	}
	for _, shard := range o.shards {
		if err := shard.unchanged(); err != nil {
			return FileError("", shard.path, err)
		}
	}
	return nil
}

// joinedPart returns an array of the first shard joined with those of the same name of the others.
func joinedPart(pattern string, first tablePart, shards []Opened) (tablePart, error) {
	all := make([]*tablePart, len(shards))
	joined := first
	if first.path != "" {
		joined.path = pattern
	}
	joined.dims, joined.extents = slices.Clone(first.dims), nil
	extended := true
	for k, shard := range shards {
		wrong := func(format string, args ...any) (tablePart, error) {
			return joined, &Error{Path: shard.path, Problem: fmt.Sprintf(format, args...), Hint: "all files must have the same arrays, types and shapes of samples as " + inLine(shards[0].path)}
		}
		i := slices.IndexFunc(shard.parts, func(p tablePart) bool { return p.name == first.name })
		if i < 0 {
			return wrong("has no array %q", first.name)
		}
		p := &shard.parts[i]
		texts := first.kind != "" && p.kind != "" && strings.ContainsRune("US", rune(first.kind[0])) && p.kind[0] == first.kind[0]
		switch {
		case p.kind != first.kind && !texts:
			return wrong("its values have the type %q, want %q", p.kind, first.kind)
		case len(p.dims) != len(first.dims) || len(p.dims) > 0 && !slices.Equal(p.dims[1:], first.dims[1:]):
			return wrong("its array has the shape %v, want (n) %v", p.dims, first.dims[min(1, len(first.dims)):])
		case len(p.dims) == 0 && len(shards) > 1:
			return wrong("holds a single number")
		}
		if len(shards) > 1 {
			joined.shards = append(joined.shards, length{shard.path, p.dims[0]})
		}
		if all[k] = p; k > 0 {
			joined.dims[0] += p.dims[0]
		}
		extended = extended && p.extents != nil
		joined.extents = append(joined.extents, p.extents...)
	}
	if !extended {
		joined.extents = nil
	}
	joined.read = func(exact bool) (a array, err error) {
		var files []File
		n, err := product(joined.dims)
		if err != nil {
			return a, err
		}
		for k, p := range all {
			one, err := p.read(exact)
			if err != nil {
				return a, FileError("", shards[k].path, err)
			}
			if k == 0 {
				a = array{spans: one.spans, scaled: one.scaled}
				a.bytes, a.floats, a.ints, a.texts, a.wide = room(one.bytes, n), room(one.floats, n), room(one.ints, n), room(one.texts, n), room(one.wide, n)
			} else {
				a.spans.merge(one.spans)
			}
			a.bytes, a.floats, a.ints, a.texts, a.wide = append(a.bytes, one.bytes...), append(a.floats, one.floats...), append(a.ints, one.ints...), append(a.texts, one.texts...), append(a.wide, one.wide...)
			if one.file.Path != "" {
				files = append(files, one.file)
			}
		}
		if files != nil {
			a.file = combined(joined.path, files)
		}
		a.dims = joined.dims
		return a, nil
	}
	return joined, nil
}

// room returns an empty slice for n values, nil for nil.
func room[T any](of []T, n int) []T {
	if of == nil {
		return nil
	}
	return make([]T, 0, n)
}

// joinedTable returns the rows of tables with the same columns as those of one table.
func joinedTable(shards []Opened) (*csvFile, error) {
	first := shards[0].csv
	for _, shard := range shards {
		switch {
		case shard.csv == nil:
			return nil, &Error{Path: shard.path, Problem: "is not a file of columns, as " + inLine(shards[0].path) + " is"}
		case !slices.Equal(shard.csv.header, first.header):
			return nil, &Error{Path: shard.path, Problem: fmt.Sprintf("has the columns %s, want %s as %s", nameList(shard.csv.header), nameList(first.header), inLine(shards[0].path))}
		}
	}
	joined := *first
	joined.size = 0
	for _, shard := range shards {
		joined.size += shard.csv.size
	}
	joined.rows = func(do func(tableRow) error) (string, error) {
		for _, shard := range shards {
			if _, err := shard.csv.rows(do); err != nil {
				return "", FileError("", shard.path, err)
			}
		}
		return "", nil
	}
	return &joined, nil
}
