package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// shardBytes returns random numbers of a type as the bytes of an array.
func shardBytes(kind string, n int, r *rand.Rand) (b []byte) {
	for range n {
		v := r.NormFloat64()
		switch kind {
		case "u1":
			b = append(b, byte(r.Uint32()))
		case "i2":
			b = binary.LittleEndian.AppendUint16(b, uint16(int16(100*v)))
		case "u4":
			b = binary.LittleEndian.AppendUint32(b, 1<<25+r.Uint32N(1000))
		case "f2":
			b = binary.LittleEndian.AppendUint16(b, uint16(r.Uint32N(0x7c00))|uint16(r.Uint32N(2))<<15)
		case "b2":
			b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(float32(v))>>16))
		case "f4":
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		case "f8":
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(1e6+v))
		}
	}
	return b
}

// writeShards writes three files of samples with labels, and returns a declaration of them.
func writeShards(t *testing.T, format, kind string, shape ...int) *Files {
	t.Helper()
	dir, r := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	f := &Files{Kind: format, File: filepath.Join(dir, "x-*."+format)}
	for i, n := range []int{700, 1, 333} {
		dims := append([]int{n}, shape...)
		size := n
		for _, s := range shape {
			size *= s
		}
		b, labels := shardBytes(kind, size, r), new(bytes.Buffer)
		for k := range n {
			_ = binary.Write(labels, binary.LittleEndian, int64(k%3))
		}
		path := filepath.Join(dir, fmt.Sprintf("x-%d.%s", i, format))
		var all []byte
		switch format {
		case "npy":
			all = append(npyHeaderOf("<"+kind, dims), b...)
			write(t, dir, fmt.Sprintf("l-%d.npy", i), append(npyHeaderOf("<i8", []int{n}), labels.Bytes()...))
			f.Labels = filepath.Join(dir, "l-*.npy")
		case "safetensors":
			name := map[string]string{"u1": "U8", "i2": "I16", "u4": "U32", "f2": "F16", "b2": "BF16", "f4": "F32", "f8": "F64"}[kind]
			header := fmt.Sprintf(`{"x":{"dtype":%q,"shape":%s,"data_offsets":[0,%d]},"labels":{"dtype":"I64","shape":[%d],"data_offsets":[%d,%d]}}`,
				name, strings.ReplaceAll(fmt.Sprint(dims), " ", ","), len(b), n, len(b), len(b)+8*n)
			header += strings.Repeat(" ", (8-len(header)%8)%8)
			all = append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
			all = append(append(all, b...), labels.Bytes()...)
		}
		write(t, "", path, all)
	}
	return f
}

// Samples that do not fit into the budget have the values that they have in memory, also scaled; of one file and of several.
func TestOnDiskEqualsMemory(t *testing.T) {
	for _, format := range []string{"npy", "safetensors"} {
		for _, kind := range []string{"u1", "i2", "u4", "f2", "b2", "f4", "f8"} {
			for i, scale := range []Scale{nil, scaleNamed("standardise"), scaleNamed("minmax"), scaleNamed("bytes")} {
				for _, shape := range [][]int{{96}, {3, 8, 4}} {
					if format == "npy" && kind == "b2" { // which NumPy has no name for
						continue
					}
					if testing.Short() && (i+len(kind)+len(shape)+int(kind[0])+int(kind[1]))%4 > 0 {
						continue // every kind with a scale and a shape
					}
					t.Run(fmt.Sprint(format, kind, i, len(shape)), func(t *testing.T) {
						f := writeShards(t, format, kind, shape...)
						f.Scale = scale
						if len(shape) == 3 {
							f.Axes = channelsFirst
						}
						want := loaded(t, f)
						f.Memory = LeastBudget
						got := loaded(t, f)
						if want.Fit.OnDisk() || !got.Fit.OnDisk() {
							t.Fatalf("on disk: %v and %v", want.Fit.OnDisk(), got.Fit.OnDisk())
						}
						for name, pair := range map[string][2]*Images{"fit": {got.Fit, want.Fit}, "validation": {got.Validation, want.Validation}} {
							g, w := pair[0], pair[1]
							if !slices.Equal(g.Float32(), w.Float32()) || !slices.Equal(g.Labels(), w.Labels()) || !slices.Equal(g.Shape, w.Shape) {
								t.Errorf("%s: values, labels or shapes differ", name)
							}
							expect.Equal(t, g.Checksum(), w.Checksum(), name, "the checksums")
						}
						low, high := got.Fit.Range()
						least, most := want.Fit.Range()
						if low > least || high < most {
							t.Errorf("range %g to %g, want at least %g to %g", low, high, least, most)
						}
					})
				}
			}
		}
	}
}

func loaded(t *testing.T, f *Files) Splits {
	t.Helper()
	set, err := Load(context.Background(), f, Dirs{}, f.need())
	fatal.If(t, err)
	splits, err := set.Split(Selection{Fit: "train", Validation: Validation{Fraction: 0.1}}, 1)
	fatal.If(t, err)
	return splits
}

func (f *Files) need() Need {
	return Need{Train: true, Test: f.HasTest(), Columns: f.Columns.further()}
}

// The order of samples on disk has every sample once, is drawn by the seed, and needs only as many blocks at a time as the budget holds.
func TestShuffleOnDisk(t *testing.T) {
	f := writeShards(t, "npy", "f4", 64)
	f.Memory = 1 << 17
	m := loaded(t, f).Fit
	draw := func(seed uint64) []int {
		order := make([]int, m.Len())
		m.Shuffle(order, rand.New(rand.NewPCG(seed, 0)))
		return order
	}
	order := draw(1)
	if !slices.Equal(order, draw(1)) || slices.Equal(order, draw(2)) {
		t.Error("the order is not that of the seed")
	}
	sorted := slices.Sorted(slices.Values(order))
	if sorted[0] != 0 || sorted[len(sorted)-1] != m.Len()-1 || len(slices.Compact(sorted)) != m.Len() {
		t.Error("a sample occurs twice, or is missing")
	}
	last := map[int]int{}
	for i, k := range order {
		last[m.disk.block(m.row(k))] = i
	}
	open, most, seen := 0, 0, map[int]bool{}
	for i, k := range order {
		block := m.disk.block(m.row(k))
		if !seen[block] {
			seen[block] = true
			open++
		}
		most = max(most, open)
		if last[block] == i {
			open--
		}
	}
	if most > m.disk.held.most || len(seen) < 2*most {
		t.Errorf("%d of %d blocks are open at once, the budget holds %d", most, len(seen), m.disk.held.most)
	}
	row := make([]float32, 64)
	for _, k := range order {
		m.Batch(row, []int{k})
	}
	if held := len(m.disk.held.all) + len(m.disk.held.spare); held > m.disk.held.most {
		t.Errorf("%d blocks are held, the budget allows %d", held, m.disk.held.most)
	}
}

// Two trainings that read at once, one ahead of the other, drop no block that has samples left: each block is read at most once for each.
func TestTrainingsAtOnceReadEachBlockOnce(t *testing.T) {
	f := writeShards(t, "npy", "f4", 64)
	f.Memory = 1 << 17
	m := loaded(t, f).Fit
	(&Set{Train: m}).ReadAtOnce(2)
	first, second := m.Order(rand.New(rand.NewPCG(1, 0))), m.Order(rand.New(rand.NewPCG(2, 0)))
	reads, last, row := 0, map[int]*heldBlock{}, make([]float32, 64)
	read := func(k int) {
		m.Batch(row, []int{k})
		block := m.disk.block(m.row(k))
		if held := m.disk.held.all[block]; held != last[block] {
			last[block] = held
			reads++
		}
	}
	ahead := m.Len() / 3
	for i := range m.Len() + ahead {
		if i < m.Len() {
			read(first.Next())
		}
		if i >= ahead {
			read(second.Next())
		}
	}
	if most := 2 * len(m.disk.blocks); reads > most {
		t.Errorf("%d blocks are read, want at most %d", reads, most)
	}
}

// A file that is cut while it is read is an error of the file.
func TestOnDiskCut(t *testing.T) {
	f := writeShards(t, "npy", "f4", 64)
	f.Memory = LeastBudget
	m := loaded(t, f).Fit
	fatal.If(t, os.Truncate(strings.Replace(f.File, "*", "0", 1), 1000))
	defer func() {
		err, _ := recover().(error)
		expect.As[*Error](t, err, "has changed while it was read")
	}()
	m.Float32()
}

// Shards that do not belong together are errors that name the file.
func TestShardsThatDiffer(t *testing.T) {
	dir := t.TempDir()
	save := func(name, descr string, dims []int, size int) {
		write(t, dir, name, append(npyHeaderOf(descr, dims), make([]byte, size)...))
	}
	save("a-0.npy", "<f4", []int{2, 3}, 24)
	for want, write := range map[string]func(){
		`a-1.npy: its array has the shape [2 4]`:            func() { save("a-1.npy", "<f4", []int{2, 4}, 32) },
		`a-1.npy: its values have the type "f8", want "f4"`: func() { save("a-1.npy", "<f8", []int{2, 3}, 48) },
		`a-1.npy: cannot be read: is empty`:                 func() { write(t, dir, "a-1.npy", "") },
	} {
		write()
		_, err := (&Files{Kind: "npy", File: filepath.Join(dir, "a-*.npy")}).Load(context.Background(), Dirs{}, Need{Train: true})
		expect.Error(t, err, want)
	}
	save("a-1.npy", "<f4", []int{3, 3}, 36)
	for want, sizes := range map[string][]int{
		"l-0.npy: got 3 entries, want 2, one for each sample of ": {3, 2}, // five in total, as there are samples
		"l-*.npy: got 3 files, want 2, one for each of ":          {2, 2, 1},
		"": {2, 3},
	} {
		for i, n := range sizes {
			save(fmt.Sprintf("l-%d.npy", i), "|u1", []int{n}, n)
		}
		for _, f := range []*Files{{Labels: filepath.Join(dir, "l-*.npy")}, {Columns: ColumnNames{"w": {filepath.Join(dir, "l-*.npy")}}}} {
			f.Kind, f.File = "npy", filepath.Join(dir, "a-*.npy")
			_, err := f.Load(context.Background(), Dirs{}, Need{Train: true, Columns: slices.Collect(maps.Keys(f.Columns))})
			if want == "" {
				expect.NoError(t, err)
			} else {
				expect.Error(t, err, want)
			}
		}
		_ = os.Remove(filepath.Join(dir, "l-2.npy"))
	}
	write(t, dir, "t-0.csv", "a,b,label\n1,2,x\n")
	write(t, dir, "t-1.csv", "a,b,label\n3,4,y\n5,6,x\n")
	set, err := (&Files{Kind: "csv", File: filepath.Join(dir, "t-?.csv")}).Load(context.Background(), Dirs{}, Need{Train: true})
	if err != nil || !slices.Equal(set.Train.Float32(), []float32{1, 2, 3, 4, 5, 6}) || !slices.Equal(set.Train.Labels(), []int{0, 1, 0}) {
		t.Errorf("got %v, %v", set, err)
	}
	write(t, dir, "t-1.csv", "a,c,label\n3,4,y\n5,6,x\n")
	if _, err = (&Files{Kind: "csv", File: filepath.Join(dir, "t-?.csv")}).Load(context.Background(), Dirs{}, Need{Train: true}); err == nil || !strings.Contains(err.Error(), "t-1.csv: has the columns") {
		t.Errorf("got %v", err)
	}
}

// A budget is read as it is written.
func TestBudget(t *testing.T) {
	for text, want := range map[string]Budget{"2GB": 2e9, "1.5 GiB": 3 << 29, "500mb": 5e8, "64KiB": 1 << 16, "65537KB": 65537000, "2TB": 2e12} {
		var b, again Budget
		if err := b.FromTOML(text); err != nil || b != want {
			t.Errorf("%s: got %d, %v", text, b, err)
		}
		if err := again.FromTOML(b.TOML()); err != nil || again != b {
			t.Errorf("%s: written as %v, read as %d, %v", text, b.TOML(), again, err)
		}
	}
	for _, wrong := range []any{"2", "GB", "-1GB", "0.1B", "1e30TB", int64(5), "0x10GB", "infGB", "nanGB"} {
		var b Budget
		expect.AnyError(t, b.FromTOML(wrong), wrong)
	}
}

// The hint of a budget that is too small is a budget that is enough, also with test samples, which have half of it.
func TestTheHintOfATooSmallBudgetIsEnough(t *testing.T) {
	const n, width = 2000, 20
	path := filepath.Join(t.TempDir(), "x.npy")
	fatal.If(t, WriteImages(path, []int{width}, make([]float32, n*width)))
	for _, test := range []string{"", path} {
		f := &Files{Kind: "npy", File: path, Test: test, Memory: LeastBudget}
		_, err := f.Load(t.Context(), nil, Both)
		bad, ok := errors.AsType[*Error](err)
		if !ok || !strings.HasPrefix(bad.Hint, "want at least ") || !strings.Contains(bad.Problem, fmt.Sprintf("memory = %q is too little", f.Memory)) {
			t.Fatalf("test %q: got %v", test, err)
		}
		fatal.If(t, f.Memory.FromTOML(strings.TrimPrefix(bad.Hint, "want at least ")))
		if set, err := f.Load(t.Context(), nil, Both); err != nil || !set.Train.OnDisk() {
			t.Errorf("test %q, memory = %q: got %v", test, f.Memory, err)
		}
	}
}
