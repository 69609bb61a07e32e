package data

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// mostForABomb is what reading a file of a few kilobytes may allocate in all, whatever the file claims.
const mostForABomb = 160 << 20

// hostile returns the hostile files, which are made once.
func hostile(t testing.TB) map[string][]byte {
	if hostileFiles == nil {
		hostileFiles = makeHostile(t)
	}
	return hostileFiles
}

var hostileFiles map[string][]byte

// makeHostile makes files that claim more than they have, or inflate to more than anybody needs. By name; the name tells the format.
func makeHostile(t testing.TB) map[string][]byte {
	t.Helper()
	le, be := binary.LittleEndian, binary.BigEndian
	text := func(parts ...any) []byte {
		var b bytes.Buffer
		for _, p := range parts {
			switch p := p.(type) {
			case string:
				b.WriteString(p)
			case []byte:
				b.Write(p)
			default:
				_ = binary.Write(&b, le, p) // numbers
			}
		}
		return b.Bytes()
	}
	big := func(parts ...any) []byte {
		var b bytes.Buffer
		for _, p := range parts {
			_ = binary.Write(&b, be, p)
		}
		return b.Bytes()
	}
	npy := func(shape string) []byte { return text("\x93NUMPY\x01\x00", npyOf("<f4", shape), make([]byte, 64)) }
	packed := func(fill byte, size int64, start string) []byte {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		_, _ = io.WriteString(z, start)
		_, err := io.CopyN(z, filled(fill), size)
		fatal.If(t, errors.Join(err, z.Close()))
		return b.Bytes()
	}
	again := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err := z.Write(b)
		fatal.If(t, errors.Join(err, z.Close()))
		return out.Bytes()
	}
	zipped := func(name string, head []byte, zeros int64) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(head)
		}
		if err == nil {
			_, err = io.CopyN(w, filled(0), zeros)
		}
		fatal.If(t, errors.Join(err, z.Close()))
		return b.Bytes()
	}
	tensors := func(header string) []byte { return text(uint64(len(header)), header, make([]byte, 16)) }
	chunk := func(kind string, body []byte) []byte {
		sum := crc32.ChecksumIEEE(append([]byte(kind), body...))
		return slicesOf(be.AppendUint32(nil, uint32(len(body))), []byte(kind), body, be.AppendUint32(nil, sum))
	}
	png := func(width, height uint32, depth, kind byte, pixels int64) []byte {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, err := io.CopyN(z, filled(0), pixels)
		fatal.If(t, errors.Join(err, z.Close()))
		return slicesOf([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", big(width, height, depth, kind, byte(0), byte(0), byte(0))), chunk("IDAT", b.Bytes()), chunk("IEND", nil))
	}
	bmp := func(width, height int32, bits uint16) []byte {
		return text("BM", uint32(118), uint32(0), uint32(54), uint32(40), width, height, uint16(1), bits, uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), uint32(0), make([]byte, 64))
	}
	tiff := func(next uint32, fields ...[3]uint32) []byte { // tag, count, value, all LONG
		b := text("II*\x00", uint32(8), uint16(len(fields)))
		for _, f := range fields {
			b = append(b, text(uint16(f[0]), uint16(4), f[1], f[2])...)
		}
		return append(b, text(next, make([]byte, 64))...)
	}
	frame := func(width, height, compression, at, bytes uint32) [][3]uint32 {
		return [][3]uint32{{256, 1, width}, {257, 1, height}, {258, 1, 8}, {259, 1, compression}, {262, 1, 1}, {273, 1, at}, {277, 1, 1}, {278, 1, height}, {279, 1, bytes}}
	}
	riff := func(body []byte) []byte { return text("RIFF", uint32(len(body)+4), "WEBP", body) }
	parquet := parquetFile(t)
	damagedFooter := func(length uint32) []byte {
		b := append([]byte(nil), parquet...)
		le.PutUint32(b[len(b)-8:], length)
		return b
	}
	sparse := func(rows, columns int64) []byte {
		var b bytes.Buffer
		whole := func(shape string, values any) func(io.Writer) error {
			return func(w io.Writer) error {
				_, err := w.Write(text("\x93NUMPY\x01\x00", npyOf("<i8", shape), values))
				return err
			}
		}
		err := writeNPZ(&b, []namedArray{{"format", func(w io.Writer) error { return writeNPYTexts(w, []string{"coo"}) }}, {"shape", whole("(2,)", []int64{rows, columns})},
			{"row", whole("(1,)", []int64{0})}, {"col", whole("(1,)", []int64{0})}, {"data", whole("(1,)", []int64{1})}})
		fatal.If(t, err)
		return b.Bytes()
	}
	all := map[string][]byte{
		"huge.npy": npy("(1099511627776, 8)"), "negative.npy": npy("(-1, 8)"), "overflow.npy": npy("(4611686018427387904, 4611686018427387904)"),
		"deep.npy": npy(strings.Repeat("(", 20000)), "header.npy": text("\x93NUMPY\x02\x00", uint32(1<<31), "{"), "cut.npy": npy("(4, 8)")[:90], "many.npy": npy("(" + strings.Repeat("1, ", 5000) + ")"),
		"more.npz": zipped("x.npy", npy("(4, 4)"), 96<<20), "claims.npz": zipped("x.npy", npy("(1099511627776, 8)"), 64), "large.npz": zipped("x.npy", npy("(3000000, 8)")[:80], 64), "cut.npz": zipped("x.npy", npy("(4, 4)"), 8)[:120],
		"nested.npz": zipped("x.npy", zipped("x.npy", npy("(4, 4)"), 8), 0), "texts.npz": zipped("x.npz", npy("(4, 4)"), 96<<20), "size.npz": lyingZip(zipped("x.npy", npy("(4, 4)"), 0)),
		"length.safetensors": text(uint64(1<<63), "{}"), "longer.safetensors": text(uint64(1<<32), "{}"), "deep.safetensors": tensors(strings.Repeat("[", 1<<20)),
		"offsets.safetensors": tensors(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[-16,0]}}`), "product.safetensors": tensors(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,16]}}`),
		"huge.safetensors": tensors(`{"a":{"dtype":"F32","shape":[1099511627776,4],"data_offsets":[0,17592186044416]}}`),
		"huge-idx3-ubyte":  idxOf(1<<32-1, 1<<16, 1<<16), "overflow-idx4-ubyte": idxOf(1<<32-1, 1<<32-1, 1<<32-1, 1<<32-1), "cut-idx1-ubyte": {0, 0, 8, 255}, "zeros.idx.gz": packed(0, 96<<20, string(idxOf(2, 28, 28))),
		"wide.png": png(1<<16-1, 1<<16-1, 8, 0, 100), "overflow.png": png(1<<31-1, 1<<31-1, 16, 6, 100), "inflates.png": png(4, 4, 8, 0, 96<<20), "cut.png": png(40, 40, 8, 0, 1640)[:60], "colours.png": png(1<<15, 1<<15, 16, 6, 1<<20),
		"screen.gif": text("GIF89a", uint16(65535), uint16(65535), "\x00\x00\x00", ",", uint16(0), uint16(0), uint16(65535), uint16(65535), "\x80\x00\x00\x00\xff\xff\xff\x02\x01\x04\x00;"),
		"frame.gif":  text("GIF89a", uint16(4), uint16(4), "\x00\x00\x00", ",", uint16(0), uint16(0), uint16(65535), uint16(65535), "\x80\x00\x00\x00\xff\xff\xff\x02\x01\x04\x00;"),
		"huge.bmp":   bmp(1<<30, 1<<30, 24), "negative.bmp": bmp(-5, 5, 24), "least.bmp": bmp(1<<31-1, -1<<31, 32), "cut.bmp": bmp(400, 400, 24),
		"huge.tiff": tiff(0, frame(1<<31, 1<<31, 1, 8, 64)...), "strip.tiff": tiff(0, frame(64, 64, 1, 8, 1<<31)...), "deflate.tiff": tiff(0, frame(60000, 60000, 8, 8, 64)...), "loop.tiff": tiff(8, frame(8, 8, 5, 8, 1<<30)...), "fields.tiff": text("II*\x00", uint32(8), uint16(65535)),
		"count.tiff": tiff(0, append(frame(64, 64, 1, 8, 64), [3]uint32{273, 1 << 30, 8})...),
		"huge.webp":  riff(text("VP8 ", uint32(18), "\x10\x00\x00\x9d\x01\x2a", uint16(16383), uint16(16383), make([]byte, 8))), "lossless.webp": riff(text("VP8L", uint32(10), "\x2f\xff\xff\xff\xff\x00\x00\x00\x00\x00")), "chunk.webp": riff(text("VP8 ", uint32(1<<32-1), "\x10")),
		"huge.jpg": text("\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01\xff\xda\x00\x0c\x03\x01\x00\x02\x11\x03\x11\x00\x3f\x00"), "progressive.jpg": text("\xff\xd8\xff\xc2\x00\x11\x08\xff\xff\xff\xff\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01\xff\xd9"),
		"line.csv.gz": packed('1', 96<<20, "a,b\n"), "lines.csv.gz": packed('\n', 96<<20, "a,b\n"), "head.csv.gz": packed(',', 96<<20, "a"), "quote.csv.gz": packed('x', 96<<20, "a,b\n\""), "nested.csv.gz": again(packed('1', 96<<20, "a,b\n")), "spaces.csv.gz": packed(' ', 96<<20, "a,b\n1,"),
		"huge.mtx": []byte("%%MatrixMarket matrix coordinate real general\n2000000000 2000000000 1\n1 1 1\n"), "entries.mtx": []byte("%%MatrixMarket matrix coordinate real general\n3 3 2000000000\n1 1 1\n"), "negative.mtx": []byte("%%MatrixMarket matrix coordinate real general\n-3 3 1\n1 1 1\n"),
		"overflow.mtx": []byte("%%MatrixMarket matrix coordinate real general\n99999999999999999999 3 1\n1 1 1\n"), "comment.mtx.gz": packed('%', 96<<20, "%%MatrixMarket matrix coordinate real general\n"), "outside.mtx": []byte("%%MatrixMarket matrix coordinate real general\n3 3 1\n4294967297 1 1\n"),
		"sparse.npz": sparse(1<<31-1, 1<<31-1), "negative-sparse.npz": sparse(-1, 4), "overflow-sparse.npz": sparse(1<<62, 1<<62),
		"footer.parquet": damagedFooter(1<<32 - 1), "small.parquet": damagedFooter(3), "cut.parquet": parquet[:len(parquet)/2], "zeros.parquet": slicesOf([]byte("PAR1"), make([]byte, 5000), []byte("PAR1")),
	}
	for _, at := range []int{4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24} { // headers of pages say how long they are
		b := bytes.Clone(parquet)
		copy(b[at:], "\xff\xff\xff\xff\x0f")
		all[fmt.Sprintf("page%d.parquet", at)] = b
	}
	return all
}

// parquetFile returns a file of DuckDB.
func parquetFile(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "parquet.json"))
	var files map[string]struct{ File []byte }
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	fatal.If(t, err)
	return files["uncompressed"].File
}

// filled reads endless equal bytes.
type filled byte

func (f filled) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(f)
	}
	return len(b), nil
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// npyOf is the length and the text of a header.
func npyOf(kind, shape string) []byte {
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", kind, shape)
	return append(binary.LittleEndian.AppendUint16(nil, uint16(len(h))), h...)
}

// lyingZip says in its table of contents that a member has 2^32-2 bytes.
func lyingZip(b []byte) []byte {
	at := bytes.LastIndex(b, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(b[at+24:], 1<<32-2)
	return b
}

// A file of a few kilobytes neither takes the memory that it claims nor panics: it is an error with the path of the file.
func TestHostileFilesAreErrorsOfBoundedMemory(t *testing.T) {
	leftOutShort(t)
	dir := t.TempDir()
	for name, b := range hostile(t) {
		path := write(t, dir, name, b)
		for _, like := range readers() {
			if strings.HasSuffix(name, "sparse.npz") && like.Kind != "triples" {
				continue
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := readAnything(t, path, like)
			runtime.ReadMemStats(&after)
			var bad *Error
			switch took := after.TotalAlloc - before.TotalAlloc; {
			case err == nil && strings.HasSuffix(name, ".mtx") && like.Kind != "triples":
			case !errors.As(err, &bad) || !strings.Contains(err.Error(), name):
				t.Errorf("%s as %s: got %.200v, want an *Error with the path", name, like.Kind, err)
			case took > mostForABomb:
				t.Errorf("%s as %s: took %d MB: %.200v", name, like.Kind, took>>20, err)
			case len(err.Error()) > 1500 || strings.Contains(err.Error(), "\n"):
				t.Errorf("%s as %s: got an error of %d bytes: %.200s", name, like.Kind, len(err.Error()), err)
			}
		}
	}
}

// readers are the keys with which any file may be read.
func readers() []*Files {
	return []*Files{{Kind: "npy"}, {Kind: "npz"}, {Kind: "csv"}, {Kind: "triples", Empty: refuseEmpty, Absent: absentMissing}, {Kind: "triples", Empty: dropEmpty, Absent: absentZero}, {Kind: "images", Channels: 1, Resize: resizes[0]}}
}

// readAnything reads a file with some keys, as a data set and as a further file; a panic is an error without a path.
func readAnything(t testing.TB, path string, like *Files) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	of := *like
	of.File = path
	if like.Kind == "images" { // one image is a further file
		_, err = ReadRows(t.Context(), path, nil, &of)
		return err
	}
	_, err = Load(t.Context(), &of, Dirs{}, Both)
	return err
}

// FuzzReaders reads any bytes with the keys of every data set of files: no panic, and errors with the path of the file.
func FuzzReaders(f *testing.F) {
	if !testing.Short() { // they take long to make
		for name, b := range hostile(f) {
			if len(b) < 1<<14 {
				f.Add(b, name)
			}
		}
	}
	f.Add(parquetFile(f), "x.parquet")
	for _, name := range []string{"half.npy", "arrays.npz", "tensors.safetensors", "birds.csv", "sparse_csr.npz", "picture.png", "picture.bmp", "picture.gif", "turned6.jpg"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		fatal.If(f, err)
		f.Add(b, name)
	}
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		ending := filepath.Ext(strings.ReplaceAll(strings.ToValidUTF8(filepath.Base(name), ""), "\x00", "")) // files have no zero bytes in names
		path := write(t, t.TempDir(), "x"+ending[:min(len(ending), 100)], b)
		for _, like := range readers() {
			var bad *Error
			if err := readAnything(t, path, like); err != nil && (!errors.As(err, &bad) || bad.Path == "") {
				t.Errorf("as %s: got %v, want an *Error with the path", like.Kind, err)
			}
		}
	})
}
