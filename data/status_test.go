package data

import (
	"errors"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestStatusAndVerifyTellMissingFromWrongFromRight(t *testing.T) {
	dirs := Dirs{t.TempDir()}
	for _, s := range List(dirs) {
		want := map[string]Origin{"swimmer": Generated, "bars": Generated, "shapes": Generated, "credit": Generated, "patches": Generated, "notes": Generated, "topics": Generated, "superposition": Generated, "hierarchy": Generated, "captions": Generated, "linear_rules": Generated, "idx": OwnFiles, "memory": OwnFiles, "npy": OwnFiles, "png": OwnFiles,
			"images": OwnFiles, "csv": OwnFiles, "npz": OwnFiles, "safetensors": OwnFiles, "triples": OwnFiles, "text": OwnFiles, "cooccurrence": OwnFiles, "contexts": OwnFiles, "tokens": OwnFiles,
			"mnist": Downloaded, "fashion-mnist": Downloaded}[s.Name]
		if s.Origin != want || (s.Problem() == nil) == (want == Downloaded) || (len(s.Files) == 4) != (want == Downloaded) || s.About == "" {
			t.Errorf("%s: %+v, want %s", s.Name, s, want)
		}
	}
	path := write(t, dirs[0], "mnist/t10k-labels-idx1-ubyte.gz", "damaged")
	located := mnist.locate(dirs)[testLabels]
	if located.Path != path || located.Bytes != 7 || located.Problem != nil {
		t.Errorf("a file that is there: %+v", located)
	}
	status, err := Verify(background, "mnist", dirs)
	fatal.If(t, err)
	for i, want := range []string{"not found", "not found", "not found", "wrong size"} {
		var bad *Error
		if f := status.Files[i]; !errors.As(f.Problem, &bad) || !strings.Contains(f.Problem.Error(), want) {
			t.Errorf("%s: %v, want an *Error with %q", f.Name, f.Problem, want)
		}
	}
	for _, name := range []string{"swimmer", "png", "minst"} {
		expect.AnyError(t, expect.Err(Verify(background, name, dirs)), name, "was verified")
		expect.AnyError(t, expect.Err((Download{}).Get(background, name, dirs[0])), name, "was downloaded")
	}
	expect.Slice(t, Published(), []string{"fashion-mnist", "mnist"}, "published")
}

func TestTheRealFilesVerify(t *testing.T) {
	dirs := realData(t)
	for _, name := range Published() {
		status, err := Verify(background, name, dirs)
		if err != nil || status.Problem() != nil {
			t.Errorf("%s: %v, %v", name, err, status.Problem())
		}
	}
}
