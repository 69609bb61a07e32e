package train

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tessera/data"
	"tessera/internal/machine"
	"tessera/internal/sealed"
	"tessera/train/folder"
)

// Environment records where and how a run was started, for env.json. It does not affect the run.
type Environment struct {
	Version string      `json:"version"` // of this program
	Go      string      `json:"go"`
	System  string      `json:"system"` // linux/amd64
	CPU     string      `json:"cpu"`
	Ranks   int         `json:"ranks,omitempty"` // processes that train together; 0 for one alone
	Threads int         `json:"threads"`         // of each process
	Backend string      `json:"backend"`         // tape, engine
	BLAS    string      `json:"blas"`
	Command []string    `json:"command"`
	Folder  string      `json:"folder,omitempty"` // the current directory: relative paths of the data set begin here
	Search  []string    `json:"search,omitempty"` // folders in which data sets were searched, first to last
	Data    []data.File `json:"data"`             // files of the data set that were read, with the checksum of the uncompressed bytes
	Start   *data.File  `json:"start,omitempty"`  // file of the initial parameters, if they come from another run
	SHA256  string      `json:"sha256,omitempty"` // of this file; see package sealed. Earlier versions wrote none
}

// environment returns the contents of env.json.
func (s *job) environment() ([]byte, error) {
	e := Environment{Version: machine.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: machine.CPU(),
		Ranks: s.arithmetic.Ranks, Threads: s.options.Team.Threads(), Backend: s.arithmetic.Backend, BLAS: s.arithmetic.Kernel, Command: os.Args}
	e.Data = append([]data.File{}, s.files...) // an empty list, not null
	e.Start, e.SHA256 = s.started, sealed.Open
	e.locate(s.options.Dirs, s.files)
	text, err := json.MarshalIndent(e, "", "  ")
	text = append(text, '\n')
	if err == nil {
		err = sealed.Seal(text)
	}
	if err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	return text, nil
}

// ReadEnvironment returns the record of a run.
func ReadEnvironment(run string) (Environment, error) {
	path := filepath.Join(run, folder.Environment)
	text, err := readRegular(path)
	if err != nil {
		return Environment{}, err
	}
	var e Environment
	if err := json.Unmarshal(text, &e); err != nil {
		return Environment{}, fmt.Errorf("%s: %w", path, err)
	}
	if e.SHA256 != "" {
		if err := sealed.Check(text); err != nil {
			return Environment{}, fmt.Errorf("%s: %w", path, err)
		}
	}
	return e, nil
}
