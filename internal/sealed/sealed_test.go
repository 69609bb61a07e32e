package sealed

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func document() []byte {
	return []byte("{\n  \"mse\": 0.25,\n  \"note\": \"a \\\"sha256\\\": \\\"x\",\n  \"sha256\": \"" + Open + "\"\n}\n")
}

func TestEveryFlippedBitAndEveryTruncationIsFound(t *testing.T) {
	b := document()
	expect.Is(t, Check(b), ErrDamaged, "a document that is not sealed")
	fatal.If(t, Seal(b))
	fatal.If(t, Check(b))
	for i := range 8 * len(b) {
		damaged := bytes.Clone(b)
		damaged[i/8] ^= 1 << (i % 8)
		if Check(damaged) == nil {
			t.Errorf("bit %d was changed without notice", i)
		}
	}
	for n := range b {
		if Check(b[:n]) == nil {
			t.Errorf("cut after %d bytes without notice", n)
		}
	}
}

func TestADocumentWithoutAnOpenChecksumIsNotSealed(t *testing.T) {
	for _, text := range []string{"", "{}", `{"sha256": "ab"}`, `{"sha256":"` + Open + `"}`} {
		if Seal([]byte(text)) == nil {
			t.Errorf("%s was sealed", text)
		}
	}
}

func TestAFlippedBitOfALineIsFoundOrChangesOnlyTheNameOfItsChecksum(t *testing.T) {
	object := []byte(`{"epoch":1,"loss":0.25,"val_mse":null}`)
	line := Line(object)
	if err := CheckLine(line); err != nil || CheckLine(object) != nil {
		t.Fatal(err)
	}
	from := bytes.LastIndex(line, []byte(lineKey))
	for i := range 8 * len(line) {
		damaged := bytes.Clone(line)
		damaged[i/8] ^= 1 << (i % 8)
		if CheckLine(damaged) == nil && (i/8 < from || i/8 >= from+len(lineKey)) {
			t.Errorf("%s was taken for %s", damaged, line)
		}
	}
	for n := range line {
		if CheckLine(line[:n]) == nil {
			t.Errorf("%s was accepted", line[:n])
		}
	}
}

// What is damaged must not reach the caller, who may keep the value in spite of the error.
func TestADamagedDocumentIsNotRead(t *testing.T) {
	b := document()
	fatal.If(t, Seal(b))
	path := filepath.Join(t.TempDir(), "document.json")
	fatal.If(t, os.WriteFile(path, bytes.Replace(b, []byte("0.25"), []byte("0.75"), 1), 0o666))
	var read struct{ MSE float64 }
	if err := Read(path, &read); !errors.Is(err, ErrDamaged) || read.MSE != 0 {
		t.Errorf("got %v and mse %v, want ErrDamaged and nothing read", err, read.MSE)
	}
}
