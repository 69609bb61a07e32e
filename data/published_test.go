package data

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// realData returns the folder of the real images, or skips the test if there is none.
func realData(t testing.TB) Dirs {
	dir := os.Getenv(EnvDir)
	if dir == "" {
		t.Skip("left out: " + EnvDir + " is not set")
	}
	leftOutShort(t)
	return Dirs{dir}
}

// leftOutShort skips, with -short, a test that reads tens of megabytes on one goroutine: the race detector would not find
// anything.
func leftOutShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out with -short: one goroutine reads much")
	}
}

// tiny returns a published set with the given name and files of a few images, and their uncompressed bytes.
func tiny(name string) (*published, [4][]byte) {
	pixels := make([]byte, 3*28*28)
	for i := range pixels {
		pixels[i] = byte(i * i >> 3) // hard to compress, so that there is something to cut
	}
	contents := [4][]byte{
		idxBytes(idxUint8, []int{3, 28, 28}, pixels), idxBytes(idxUint8, []int{3}, []byte{1, 2, 3}),
		idxBytes(idxUint8, []int{2, 28, 28}, pixels[:2*28*28]), idxBytes(idxUint8, []int{2}, []byte{4, 5}),
	}
	set := &published{name: name, files: fashionMNIST.files}
	for i, b := range contents {
		sum := sha256.Sum256(b)
		set.files[i].size, set.files[i].sha256 = int64(len(b)), hex.EncodeToString(sum[:])
	}
	return set, contents
}

func TestPublishedSetsLoadPackedAndUnpackedFilesFromAnyFolder(t *testing.T) {
	set, contents := tiny("tiny")
	first, second := t.TempDir(), t.TempDir()
	write(t, first, "tiny/"+set.files[trainImages].name+".gz", gzipped(t, contents[trainImages]))
	write(t, second, "tiny/"+set.files[trainLabels].name, contents[trainLabels])
	write(t, second, "tiny/"+strings.Replace(set.files[testImages].name, "-idx", ".idx", 1), contents[testImages])
	write(t, second, "tiny/"+set.files[testLabels].name+".gz", gzipped(t, contents[testLabels]))
	loaded, err := set.Load(background, Dirs{first, second}, Both)
	fatal.If(t, err)
	if loaded.Train.Len() != 3 || !slices.Equal(loaded.Train.Labels(), []int{1, 2, 3}) || !slices.Equal(loaded.Test.Labels(), []int{4, 5}) {
		t.Errorf("loaded %d images, labels %v and %v", loaded.Train.Len(), loaded.Train.Labels(), loaded.Test.Labels())
	}
	if !bytes.Equal(loaded.Test.Bytes(1), contents[testImages][16+784:]) {
		t.Error("the second test image has other bytes")
	}
	for i, f := range loaded.Files {
		expect.Equal(t, f.SHA256, set.files[i].sha256, f.Path, "is recorded with")
	}
}

func TestOnlyTheFilesThatAreNeededAreRead(t *testing.T) {
	set, contents := tiny("tiny")
	dir := t.TempDir()
	for _, i := range []int{testImages, testLabels} {
		write(t, dir, "tiny/"+set.files[i].name, contents[i])
	}
	loaded, err := set.Load(background, Dirs{dir}, Need{Test: true})
	if err != nil || loaded.Train != nil || loaded.Test.Len() != 2 || !loaded.HasTest {
		t.Errorf("the test split alone: %+v, %v", loaded, err)
	}
	expect.As[*Error](t, expect.Err(set.Load(background, Dirs{dir}, Both)), "", "missing training images gave")
}

func TestMissingAndWrongFilesSayWhatToDo(t *testing.T) {
	set, contents := tiny("tiny")
	name := set.files[trainImages].name
	right := contents[trainImages]
	flipped := slices.Clone(right)
	flipped[100] ^= 1
	for problem, c := range map[string]struct {
		b    []byte
		want []string
	}{
		"missing":       {nil, []string{name + ".gz: not found in ", `run "tessera data get tiny"`, "the option data", EnvDir, "the folder that holds tiny/"}},
		"flipped":       {gzipped(t, flipped), []string{"wrong checksum", set.files[trainImages].sha256, `"tessera data get tiny" with the option data=`}},
		"short":         {right[:len(right)-1], []string{"wrong size: 2367 bytes uncompressed, want 2368"}},
		"long":          {append(slices.Clone(right), 0), []string{"wrong size: more than 2368 bytes uncompressed"}},
		"cut":           {gzipped(t, right)[:500], []string{"cut short"}},
		"not gzip":      {[]byte("<html>please log in</html>"), []string{"wrong size: 26 bytes"}},
		"empty":         {[]byte{}, []string{"wrong size: 0 bytes"}},
		"another shape": {idxBytes(idxUint8, []int{3, 14, 56}, right[16:]), []string{"wrong checksum"}},
	} {
		dir := t.TempDir()
		for i, f := range set.files {
			write(t, dir, "tiny/"+f.name+".gz", gzipped(t, contents[i]))
		}
		path := filepath.Join(dir, "tiny", name+".gz")
		if c.b == nil {
			os.Remove(path)
		} else {
			write(t, dir, "tiny/"+name+".gz", c.b)
		}
		_, err := set.Load(background, Dirs{dir, "/nonexistent"}, Both)
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Dataset != "tiny" || c.b != nil && bad.Path != path {
			t.Errorf("%s: got %v, want an *Error about %s", problem, err, path)
			continue
		}
		for _, want := range c.want {
			expect.Contains(t, err.Error(), want, problem, err)
		}
	}
}

func TestFoldersAreSearchedFlagThenEnvironmentThenCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	t.Setenv("HOME", "/home")
	t.Setenv(EnvDir, "/env")
	cache, err := os.UserCacheDir()
	fatal.If(t, err)
	cache = filepath.Join(cache, "tessera")
	for flag, want := range map[string]Dirs{"/flag": {"/flag", "/env", cache}, "": {"/env", cache}, "/env": {"/env", cache}} {
		expect.Slice(t, SearchDirs(flag), want, "--data", flag)
	}
}

// The files must have the published MD5 sums of the uncompressed files, and, for Fashion-MNIST, the mean and standard
// deviation of the training pixels.
func TestTheRealFilesHaveThePublishedChecksums(t *testing.T) {
	dirs := realData(t)
	for name, sums := range map[string][4]string{
		"fashion-mnist": {"f4a8712d7a061bf5bd6d2ca38dc4d50a", "9018921c3c673c538a1fc5bad174d6f9",
			"8181f5470baa50b63fa0f6fddb340f0a", "15d484375f8d13e6eb1aabb0c3f46965"},
		"mnist": {"6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624",
			"2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"},
	} {
		set, err := publishedSet(name)
		fatal.If(t, err)
		for i, f := range set.files {
			path, _ := dirs.find(name, f.name)
			b, _, err := set.check(background, path, f)
			fatal.If(t, err)
			if sum := md5.Sum(b); hex.EncodeToString(sum[:]) != sums[i] {
				t.Errorf("%s: MD5 %x, want %s", path, sum, sums[i])
			}
		}
		loaded, err := set.Load(background, dirs, Both)
		fatal.If(t, err)
		if loaded.Train.Len() != 60000 || loaded.Test.Len() != 10000 || loaded.Train.Pixels() != 784 || len(loaded.Classes) != 10 {
			t.Errorf("%s: %d and %d images", name, loaded.Train.Len(), loaded.Test.Len())
		}
		if name == "fashion-mnist" {
			mean, deviation := moments(loaded.Train)
			expect.Near(t, mean, 0.2860, 5e-5, "pixel mean")
			expect.Near(t, deviation, 0.3530, 5e-5, "pixel mean")
		}
	}
}

func moments(images *Images) (mean, deviation float64) {
	var count [256]float64
	for i := range images.Len() {
		for _, b := range images.Bytes(i) {
			count[b]++
		}
	}
	n := float64(images.Len() * images.Pixels())
	for b, c := range count {
		mean += c * float64(b) / 255 / n
	}
	for b, c := range count {
		d := float64(b)/255 - mean
		deviation += c * d * d / n
	}
	return mean, math.Sqrt(deviation)
}

func BenchmarkLoadFashionMNIST(b *testing.B) {
	dirs := realData(b)
	for b.Loop() {
		fatal.If(b, expect.Err(fashionMNIST.Load(background, dirs, Both)))
	}
}

func BenchmarkBatch(b *testing.B) {
	images, err := NewBytes([]int{28, 28}, make([]byte, 1000*784), nil)
	fatal.If(b, err)
	indices := lists.Of(128, func(i int) int { return i * 7 })
	dst := make([]float32, 128*784)
	for b.Loop() {
		images.Batch(dst, indices)
	}
}

// wrapped returns bytes compressed with another level, like those of another mirror.
func wrapped(t *testing.T, b []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, level)
	fatal.If(t, err)
	z.Write(b)
	fatal.If(t, z.Close())
	return out.Bytes()
}
