package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// EnvDir is the environment variable that names a data folder.
const EnvDir = "TESSERA_DATA"

// Dirs are the folders in which files are searched, first to last. Each holds one folder per data set:
// DIR/fashion-mnist/train-images-idx3-ubyte.gz.
type Dirs []string

// SearchDirs returns the folders in which data are searched: flag (the --data option, "" if it was not given),
// $TESSERA_DATA, and the folder tessera in the user's cache. Downloads go to the first of them.
func SearchDirs(flag string) Dirs {
	var dirs Dirs
	add := func(dir string) {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	add(flag)
	add(os.Getenv(EnvDir))
	if cache, err := os.UserCacheDir(); err == nil {
		add(filepath.Join(cache, "tessera"))
	}
	return dirs
}

// find returns the path of a data set's file, uncompressed or gzipped, from the first folder that has it.
func (d Dirs) find(dataset, name string) (path string, ok bool) {
	for _, dir := range d {
		for _, suffix := range []string{"", ".gz"} {
			path := filepath.Join(dir, dataset, name+suffix)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path, true
			}
		}
	}
	return "", false
}

// missing is the error for a file that no folder holds.
func (d Dirs) missing(dataset, name string) error {
	places := make([]string, len(d))
	for i, dir := range d {
		places[i] = filepath.Join(dir, dataset)
	}
	return &Error{
		Dataset: dataset,
		Path:    name + ".gz",
		Problem: "not found in " + strings.Join(places, " or "),
		Hint: `run "tessera data get ` + dataset + `", or point --data or ` + EnvDir + ` at the folder that holds ` +
			dataset + `/`,
	}
}
