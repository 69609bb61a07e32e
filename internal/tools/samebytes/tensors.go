package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// addTensors adds the type, shape and SHA-256 of every tensor of a safetensors file. The layout is that of
// https://huggingface.co/docs/safetensors: the length of the header as uint64, the header in JSON, the bytes. The metadata of
// the file are omitted, because a program may add entries to them.
func addTensors(into map[string]string, prefix string, file []byte) error {
	if len(file) < 8 {
		return fmt.Errorf("%s: %d bytes are no safetensors file", prefix, len(file))
	}
	length := binary.LittleEndian.Uint64(file)
	if length > uint64(len(file)-8) {
		return fmt.Errorf("%s: the header has %d bytes, the file %d", prefix, length, len(file))
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(file[8:8+length], &header); err != nil {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	delete(header, "__metadata__")
	if len(header) == 0 {
		return fmt.Errorf("%s: no tensors", prefix)
	}
	for name, entry := range header {
		text, err := describe(entry, file[8+length:])
		if err != nil {
			return fmt.Errorf("%s %s: %w", prefix, name, err)
		}
		into[prefix+" "+name] = text
	}
	return nil
}

// describe returns the type, shape and SHA-256 of one tensor.
func describe(entry json.RawMessage, data []byte) (string, error) {
	var t struct {
		Type    string    `json:"dtype"`
		Shape   []int     `json:"shape"`
		Offsets [2]uint64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(entry, &t); err != nil {
		return "", err
	}
	if t.Offsets[0] > t.Offsets[1] || t.Offsets[1] > uint64(len(data)) {
		return "", errors.New("its bytes are outside of the file")
	}
	return fmt.Sprintf("%s %d %s", t.Type, t.Shape, digest(data[t.Offsets[0]:t.Offsets[1]])), nil
}

// digest returns the SHA-256 of bytes as text.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}
