package serve

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tessera/data"
	"tessera/losses"
)

// image answers a PNG, JPEG, GIF or BMP with the outputs of the model: as JSON, or one that is an image as PNG where the client accepts
// image/png. The query output=NAME, which may be repeated, selects outputs.
func (s *Server) image(w http.ResponseWriter, r *http.Request) {
	asPNG := strings.Contains(r.Header.Get("Accept"), "image/png")
	s.answer(w, r, func(b *buffer, m *model, l *loaded) (*request, error) {
		q, err := chosen(r, l, asPNG)
		if err != nil {
			return nil, err
		}
		if err := s.read(w, r, b); err != nil {
			return nil, err
		}
		q.images, err = decodePicture(b.images[:0], b.body, l.shape)
		return q, err
	}, func(b *buffer, m *model, l *loaded, q *request) error {
		if asPNG {
			return writePicture(w, l.shape, b.values[0])
		}
		body, header, err := appendResponse(b.response[:0], m.name, l, q, b.values)
		b.response = body
		if err == nil {
			writeResponse(w, body, header)
		}
		return err
	})
}

// errNoPixels refuses pixels for a model to which values of 0 to 1 mean something else.
var errNoPixels = errors.New("the model was trained on values outside of [0,1], which no pixels are; send FP32 to infer")

// chosen returns the request for one image and the outputs that the query selects.
func chosen(r *http.Request, l *loaded, asPNG bool) (*request, error) {
	if !l.pictures {
		return nil, fmt.Errorf("picture: %w", errNoPixels)
	}
	q := &request{count: 1}
	names := r.URL.Query()["output"]
	if len(names) == 0 && asPNG {
		names = []string{losses.Output}
	} else if len(names) == 0 {
		names = l.names()
	}
	for _, name := range names {
		o := l.output(name)
		if o == nil {
			return nil, fmt.Errorf("output: got %q, want one of %q", name, l.names())
		}
		if slices.ContainsFunc(q.wanted, func(w wanted) bool { return w.output == o }) {
			return nil, fmt.Errorf("output: got %q twice", name)
		}
		q.wanted = append(q.wanted, wanted{o, false})
	}
	if asPNG && (len(names) != 1 || !slices.Equal(q.wanted[0].output.shape, l.shape)) {
		return nil, fmt.Errorf("output: got %q, want one that is an image, for image/png; accept application/json for others", names)
	}
	return q, nil
}

// decodePicture decodes a picture of that shape.
func decodePicture(dst []float32, body []byte, shape []int) ([]float32, error) {
	if len(shape) < 2 {
		return nil, errors.New("picture: the samples of the model are vectors; send them to infer")
	}
	pixels, err := data.DecodePicture(body, shape)
	if errors.Is(err, data.ErrNoPicture) {
		return nil, problemf(http.StatusUnsupportedMediaType, "%v", err)
	} else if err != nil {
		return nil, err
	}
	return fromBinary(dst, pixels, typeUINT8), nil
}

// writePicture answers with a PNG.
func writePicture(w http.ResponseWriter, shape []int, values []float32) error {
	var out bytes.Buffer
	if err := data.WritePNG(&out, shape, values); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "image/png")
	w.Header().Set("Content-Length", strconv.Itoa(out.Len()))
	_, _ = w.Write(out.Bytes()) // fails where the client is gone
	return nil
}
