package serve

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// rewrite replaces a file by a file with another size or time, as an administrator would.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestOnlyBearersOfATokenAreServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	const one, other = "0123456789abcdef", "fedcba9876543210"
	fatal.If(t, os.WriteFile(file, []byte("# clients\n"+one+"\n\n  "+other+"\n"), 0o600))
	tokens, err := ReadTokens(file)
	fatal.If(t, err)
	s := newServer(t, Options{Tokens: tokens, Profile: true, Reload: -1})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v2", "Authorization: Bearer " + one, 200}, {"/v2", "Authorization: bearer " + other, 200}, {"/metrics", "Authorization: Bearer " + one, 200},
		{"/v2", "", 401}, {"/v2", "Authorization: Bearer " + one + "0", 401}, {"/v2", "Authorization: Bearer", 401}, {"/v2", "Authorization: Basic " + one, 401},
		{"/v2", "Authorization: Bearer # clients", 401}, {"/metrics", "", 401}, {"/debug/pprof/", "", 401}, {"/v2/models/small", "", 401},
		{"/v2/health/live", "", 200}, {"/v2/health/ready", "", 200}, {"/nope", "", 401},
	} {
		a := send(s, "GET", c.path, nil, c.header)
		if a.status != c.status || a.status == 401 && a.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s with %q: status %d, want %d", c.path, c.header, a.status, c.status)
		}
	}
	rewrite(t, file, "a token that is new")
	s.refresh()
	rewrite(t, file, "short") // leaves the tokens as they are
	s.refresh()
	for header, want := range map[string]int{"Authorization: Bearer a token that is new": 200, "Authorization: Bearer " + one: 401, "Authorization: Bearer short": 401} {
		expect.Equal(t, send(s, "GET", "/v2", nil, header).status, want, header, "with other tokens in the file: status")
	}
	for _, text := range []string{"", "# nothing", "short"} {
		fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
		expect.AnyError(t, expect.Err(ReadTokens(file)), text)
	}
	expect.AnyError(t, expect.Err(ReadTokens(file+".no")), "a missing file")
}

func TestTokensOfAProgramAreServed(t *testing.T) {
	const one = "0123456789abcdef"
	tokens, err := NewTokens(one, "fedcba9876543210")
	fatal.If(t, err)
	s := newServer(t, Options{Tokens: tokens, Reload: -1})
	s.refresh() // there is no file that could change
	for header, want := range map[string]int{"Authorization: Bearer " + one: 200, "Authorization: Bearer 0": 401, "": 401} {
		expect.Equal(t, send(s, "GET", "/v2", nil, header).status, want, header, "status")
	}
	for _, wrong := range [][]string{nil, {one, "short"}} {
		expect.AnyError(t, expect.Err(NewTokens(wrong...)), wrong)
	}
}

func TestPicturesInAndOut(t *testing.T) {
	s := newServer(t, Options{})
	grey := image.NewGray(image.Rect(0, 0, 8, 8))
	for i := range grey.Pix {
		grey.Pix[i] = byte(3 * i)
	}
	var asPNG, asJPEG, large bytes.Buffer
	coloured := image.NewNRGBA(image.Rect(0, 0, 9, 8))
	coloured.SetNRGBA(0, 0, color.NRGBA{1, 2, 3, 255})
	for _, err := range []error{png.Encode(&asPNG, grey), jpeg.Encode(&asJPEG, grey, nil), png.Encode(&large, coloured)} {
		fatal.If(t, err)
	}
	x := fromBinary(nil, grey.Pix, typeUINT8)
	got := post(s, "/v2/models/small/image", asPNG.Bytes()).reply(t)
	if len(got.Outputs) != 3 || !sameBits(got.Outputs[0].Data, valuesOf(t, "code", x)) {
		t.Errorf("got %+v", got)
	}
	if got := post(s, "/v2/models/small/image?output=side", asJPEG.Bytes()).reply(t); len(got.Outputs) != 1 || len(got.Outputs[0].Data) != 3 {
		t.Errorf("got %+v", got)
	}
	a := post(s, "/v2/models/small/image", asPNG.Bytes(), "Accept: image/png")
	back, err := png.Decode(bytes.NewReader(a.body))
	if err != nil || a.status != http.StatusOK || a.header.Get("Content-Type") != "image/png" {
		t.Fatalf("status %d, %v: %v", a.status, a.header, err)
	}
	for i, v := range valuesOf(t, "output", x) {
		if want := float32(back.(*image.Gray).Pix[i]) / 255; max(0, min(v, 1))-want > 0.51/255 || want-max(0, min(v, 1)) > 0.51/255 {
			t.Errorf("pixel %d: got %v, want %v", i, want, v)
		}
	}
	expect.AnyError(t, expect.Err(bufferOf(asPNG.Bytes()).decodePicture([]int{64}, nil)), "a picture for a model of vectors")
	for name, a := range map[string]answer{
		"a larger picture": post(s, "/v2/models/small/image", large.Bytes()), "a cut one": post(s, "/v2/models/small/image", asPNG.Bytes()[:60]),
		"an output twice":     post(s, "/v2/models/small/image?output=code&output=code", asPNG.Bytes()),
		"a code as a picture": post(s, "/v2/models/small/image?output=code", asPNG.Bytes(), "Accept: image/png"),
	} {
		expect.Equal(t, a.status, http.StatusBadRequest, name, "status", a.status, a.body)
	}
}

// The server reads the same values from a photo as `tessera encode`.
func TestPicturesAreTurnedAsThoseOfDataSets(t *testing.T) {
	for orientation := 1; orientation <= 8; orientation++ {
		path := fmt.Sprintf("../../data/testdata/turned%d.jpg", orientation)
		want, err := data.ReadImages(t.Context(), path, nil)
		fatal.If(t, err)
		body, err := os.ReadFile(path)
		fatal.If(t, err)
		if got, err := bufferOf(body).decodePicture(want.Shape, nil); err != nil || !sameBits(got, want.Float32()) {
			t.Errorf("orientation %d: other values: %v", orientation, err)
		}
	}
}

// Pictures of any size, depth and colour have the codes that `encode` computes of them.
func TestPicturesAreReadByTheKeysOfTheDataSet(t *testing.T) {
	photos, run := filepath.Join(t.TempDir(), "photos"), filepath.Join(t.TempDir(), "run")
	fatal.If(t, os.Mkdir(photos, 0o700))
	var paths []string
	for i := range 6 {
		var m draw.Image = image.NewNRGBA(image.Rect(0, 0, 9+i, 12-i))
		if i == 5 {
			m = image.NewNRGBA64(m.Bounds())
		}
		for j := range 60 {
			m.Set(j%9, j/9, color.NRGBA64{uint16(1000 * j), uint16(60000 - 900*j), uint16(7000 * i), uint16(65535 - 300*i)})
		}
		var b bytes.Buffer
		paths = append(paths, filepath.Join(photos, fmt.Sprintf("%d.png", i)))
		fatal.If(t, errors.Join(png.Encode(&b, m), os.WriteFile(paths[i], b.Bytes(), 0o600)))
	}
	trainRun(t, run, fmt.Sprintf(`[model.m]
dataset = { name = "images", file = %q, size = 5, channels = 3, resize = "pad", background = "black", validation = 0 }
encoder = [{ kind = "dense", units = 4 }]
`, photos))
	trained, err := tessera.Open(run, tessera.Options{})
	fatal.If(t, err)
	s, err := New([]Model{{Folder: run}}, Options{Workers: 1, MaxMemory: 1 << 16})
	fatal.If(t, err)
	defer s.Close()
	for _, path := range paths {
		rows, err := data.ReadRows(t.Context(), path, trained.Shape(), trained.Model.Dataset.Source)
		fatal.If(t, err)
		want, err := trained.Encode(rows.Float32())
		fatal.If(t, err)
		body, err := os.ReadFile(path)
		fatal.If(t, err)
		if got := post(s, "/v2/models/run/image?output=code", body).reply(t); !sameBits(got.Outputs[0].Data, want) {
			t.Errorf("%s: got %v, want %v", path, got.Outputs[0].Data, want)
		}
	}
	var large bytes.Buffer
	fatal.If(t, errors.Join(png.Encode(&large, image.NewGray(image.Rect(0, 0, 100, 100))), trained.Close()))
	expect.Equal(t, post(s, "/v2/models/run/image", large.Bytes()).status, http.StatusRequestEntityTooLarge, "more than the memory of the server")
}

func TestValuesThatJSONCannotRepresent(t *testing.T) {
	s := newServer(t, Options{})
	x := slices.Repeat([]float32{3e38}, 64)
	body, header := binaryRequest(x, `,"outputs":[{"name":"side"},{"name":"output"}]`)
	a := post(s, "/v2/models/small/infer", body, headerLength+": "+header)
	if a.status != http.StatusOK && a.status != http.StatusBadRequest {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	l, b := &loaded{version: "1"}, bufferOf(nil)
	q := &request{count: 1, wanted: []wanted{{&output{name: "code", quoted: []byte(`"code"`)}, false}}}
	b.values = [][]float32{{x[0] * 10}}
	if _, err := b.encode("m", l, q); err == nil || statusOf(err) != http.StatusBadRequest {
		t.Errorf("got %v", err)
	}
	q.wanted[0].binary = true
	expect.NoError(t, expect.Err(b.encode("m", l, q)))
}

func TestAPanicGivesMemoryBack(t *testing.T) {
	s := newServer(t, Options{})
	r := httptest.NewRequest(http.MethodPost, "/v2/models/small/infer", nil)
	r.SetPathValue("model", "small")
	func() {
		defer func() { _ = recover() }()
		s.answer(func(b *buffer, _ http.ResponseWriter, _ *http.Request, _ *loaded) (_ *request, err error) {
			if b.body, err = room(b, b.body, 1000); err != nil || s.memory.Load() < 1000 {
				t.Errorf("%d bytes are held, %v", s.memory.Load(), err)
			}
			panic("a fault")
		})(httptest.NewRecorder(), r)
	}()
	expect.Equal(t, s.memory.Load(), 0, "bytes are held")
}
