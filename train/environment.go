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
	Folder  string      `json:"folder,omitempty"`  // the current directory: relative paths of the data set begin here
	Search  []string    `json:"search,omitempty"`  // folders in which data sets were searched, first to last
	Data    []data.File `json:"data"`              // files of the data set that were read, with the checksum of the uncompressed bytes
	Start   *data.File  `json:"start,omitempty"`   // file of the initial parameters, if they come from another run
	Machine string      `json:"machine,omitempty"` // that trained the run, if it was a worker of a sweep on several machines
	SHA256  string      `json:"sha256,omitempty"`  // of this file; see package sealed. Earlier versions wrote none
}

// environment returns the contents of env.json.
func (s *job) environment() ([]byte, error) {
	e := Environment{Version: machine.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: machine.CPU(),
		Ranks: s.arithmetic.Ranks, Threads: s.options.Team.Threads(), Backend: s.arithmetic.Backend, BLAS: s.arithmetic.Kernel, Command: os.Args}
	e.Data = append([]data.File{}, s.files...) // an empty list, not null
	e.Start = s.started
	e.locate(s.options.Dirs, s.files)
	return e.text()
}

// text is the contents of env.json.
func (e Environment) text() ([]byte, error) {
	e.SHA256 = sealed.Open
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

// Moved returns the env.json of a run that another machine trained, for this machine: processor, kernels and command stay
// those of the training; the places of the data and of the initial parameters are those of this machine.
func Moved(text []byte, machine string, dirs data.Dirs, files []data.File, start *data.File) ([]byte, error) {
	var e Environment
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	if err := sealed.Check(text); err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	e.Machine, e.Folder, e.Search, e.Start = machine, "", nil, start
	e.Data = append([]data.File{}, files...)
	e.locate(dirs, files)
	return e.text()
}
