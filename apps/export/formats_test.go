package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/export"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/wire"
	"tessera/metrics"
)

// trained returns a run of a shipped model that is changed by --set arguments.
func trained(t *testing.T, model string, sets ...string) *export.Run {
	t.Helper()
	var changes []config.Set
	for _, s := range sets {
		change, err := config.ParseSet(s)
		fatal.If(t, err)
		changes = append(changes, change)
	}
	m, err := tessera.Shipped().Model(model, changes...)
	fatal.If(t, err)
	folder := filepath.Join(t.TempDir(), model)
	r, err := tessera.Train(context.Background(), m, tessera.Options{Out: folder, Threads: 1})
	fatal.If(t, err)
	fatal.If(t, r.Close())
	opened, err := export.Open(folder)
	fatal.If(t, err)
	return opened
}

// written returns the file of a run. It writes the file twice and fails the test if the bytes differ.
func written(t *testing.T, r *export.Run, format, part string) []byte {
	t.Helper()
	var one, other bytes.Buffer
	fatal.If(t, errors.Join(export.Write(&one, r, format, part), export.Write(&other, r, format, part)))
	if !bytes.Equal(one.Bytes(), other.Bytes()) {
		t.Errorf("%s: two files of one run differ", format)
	}
	return one.Bytes()
}

func TestFormatsHoldTheRun(t *testing.T) {
	r := trained(t, "swimmer-parts", "train.epochs=3")
	t.Run("npz", func(t *testing.T) { checkNPZ(t, r) })
	t.Run("safetensors", func(t *testing.T) { checkSafetensors(t, r) })
	t.Run("tensorboard", func(t *testing.T) { checkEvents(t, r) })
	t.Run("csv", func(t *testing.T) { checkCSV(t, r) })
	if len(written(t, r, "onnx", "")) == 0 {
		t.Error("onnx: an empty file")
	}
	for _, c := range [][2]string{{"torch", ""}, {"npz", "decoder"}, {"csv", "model"}} {
		expect.Is(t, export.Write(io.Discard, r, c[0], c[1]), export.ErrUnknown, c)
	}
	expect.AnyError(t, export.Write(io.Discard, &export.Run{Trained: r.Trained}, "csv", ""), "a training is exported of a run that has none")
	fatal.If(t, os.WriteFile(filepath.Join(r.Path, folder.Metrics), []byte(`{"epoch":`), 0o666))
	expect.As[*checkpoint.Error](t, export.Write(io.Discard, r, "tensorboard", ""), "", "a damaged metrics.jsonl")
	expect.NoError(t, export.Write(io.Discard, r, "onnx", ""), "onnx needs metrics.jsonl")
}

func checkNPZ(t *testing.T, r *export.Run) {
	b := written(t, r, "npz", "")
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	fatal.If(t, err)
	for _, p := range r.Parameters {
		f, err := z.Open(p.Path + ".npy")
		fatal.If(t, err)
		text, err := io.ReadAll(f)
		fatal.If(t, err)
		// the format is described at https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
		start := 10 + int(binary.LittleEndian.Uint16(text[8:]))
		shape := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Shape), " ", ", "), "[]")
		values := make([]float32, (len(text)-start)/4)
		_, err = binary.Decode(text[start:], binary.LittleEndian, values)
		if header := string(text[10:start]); err != nil || !strings.Contains(header, "'<f4'") || !strings.Contains(header, "("+shape) || !slices.Equal(values, p.Data) {
			t.Errorf("%s: %v, %s, want the shape %s", p.Path, err, header, shape)
		}
	}
	f, err := z.Open("metadata.json")
	fatal.If(t, err)
	metadata := map[string]string{}
	if err := json.NewDecoder(f).Decode(&metadata); err != nil || metadata["declaration"] != string(r.Spec.Text()) || metadata["epoch"] != "3" {
		t.Errorf("got the metadata %v, %v", metadata, err)
	}
}

func checkSafetensors(t *testing.T, r *export.Run) {
	f, err := checkpoint.Decode(written(t, r, "safetensors", ""))
	fatal.If(t, err)
	if f.Metadata["declaration"] != string(r.Spec.Text()) || f.Metadata["format"] != "pt" || len(f.Tensors) != len(r.Parameters) {
		t.Errorf("got %d tensors and the metadata %v", len(f.Tensors), f.Metadata)
	}
	w, _ := r.Parameter("encoder.0.weight")
	got, _ := f.Tensor("encoder.0.weight")
	expect.Slice(t, got.Shape, []int{20, 1024}, "the weight has shape")
	expect.Equal(t, got.Data[3*1024+5], w.Data[5*20+3], "the weight has shape")
}

// event contains the fields of event.proto that the test reads.
type event struct {
	Step    int64  `pb:"2"`
	Version string `pb:"3"`
	Summary *struct {
		Values []struct {
			Tag    string   `pb:"1"`
			Number *float32 `pb:"2"`
			Image  *struct {
				Height int64  `pb:"1"`
				Width  int64  `pb:"2"`
				PNG    []byte `pb:"4"`
			} `pb:"4"`
			Tensor *struct {
				Texts []string `pb:"8"`
			} `pb:"8"`
		} `pb:"1"`
	} `pb:"5"`
}

// records reads the records of an event file and verifies their checksums.
func records(t *testing.T, b []byte) (events []event) {
	t.Helper()
	sum := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	if known := sum([]byte{24, 0, 0, 0, 0, 0, 0, 0}); known != 0x224b7fa3 { // the start of TensorFlow's own files
		t.Fatalf("the checksum of the length 24 is %x", known)
	}
	for len(b) > 0 {
		n := int(binary.LittleEndian.Uint64(b))
		data := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[8:]) != sum(b[:8]) || binary.LittleEndian.Uint32(b[12+n:]) != sum(data) {
			t.Fatal("a record has another checksum")
		}
		var e event
		fatal.If(t, wire.Read(data, &e))
		events = append(events, e)
		b = b[16+n:]
	}
	return events
}

func checkEvents(t *testing.T, r *export.Run) {
	r.DrawAtoms = func(*metrics.Atoms) (image.Image, error) { return image.NewGray(image.Rect(0, 0, 30, 20)), nil }
	losses := map[int64]float32{}
	text, width := "", 0
	events := records(t, written(t, r, "tensorboard", ""))
	for _, e := range events[1:] {
		for _, v := range e.Summary.Values {
			switch {
			case v.Tag == "loss":
				losses[e.Step] = *v.Number
			case v.Tag == "declaration":
				text = v.Tensor.Texts[0]
			case v.Tag == "atoms":
				picture, err := png.Decode(bytes.NewReader(v.Image.PNG))
				if err != nil || int64(picture.Bounds().Dx()) != v.Image.Width || int64(picture.Bounds().Dy()) != v.Image.Height {
					t.Errorf("atoms: %v", err)
				}
				width = int(v.Image.Width)
			}
		}
	}
	want := map[int64]float32{}
	epochs, err := r.History()
	fatal.If(t, err)
	for _, e := range epochs {
		loss, _ := e.Values.Number("loss")
		want[int64(e.Epoch)] = float32(loss)
	}
	if events[0].Version != "brain.Event:2" || !reflect.DeepEqual(losses, want) || len(want) != 3 || width != 30 || !strings.Contains(text, "[model.swimmer-parts]") {
		t.Errorf("version %q, losses %v, want %v; atoms %d pixels wide; %q", events[0].Version, losses, want, width, text)
	}
}

func checkCSV(t *testing.T, r *export.Run) {
	read := func(part string) [][]string {
		lines, err := csv.NewReader(bytes.NewReader(written(t, r, "csv", part))).ReadAll()
		fatal.If(t, err)
		return lines
	}
	lines := read("")
	if len(lines) != 4 || lines[0][0] != "epoch" || lines[3][0] != "3" || lines[1][slices.Index(lines[0], "val_mse")] != "" {
		t.Errorf("the training is %v", lines)
	}
	if atoms := read("atoms"); len(atoms) != 21 || len(atoms[0]) != 1025 || atoms[20][0] != "19" {
		t.Errorf("got %d lines of %d fields of atoms", len(atoms), len(atoms[0]))
	}
}
