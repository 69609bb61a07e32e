package sweep

import (
	"bytes"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// damageSeed is the seed of the random damages in a test run.
const damageSeed = 12

// damaged returns the contents of a file with one bit flipped if flip is true, otherwise truncated.
func damaged(r *rand.Rand, whole []byte, flip bool) []byte {
	if !flip {
		return whole[:r.IntN(len(whole))]
	}
	b := bytes.Clone(whole)
	b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	return b
}

// outcome returns what a user obtains from a sweep's folder: the tables, and the parameters of each trial.
func outcome(s *Sweep) (string, error) {
	for _, t := range s.Trials {
		if t.Begun() {
			if _, err := train.Open(t.Path); err != nil {
				return "", err
			}
		}
	}
	if _, err := Read(s.Path); err != nil {
		return "", err
	}
	if _, err := s.Run(context.Background()); err != nil {
		return "", err
	}
	var all strings.Builder
	for _, name := range []string{ResultsFile, TableFile, SummaryFile, filepath.Join(trialsDir, s.Trials[0].ID, folder.Model)} {
		b, err := os.ReadFile(filepath.Join(s.Path, name))
		if err != nil {
			return "", err
		}
		all.Write(b)
	}
	return all.String(), nil
}

// Every file of a sweep and of its runs is damaged in turn. Reading the sweep must then give the same results or an
// error.
func TestNoDamageChangesANumberInSilence(t *testing.T) {
	flips, cuts := 200, 60 // a test of package tessera damages unfinished runs equally often
	if testing.Short() {
		flips, cuts = 50, 15
	}
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, oneTrial...)
	s := open(t, spec(t, declared, "s", oneTrial...), Options{Out: out, Jobs: 1})
	want, err := outcome(s)
	fatal.If(t, err)
	whole := map[string][]byte{}
	var paths []string
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
			whole[path], err = os.ReadFile(path)
		}
		return err
	})
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(damageSeed, 0))
	refused, silent := 0, 0
	for i := range flips + cuts {
		path := paths[i%len(paths)]
		text := damaged(r, whole[path], i < flips)
		put(t, path, text)
		got, err := outcome(s)
		if err != nil {
			refused++
		} else if got != want {
			silent++
			t.Errorf("damage %d of %s changed the outcome in silence", i, path)
		}
		for path, b := range whole { // a sweep rewrites several of the files
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
				put(t, path, b)
			}
		}
	}
	t.Logf("seed %d: %d flips and %d truncations of %d files: %d refused, %d without effect, %d silent", damageSeed, flips, cuts, len(paths), refused,
		flips+cuts-refused-silent, silent)
	if refused == 0 {
		t.Error("no damage was found")
	}
}
