package export

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image/png"
	"io"

	"tessera/internal/train"
	"tessera/internal/wire"
)

func init() {
	Registry.Register("tensorboard", "TensorBoard: curves, atoms as an image, the declaration", func() Format {
		// TensorBoard reads files whose names contain the word tfevents
		return Format{Extension: ".tfevents", Parts: parts("events"), Write: writeEvents}
	})
}

// The messages of TensorFlow's event.proto, summary.proto and tensor.proto, with the fields that this package uses.
type (
	event struct {
		Seconds float64  `pb:"1"`
		Step    int64    `pb:"2"`
		Version string   `pb:"3"`
		Summary *summary `pb:"5"`
	}
	summary struct {
		Values []summaryValue `pb:"1"`
	}
	summaryValue struct {
		Tag      string           `pb:"1"`
		Number   *float32         `pb:"2"`
		Image    *summaryImage    `pb:"4"`
		Tensor   *summaryTensor   `pb:"8"`
		Metadata *summaryMetadata `pb:"9"`
	}
	summaryImage struct {
		Height int32  `pb:"1"`
		Width  int32  `pb:"2"`
		Colour int32  `pb:"3"` // 3 means RGB
		PNG    []byte `pb:"4"`
	}
	summaryTensor struct {
		Type  int32    `pb:"1"` // 7 means texts
		Texts []string `pb:"8"`
	}
	summaryMetadata struct {
		Plugin *pluginData `pb:"1"`
	}
	pluginData struct {
		Name string `pb:"1"`
	}
)

// writeEvents writes an event file for TensorBoard: every value of metrics.jsonl as a curve over the epochs, the atoms
// as one image, and the declaration as a text. The times of the events are the seconds of the training, from 0.
func writeEvents(w io.Writer, r *Run, _ string) error {
	events := []event{{Version: "brain.Event:2"}, {Summary: &summary{[]summaryValue{{
		Tag:      "declaration",
		Tensor:   &summaryTensor{7, []string{"```toml\n" + r.Metadata()["declaration"] + "\n```"}}, // TensorBoard renders the text as Markdown
		Metadata: &summaryMetadata{&pluginData{"text"}},
	}}}}}
	epochs, err := r.History()
	if err != nil {
		return err
	}
	events = append(events, curves(epochs)...)
	picture, err := atomsEvent(r)
	if err != nil {
		return err
	}
	if picture != nil {
		events = append(events, *picture)
	}
	for _, e := range events {
		if err := writeRecord(w, wire.Append(nil, e)); err != nil {
			return err
		}
	}
	return nil
}

// curves returns one event per epoch with all numbers of the epoch.
func curves(epochs []train.Epoch) (events []event) {
	seconds := 0.0
	for _, e := range epochs {
		took, _ := e.Values.Number("seconds")
		seconds += took
		s := &summary{}
		for _, v := range e.Values {
			if number, ok := e.Values.Number(v.Name); ok && v.Name != "epoch" && v.Name != "crc32" {
				narrow := float32(number)
				s.Values = append(s.Values, summaryValue{Tag: v.Name, Number: &narrow})
			}
		}
		events = append(events, event{Seconds: seconds, Step: int64(e.Epoch), Summary: s})
	}
	return events
}

// atomsEvent returns the event with the picture of the atoms. It returns nil if DrawAtoms is nil or the run has no
// atoms that are images.
func atomsEvent(r *Run) (*event, error) {
	a := r.Atoms()
	if r.DrawAtoms == nil || a == nil || len(a.Shape) < 2 {
		return nil, nil
	}
	picture, err := r.DrawAtoms(a)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return nil, err
	}
	size := picture.Bounds().Size()
	return &event{Step: int64(r.Epoch), Summary: &summary{[]summaryValue{{Tag: "atoms",
		Image: &summaryImage{int32(size.Y), int32(size.X), 3, b.Bytes()}}}}}, nil
}

// castagnoli is the polynomial of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the checksum of a record, rotated and shifted as TensorFlow's format requires.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// writeRecord writes one record: length, checksum of the length, data, checksum of the data. Source: TensorFlow,
// tensorflow/core/lib/io/record_writer.h.
func writeRecord(w io.Writer, b []byte) error {
	record := binary.LittleEndian.AppendUint64(nil, uint64(len(b)))
	record = binary.LittleEndian.AppendUint32(record, masked(record))
	record = append(record, b...)
	record = binary.LittleEndian.AppendUint32(record, masked(b))
	_, err := w.Write(record)
	return err
}
