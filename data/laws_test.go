package data_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws"
)

// files contains functions that write the files of a source and return its keys. Other sources need no files.
var files = map[string]func(t *testing.T, dir string) map[string]any{
	"csv": func(t *testing.T, dir string) map[string]any {
		text := "a,b,species,w,u,v\n"
		for i := range 10 {
			text += fmt.Sprintf("%d.5,%d,%s,%d,%d,0.%d\n", i, i*i, []string{"x", "y", "z"}[i%3], i%2, i, i)
		}
		path := written(t, dir, "rows.csv", text)
		return map[string]any{"file": path, "labels": "species", "test_images": path, "columns": data.ColumnNames{"w": {"w"}, "pair": {"u", "v"}}}
	},
	"npy": func(t *testing.T, dir string) map[string]any { return map[string]any{"images": rows(t, dir, "x.npy")} },
	"idx": func(t *testing.T, dir string) map[string]any {
		return map[string]any{"images": rows(t, dir, "x-ubyte")}
	},
	"npz": func(t *testing.T, dir string) map[string]any { return map[string]any{"file": rows(t, dir, "x.npz")} },
	"images": func(t *testing.T, dir string) map[string]any {
		return map[string]any{"images": rows(t, dir, "pictures")}
	},
	"png": func(t *testing.T, dir string) map[string]any {
		return map[string]any{"images": rows(t, dir, "pictures")}
	},
	"patches": func(*testing.T, string) map[string]any {
		return map[string]any{"of": &data.Inner{Name: "swimmer", Source: &data.Swimmer{}}, "patches": 40, "scale": data.Scale{&data.Whiten{}}}
	},
	"text":         texts,
	"cooccurrence": texts,
	"tokens":       texts,
	"contexts":     texts,
	"safetensors": func(t *testing.T, dir string) map[string]any {
		return map[string]any{"file": "testdata/tensors.safetensors", "tensor": "acts", "columns": data.ColumnNames{"group": {"ids"}}}
	},
}

// texts writes a folder of texts in two classes.
func texts(t *testing.T, dir string) map[string]any {
	for name, text := range map[string]string{"a/1": "The cat sat on the mat. The cat slept!", "a/2": "A cat and a dog sat here.\n\nThe dog slept.", "b/3": "The sun rose over the sea; the sea was calm.",
		"b/4": "Sun, sea and sand: the sun shone."} {
		fatal.If(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		written(t, dir, name+".txt", text)
	}
	return map[string]any{"file": dir, "test": dir, "least": 1}
}

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// rows writes five images of 3 x 4 pixels.
func rows(t *testing.T, dir, name string) string {
	t.Helper()
	values := lists.Of(5*3*4, func(i int) float32 { return float32(i%7) / 7 })
	path := filepath.Join(dir, name)
	fatal.If(t, data.WriteRows(path, "images", []int{3, 4}, values, data.Rows{}))
	return path
}

// Of the published sets, which one type reads and whose files have tests of their own, the first one is loaded.
func TestEveryDataSetObeysItsLaws(t *testing.T) {
	loaded := map[reflect.Type]bool{}
	for _, e := range data.Registry.All() {
		if kind := reflect.TypeOf(e.New()); files[e.Name] == nil && loaded[kind] {
			continue
		} else {
			loaded[kind] = true
		}
		t.Run(e.Name, func(t *testing.T) {
			if e.Name == "fashion-mnist" && testing.Short() {
				t.Skip("reads 70000 images again and again")
			}
			var keys map[string]any
			if write := files[e.Name]; write != nil {
				keys = write(t, t.TempDir())
			}
			fresh := func() data.Source {
				s := e.New()
				_ = laws.Set(s, "count", 500) // of generated sets; others have no such key
				for key, value := range keys {
					fatal.If(t, laws.Set(s, key, value))
				}
				return s
			}
			if e.Name == "memory" { // given by a program
				fresh = func() data.Source {
					s, err := data.FromColumns(data.FloatColumn("images", []int{3}, []float32{1, 2, 3, 4, 5, 6}),
						data.WholeColumn("labels", nil, []int32{1, 0}), data.FloatColumn("weight", nil, []float32{0.5, 2}))
					fatal.If(t, err)
					return s
				}
			}
			if _, err := data.Load(t.Context(), fresh(), data.SearchDirs(""), data.Both); missing(err) && keys == nil {
				t.Skip("left out: the files are not here")
			}
			laws.Check(t, laws.Source, fresh)
		})
	}
}

func missing(err error) bool {
	var of *data.Error
	return errors.As(err, &of) && strings.HasPrefix(of.Problem, data.NotFound)
}
