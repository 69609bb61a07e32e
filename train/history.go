package train

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/metrics"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// Epoch is one line of metrics.jsonl: the values of one epoch by name.
type Epoch struct {
	Epoch  float64
	Values metrics.Values
}

// ReadHistory reads the metrics.jsonl of a run. A run without that file has no epochs. A damaged file is a [*checkpoint.Error]
// that says which line is damaged; the epochs before that line are returned with it. The run itself does not need the file.
func ReadHistory(run string) ([]Epoch, error) {
	path := filepath.Join(run, folder.Metrics)
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseHistory(path, file)
}

func parseHistory(path string, r io.Reader) (epochs []Epoch, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e Epoch
		ok := false
		if err := json.Unmarshal(lines.Bytes(), &e.Values); err != nil {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: %v; the run itself is intact", n, err)
		}
		if err := sealed.CheckLine(lines.Bytes()); err != nil {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: %v; the run itself is intact", n, err)
		}
		if e.Epoch, ok = e.Values.Number("epoch"); !ok {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: it has no epoch; the run itself is intact", n)
		}
		epochs = append(epochs, e)
	}
	return epochs, lines.Err()
}
