package train

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"tessera/data"
	"tessera/internal/machine"
	"tessera/train/folder"
)

// Environment records where and how a run was started, for env.json. It does not affect the run.
type Environment struct {
	Version string      `json:"version"` // of this program
	Go      string      `json:"go"`
	System  string      `json:"system"` // linux/amd64
	CPU     string      `json:"cpu"`
	Threads int         `json:"threads"`
	Backend string      `json:"backend"` // tape, engine
	BLAS    string      `json:"blas"`
	Command []string    `json:"command"`
	Data    []data.File `json:"data"`            // files of the data set, with the checksum of the uncompressed bytes
	Start   *data.File  `json:"start,omitempty"` // file of the initial parameters, if they come from another run
}

// environment returns the contents of env.json.
func (s *job) environment() ([]byte, error) {
	e := Environment{Version: machine.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPU: machine.CPU(),
		Threads: s.options.Team.Threads(), Backend: s.arithmetic.Backend, BLAS: s.arithmetic.Kernel, Command: os.Args}
	e.Data = append([]data.File{}, s.files...) // an empty list, not null
	e.Start = s.started
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("env.json: %w", err)
	}
	return append(text, '\n'), nil
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
	return e, nil
}
