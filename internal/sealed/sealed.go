// Package sealed adds a checksum to JSON documents, so that the change of a single bit is detected.
package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"

	"tessera/internal/regular"
)

// Open is the placeholder for the checksum. It is the value of a document's last member "sha256" until [Seal] replaces
// it.
var Open = strings.Repeat("0", 2*sha256.Size)

// ErrDamaged means that a document has changed since it was sealed.
var ErrDamaged = errors.New("damaged: its checksum is wrong")

// key precedes the checksum in indented JSON.
const key = `"sha256": "`

// Seal replaces the placeholder [Open] in an indented JSON document by the SHA-256 of the document.
func Seal(text []byte) error {
	digits := field(text)
	if string(digits) != Open {
		return errors.New("sealed: the document has no open checksum")
	}
	sum := sha256.Sum256(text)
	hex.Encode(digits, sum[:])
	return nil
}

// Document returns a value as an indented and sealed JSON document. The last member of the value must be "sha256", set to [Open].
func Document(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return text, Seal(text)
}

// Read reads a file with a sealed JSON document into v. It returns [ErrDamaged] if the document has changed since it
// was sealed.
func Read(path string, v any) error {
	text, err := regular.ReadFile(path)
	if err != nil {
		return err
	}
	if err := Check(text); err != nil { // v stays as it is
		return err
	}
	return json.Unmarshal(text, v)
}

// Check returns [ErrDamaged] if the document has changed since it was sealed, or has no checksum.
func Check(text []byte) error {
	copied := bytes.Clone(text)
	digits := field(copied)
	if digits == nil {
		return ErrDamaged
	}
	stored := string(digits)
	copy(digits, Open)
	if sum := sha256.Sum256(copied); stored != hex.EncodeToString(sum[:]) {
		return ErrDamaged
	}
	return nil
}

// field returns the digits of the last checksum in a document, nil if there is none.
func field(text []byte) []byte {
	at := bytes.LastIndex(text, []byte(key)) + len(key)
	if at < len(key) || at+len(Open) > len(text) {
		return nil
	}
	return text[at : at+len(Open)]
}

// lineKey precedes the checksum in a line.
const lineKey = `,"crc32":"`

// Line returns a JSON object on one line with an additional last member "crc32": the CRC-32 (IEEE) of the object
// without this member.
func Line(object []byte) []byte {
	return fmt.Appendf(bytes.Clone(object[:len(object)-1]), `%s%08x"}`, lineKey, crc32.ChecksumIEEE(object))
}

// CheckLine returns [ErrDamaged] if a line is not JSON or does not match its checksum. A line without a checksum is
// accepted, because it may be from an older version.
func CheckLine(line []byte) error {
	if !json.Valid(line) {
		return ErrDamaged
	}
	at := bytes.LastIndex(line, []byte(lineKey))
	if at < 0 {
		return nil
	}
	if object := append(bytes.Clone(line[:at]), '}'); !bytes.Equal(Line(object), line) {
		return ErrDamaged
	}
	return nil
}
