package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// body returns a request for one image of the small run, after replacements.
func body(replace ...string) []byte {
	return []byte(strings.NewReplacer(replace...).Replace(string(jsonRequest(images(1, 1), ""))))
}

func TestErrorsAreObjectsWithTheRightStatus(t *testing.T) {
	s := newServer(t, Options{MaxImages: 4, Queue: 8, MaxBody: 1 << 16})
	nan, header := binaryRequest([]float32(images(1, 1)), "")
	copy(nan[len(nan)-4:], []byte{0, 0, 0xc0, 0x7f})
	for _, c := range []struct {
		name, path string
		body       []byte
		headers    string
		status     int
		says       string
	}{
		{"empty", "small/infer", nil, "", 400, "the end of the text"},
		{"garbage", "small/infer", []byte("\x00\xff{]"), "", 400, "JSON"},
		{"no object", "small/infer", []byte("[]"), "", 400, "'{'"},
		{"null", "small/infer", []byte("null"), "", 400, "want one input"},
		{"two documents", "small/infer", append(body(), '1'), "", 400, "want the end of the text"},
		{"unknown model", "nope/infer", body(), "", 404, `model: got "nope", want one of "small"`},
		{"unknown version", "small/versions/7/infer", body(), "", 404, `version: got "7"`},
		{"another input", "small/infer", body(`"input"`, `"pixels"`), "", 400, `got "pixels", want one input, "input"`},
		{"two inputs", "small/infer", body(`"inputs":[`, `"inputs":[{"name":"input"},`), "", 400, "want one input"},
		{"another type", "small/infer", body("FP32", "INT64"), "", 400, `datatype: got "INT64"`},
		{"no type", "small/infer", body(`"datatype":"FP32",`, ""), "", 400, `datatype: got ""`},
		{"another shape", "small/infer", body("[1,8,8]", "[1,8,9]"), "", 400, "shape: got [1 8 9], want [n 8 8] or [n 64]"},
		{"no batch", "small/infer", body("[1,8,8]", "[8,8]"), "", 400, "shape: got [8 8]"},
		{"no images", "small/infer", body("[1,8,8]", "[0,8,8]"), "", 400, "shape: got [0 8 8]"},
		{"a huge shape", "small/infer", body("[1,8,8]", "[4611686018427387904,8,8]"), "", 400, "an integer from 0 to 2^53"},
		{"a negative shape", "small/infer", body("[1,8,8]", "[-1,8,8]"), "", 400, "an integer"},
		{"fewer values", "small/infer", body("[1,8,8]", "[2,8,8]"), "", 400, "got 64 values, want 128"},
		{"no data", "small/infer", body(`"data"`, `"date"`), "", 400, "got no data"},
		{"null data", "small/infer", []byte(`{"inputs":[{"name":"input","shape":[1,64],"datatype":"FP32","data":null}]}`), "", 400, "got no data"},
		{"text in data", "small/infer", body(`"data":[`, `"data":["a",`), "", 400, "want a number"},
		{"NaN in JSON", "small/infer", body(`"data":[`, `"data":[NaN,`), "", 400, "want a number"},
		{"beyond FP32", "small/infer", body(`"data":[`, `"data":[1e39,`), "", 400, "range of FP32"},
		{"different depths", "small/infer", body(`"data":[`, `"data":[1,[2],`), "", 400, "a number"},
		{"half a pixel", "small/infer", body("FP32", "UINT8"), "", 400, "from 0 to 255 for UINT8"},
		{"NaN in binary", "small/infer", nan, header, 400, "value 63: got NaN, want a finite number"},
		{"many images", "small/infer", jsonRequest(images(5, 1), ""), "", 413, "got more than 256 values"},
		{"a large body", "small/infer", make([]byte, 1<<16+1), "", 413, "want at most 65536"},
		{"another output", "small/infer", jsonRequest(images(1, 1), `,"outputs":[{"name":"logits"}]`), "", 400, `got "logits", want one of "code", "output", "side"`},
		{"an output twice", "small/infer", jsonRequest(images(1, 1), `,"outputs":[{"name":"code"},{"name":"code"}]`), "", 400, "twice"},
		{"classification", "small/infer", jsonRequest(images(1, 1), `,"outputs":[{"name":"code","parameters":{"classification":2}}]`), "", 400, "not supported"},
		{"long header", "small/infer", body(), "100000", 400, headerLength},
		{"negative header", "small/infer", body(), "-1", 400, headerLength},
		{"short header", "small/infer", body(), "20", 400, "want a string that ends"},
		{"bytes too many", "small/infer", append(body(), 1), itoa(len(body())), 400, "got 1 bytes of binary data"},
		{"raw bytes", "small/infer", make([]byte, 255), "0", 400, "got 255 bytes, want a multiple of the 256"},
		{"raw images", "small/infer", make([]byte, 256*5), "0", 413, "want at most 4"},
		{"no picture", "small/image", []byte("GIF89a"), "", 415, "no PNG, JPEG, GIF, BMP, TIFF or WebP image"},
		{"another output of a picture", "small/image?output=x", nil, "", 400, `got "x"`},
	} {
		headers := []string{}
		if c.headers != "" {
			headers = append(headers, headerLength+": "+c.headers)
		}
		a := post(s, "/v2/models/"+c.path, c.body, headers...)
		var e struct{ Error string }
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != c.status || !strings.Contains(e.Error, c.says) || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d, want %d: %s (want %q)", c.name, a.status, c.status, a.body, c.says)
		}
	}
	expect.Equal(t, s.memory.Load(), 0, "bytes of bodies are held")
}

func TestOtherPathsMethodsAndEncodingsAreErrors(t *testing.T) {
	s := newServer(t, Options{})
	for _, c := range []struct {
		method, path, header string
		status               int
	}{
		{"GET", "/v1/models/small", "", 404}, {"GET", "/v2/models/nope", "", 404}, {"GET", "/v2/models/nope/ready", "", 404},
		{"GET", "/v2/models/small/infer", "", 405}, {"DELETE", "/v2/models/small", "", 405}, {"POST", "/v2", "", 405}, {"GET", "/debug/pprof/", "", 404},
		{"POST", "/v2/models/small/infer", "Content-Encoding: gzip", 415}, {"POST", "/v2/models/small/infer", "Content-Encoding: identity", 400},
	} {
		a := send(s, c.method, c.path, nil, c.header)
		var e struct{ Error string }
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != c.status || e.Error == "" {
			t.Errorf("%s %s: status %d: %s, want %d", c.method, c.path, a.status, a.body, c.status)
		}
	}
	expect.Equal(t, send(newServer(t, Options{Profile: true}), "GET", "/debug/pprof/", nil).status, http.StatusOK, "profiles: status")
}

func TestTheDocumentDescribesEveryPath(t *testing.T) {
	var document struct {
		Paths map[string]map[string]any
	}
	fatal.If(t, json.Unmarshal(openAPI, &document))
	s := newServer(t, Options{})
	expect.Equal(t, len(document.Paths), 19, "paths")
	for path, item := range document.Paths {
		at := strings.NewReplacer("{model}", "small", "{version}", s.models[0].current.version).Replace(path)
		for _, method := range []string{"get", "post"} {
			a := send(s, strings.ToUpper(method), at, nil)
			if _, described := item[method]; described == (a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotFound) {
				t.Errorf("%s %s: described: %v, status %d", method, path, described, a.status)
			}
		}
	}
	text := string(openAPI)
	for rest := text; ; {
		_, after, found := strings.Cut(rest, `"$ref": "#/components/`)
		if !found {
			break
		}
		ref, after, _ := strings.Cut(after, `"`)
		_, name, _ := strings.Cut(ref, "/")
		expect.Contains(t, text, fmt.Sprintf("%q: {", name), ref, "is not defined")
		rest = after
	}
}
