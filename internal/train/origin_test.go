package train

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

type ownSource struct {
	SharedKeys `toml:"-"`
	Labels     string `toml:"labels"`
	TestLabels string `toml:"test_labels"`
	Column     string `toml:"column"`
	Whole      string `toml:"whole"`
}

// SharedKeys is a struct of keys for embedding, like the keys that the array formats share.
type SharedKeys struct {
	Pictures     string `toml:"pictures"`
	TestPictures string `toml:"test_pictures"`
}

func (*ownSource) Shape(data.Dirs) ([]int, bool) { return nil, false }

func (*ownSource) Load(context.Context, data.Dirs, data.Need) (*data.Set, error) { return nil, nil }

func TestPathsOfTheTrainingAreFoundAndOtherTextsStay(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	for _, name := range []string{"x.npy", "tx.npy", "y.npy", "species"} {
		fatal.If(t, os.WriteFile(at(name), nil, 0o600))
	}
	e := Environment{Folder: folder, Data: []data.File{{Path: at("x.npy")}, {Path: at("y.npy")}, {Path: at("gone.npy")}}}
	s := &ownSource{SharedKeys: SharedKeys{"x.npy", "tx.npy"}, Labels: "y.npy", TestLabels: "gone.npy", Column: "species", Whole: at("x.npy")}
	before := *s
	got, ok := e.Placed(s).(*ownSource)
	if !ok || *s != before {
		t.Fatalf("got %T, and the declaration is %+v", got, s)
	}
	want := before
	want.Pictures, want.TestPictures, want.Labels = at("x.npy"), at("tx.npy"), at("y.npy") // the column has the name of a file that was not read
	expect.Equal(t, *got, want, got)
	npy := &data.Files{Kind: "npy", Images: "x.npy", Columns: data.ColumnNames{"target": {"y.npy"}, "other": {"species"}}, TestColumns: data.ColumnNames{"target": {"tx.npy"}}}
	placed := e.Placed(npy).(*data.Files)
	expect.Equal(t, fmt.Sprint(placed.Columns, placed.TestColumns), fmt.Sprintf("map[other:[species] target:[%s]] map[target:[%s]]", at("y.npy"), at("tx.npy")), "the files of columns")
	expect.Equal(t, npy.Columns["target"][0], "y.npy", "the files of columns")
	expect.Equal(t, (Environment{}).Placed(s), data.Source(s), "a run without a record was given another source")
}

func TestAPatternOfFilesIsRecordedAndFoundLikeAFile(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	for _, name := range []string{"x-0.npy", "x-1.npy", "tx.npy"} {
		fatal.If(t, os.WriteFile(name, nil, 0o600))
	}
	was := []data.File{{Path: "x-*.npy", SHA256: "a"}}
	e := Environment{Data: []data.File{was[0]}}
	e.locate(nil, was)
	expect.Equal(t, e.Data[0].Path, filepath.Join(folder, "x-*.npy"), "the recorded path")
	t.Chdir(t.TempDir())
	placed := e.Placed(&data.Files{Kind: "npy", File: "x-*.npy", Test: "tx.npy"}).(*data.Files)
	expect.Slice(t, []string{placed.File, placed.Test}, []string{filepath.Join(folder, "x-*.npy"), filepath.Join(folder, "tx.npy")}, "from another folder")
	expect.Error(t, e.Changed("npy", []data.File{{Path: placed.File, SHA256: "b"}}), "x-*.npy: has changed since the run was trained")
}
