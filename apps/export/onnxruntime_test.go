package export_test

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// onnxRuntime is a process that runs models by onnxruntime-node.
type onnxRuntime struct {
	in     io.WriteCloser
	out    *bufio.Reader
	folder string
}

// startONNXRuntime starts the process. It skips the test if node or onnxruntime-node is missing.
func startONNXRuntime(t *testing.T) *onnxRuntime {
	t.Helper()
	const folder = "testdata/onnxruntime"
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("left out: needs node")
	}
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "onnxruntime-node")); err != nil {
		t.Skip("left out: needs onnxruntime-node; run `npm ci --ignore-scripts` in export/" + folder)
	}
	cmd := exec.Command(node, "run.js")
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	fatal.If(t, errors.Join(err1, err2, cmd.Start()))
	t.Cleanup(func() {
		in.Close()
		expect.NoError(t, cmd.Wait())
	})
	return &onnxRuntime{in, bufio.NewReader(out), t.TempDir()}
}

// array is a tensor that is sent to or received from the process.
type array struct {
	Name   string `json:"name,omitempty"`
	Dims   []int  `json:"dims"`
	Values string `json:"values"`
}

func (a array) floats() []float32 {
	b, _ := base64.StdEncoding.DecodeString(a.Values)
	return floatsOf(b)
}

// save writes a model to a file from which run reads it, and returns the path.
func (o *onnxRuntime) save(name string, model []byte) (string, error) {
	path := filepath.Join(o.folder, name+".onnx")
	return path, os.WriteFile(path, model, 0o666)
}

// packed returns values as an array.
func packed(name string, dims []int, values []float32) array {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return array{name, dims, base64.StdEncoding.EncodeToString(b)}
}

// run computes the outputs of a model from an input and further ones.
func (o *onnxRuntime) run(path, input string, dims []int, values []float32, further ...array) (map[string]array, error) {
	line, err := json.Marshal(map[string]any{"model": path, "inputs": append(further, packed(input, dims, values))})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(o.in, "%s\n", line); err != nil {
		return nil, err
	}
	answer, err := o.out.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var failed struct{ Error string }
	if json.Unmarshal(answer, &failed) == nil && failed.Error != "" {
		return nil, errors.New(failed.Error)
	}
	outputs := map[string]array{}
	return outputs, json.Unmarshal(answer, &outputs)
}
