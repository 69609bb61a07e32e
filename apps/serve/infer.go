package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"tessera"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/vectors"
	"tessera/losses"
)

// buffer is the memory of a request. Requests take a buffer from a pool and return it. The size of the buffer counts towards
// MaxMemory.
type buffer struct {
	server   *Server
	held     int64 // size in bytes when it was last counted
	draft    draft
	body     []byte
	images   []float32   // values of all inputs
	exact    bool        // the values are also kept in float64
	wide     []float64   // values of all inputs, if exact is set
	joined   [][]float32 // rows for outputs that are computed from several inputs
	jobs     []*job
	values   [][]float32           // values of the outputs
	classes  []*tessera.Prediction // predictions of the outputs; nil for outputs that do not belong to a head of classes
	response []byte
	lent     bool // a worker may still use the memory
}

var buffers = sync.Pool{New: func() any { return &buffer{} }}

// mostPooled is the maximum size in bytes of a slice that remains in a pooled buffer.
const mostPooled = 1 << 20

func (s *Server) borrow() *buffer {
	b := buffers.Get().(*buffer)
	b.server, b.held = s, 0
	b.count(b.size())
	return b
}

// giveBack returns a buffer to the pool, unless a worker may still use it.
func (b *buffer) giveBack() {
	b.trim(mostPooled)
	b.count(-b.held)
	if cap(b.response) > mostPooled {
		b.response = nil
	}
	if b.server = nil; !b.lent {
		buffers.Put(b)
	}
}

// count adds a number of bytes to the size of the buffer, and returns the sum over all requests.
func (b *buffer) count(bytes int64) int64 {
	b.held += bytes
	return b.server.memory.Add(bytes)
}

func (b *buffer) size() int64 {
	n := cap(b.body) + cap(b.response) + 4*cap(b.images) + 8*cap(b.wide)
	for _, j := range b.jobs {
		n += 4 * cap(j.results)
	}
	for _, rows := range b.joined {
		n += 4 * cap(rows)
	}
	return int64(n)
}

// trim frees the slices of a request that are larger than the given number of bytes, except for its response.
func (b *buffer) trim(most int) {
	if b.lent {
		return
	}
	if cap(b.body) > most {
		b.body = nil
	}
	if 4*cap(b.images) > most {
		b.images = nil
	}
	if 8*cap(b.wide) > most {
		b.wide = nil
	}
	for _, j := range b.jobs {
		if 4*cap(j.results) > most {
			j.results = nil
		}
	}
	for i, rows := range b.joined {
		if 4*cap(rows) > most {
			b.joined[i] = nil
		}
	}
	clear(b.draft.sent)
	clear(b.values)
	clear(b.classes)
	b.count(b.size() - b.held)
}

// room returns the slice s of the buffer with a capacity of at least n elements. The additional bytes are counted before they
// are allocated. It returns an error if the memory of all requests would then exceed MaxMemory.
func room[T byte | float32 | float64](b *buffer, s []T, n int) ([]T, error) {
	if n <= cap(s) {
		return s, nil
	}
	width := int64(unsafe.Sizeof(*new(T)))
	if b.count(width*int64(n)) > b.server.options.MaxMemory {
		return s, problemf(http.StatusTooManyRequests, "the server holds too many large requests; try again later")
	}
	grown := append(make([]T, 0, n), s...)
	b.count(-width * int64(cap(s)))
	return grown, nil
}

// infer reads an inference request of the protocol.
func (s *Server) infer(b *buffer, w http.ResponseWriter, r *http.Request, l *loaded) (*request, error) {
	if err := b.read(w, r); err != nil {
		return nil, err
	}
	length := r.Header.Get(headerLength)
	if length == "0" {
		return b.raw(l, s.options.MaxImages)
	}
	header := len(b.body)
	if length != "" {
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(b.body) {
			return nil, fmt.Errorf("%s: got %q, want an integer from 0 to the %d bytes of the body", headerLength, cut(length), len(b.body))
		}
		header = n
	}
	return b.decode(header, l, s.options.MaxImages)
}

// errNoPixels is the error for pixels that are sent to a model without values in [0,1].
var errNoPixels = errors.New("the model was trained on values outside of [0,1], which no pixels are; send FP32 to infer")

// picture reads a request that is a PNG, JPEG, GIF, BMP, TIFF or WebP file. The query output=NAME, which may be repeated, selects outputs. A client that accepts
// image/png gets one output that is an image as PNG.
func (s *Server) picture(b *buffer, w http.ResponseWriter, r *http.Request, l *loaded) (*request, error) {
	if !l.pictures {
		return nil, fmt.Errorf("picture: %w", errNoPixels)
	}
	in := l.input(inputName)
	if in == nil {
		return nil, fmt.Errorf("picture: the model has no input %q; send %s to infer", inputName, l.wantedInputs())
	}
	q := &request{count: 1, sent: []sent{{feature: in}}, png: strings.Contains(r.Header.Get("Accept"), "image/png")}
	names := r.URL.Query()["output"]
	if len(names) == 0 && q.png {
		names = []string{losses.Output}
	} else if len(names) == 0 {
		if err := q.addAll(l, false); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := q.add(l, name, false); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
	}
	if q.png && (len(names) != 1 || !slices.Equal(q.wanted[0].output.shape, l.shape)) {
		return nil, fmt.Errorf("output: got %q, want one that is an image, for image/png; accept application/json for others", cut(strings.Join(names, " ")))
	}
	err := b.read(w, r)
	if err == nil {
		q.sent[0].values, err = b.decodePicture(l.shape, l.source)
	}
	if err == nil {
		err = in.accepts(q.sent[0].values)
		q.unlike(l, q.sent[0].values)
	}
	if err == nil && l.shift != nil {
		l.shift.Centre(q.sent[0].values, vectors.Wide(q.sent[0].values))
	}
	return q, err
}

// decodePicture decodes the body, a picture, as the data set of the model reads one.
func (b *buffer) decodePicture(shape []int, source data.Source) ([]float32, error) {
	if len(shape) < 2 {
		return nil, errors.New("picture: the samples of the model are vectors; send them to infer")
	}
	decoding := int64(0)
	pixels, err := data.DecodePicture(b.body, shape, source, func(bytes int64) error {
		most := b.server.options.MaxMemory
		if bytes > most {
			return problemf(http.StatusRequestEntityTooLarge, "picture: decoding it takes %d bytes, the server has %d (--max-memory); send a smaller one", bytes, most)
		}
		if decoding = bytes; b.count(bytes) > most {
			return problemf(http.StatusTooManyRequests, "the server holds too many large requests; try again later")
		}
		return nil
	})
	b.count(-decoding)
	if errors.Is(err, data.ErrNoPicture) {
		return nil, problemf(http.StatusUnsupportedMediaType, "%v", err)
	} else if err != nil {
		return nil, err
	}
	if b.images, err = room(b, b.images[:0], len(pixels)); err != nil {
		return nil, err
	}
	b.images = append(b.images, pixels...)
	return b.images, nil
}

// answer returns a handler for inference requests. The function ask reads the request; the handler computes and writes the
// outputs.
func (s *Server) answer(ask func(*buffer, http.ResponseWriter, *http.Request, *loaded) (*request, error)) http.HandlerFunc {
	return s.found(func(w http.ResponseWriter, r *http.Request, m *model, l *loaded) {
		began := time.Now()
		b := s.borrow()
		defer b.giveBack()
		b.lent = true // a panic leaves it set: workers may then still use the memory
		q, err := ask(b, w, r, l)
		if q != nil && len(q.warnings) > 0 {
			l.log(q.warnings[0])
		}
		if err == nil {
			err = b.compute(r.Context(), q, began)
		} else {
			b.lent = false
		}
		if err == nil {
			err = b.reply(w, m.name, l, q)
		}
		status, count := http.StatusOK, 0
		if err != nil {
			b.trim(0)
			status = fail(w, err)
		} else {
			count = q.count
		}
		m.stats.answered(status, count, began)
		s.answers.Add(1)
	})
}

// find returns the model of a request. The caller releases it.
func (s *Server) find(r *http.Request) (*model, *loaded, error) {
	name := r.PathValue("model")
	m := s.byName[name]
	if m == nil {
		return nil, nil, problemf(http.StatusNotFound, "model: got %q, want one of %s", cut(name), table.Quoted(s.Models()))
	}
	l := m.acquire()
	if l == nil {
		return nil, nil, problemf(http.StatusServiceUnavailable, "model %q: the server is closed", name)
	}
	if version := r.PathValue("version"); version != "" && version != l.version {
		l.release()
		return nil, nil, problemf(http.StatusNotFound, "model %q: version: got %q, want %q", name, cut(version), l.version)
	}
	return m, l, nil
}

// read reads the body of a request. Memory is allocated as bytes arrive: a large length in the header alone costs nothing.
func (b *buffer) read(w http.ResponseWriter, r *http.Request) (err error) {
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return problemf(http.StatusUnsupportedMediaType, "content encoding: got %q, want none", cut(e))
	}
	most := b.server.options.MaxBody
	if r.ContentLength > most {
		return problemf(http.StatusRequestEntityTooLarge, "body: got %d bytes, want at most %d", r.ContentLength, most)
	}
	const first = 64 << 10
	if b.body, err = room(b, b.body[:0], int(min(max(r.ContentLength, 512), first))); err != nil {
		return err
	}
	body := r.Body
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(w, r.Body, most)
	}
	for int64(len(b.body)) != r.ContentLength {
		if len(b.body) == cap(b.body) {
			size := min(2*int64(cap(b.body)), most+1)
			if r.ContentLength > 0 {
				size = min(size, r.ContentLength)
			}
			if b.body, err = room(b, b.body, int(size)); err != nil {
				return err
			}
		}
		n, err := body.Read(b.body[len(b.body):cap(b.body)])
		b.body = b.body[:len(b.body)+n]
		long := (*http.MaxBytesError)(nil)
		switch {
		case err == io.EOF:
			return nil
		case errors.As(err, &long):
			return problemf(http.StatusRequestEntityTooLarge, "body: got more than %d bytes", most)
		case err != nil:
			return fmt.Errorf("body: %w", err)
		case r.ContentLength >= 0 && int64(len(b.body)) > r.ContentLength:
			return errors.New("body: got more bytes than Content-Length")
		}
	}
	return nil
}

// compute computes the outputs of a request. If the client disconnects, a worker may still use the memory of the request: the
// buffer then remains lent.
func (b *buffer) compute(ctx context.Context, q *request, began time.Time) (err error) {
	for len(b.jobs) < len(q.wanted) {
		b.jobs = append(b.jobs, &job{done: make(chan struct{}, 1)})
	}
	submitted, until := 0, time.Now().Add(b.server.options.Timeout)
	for i, want := range q.wanted {
		j, batch := b.jobs[i], want.output.batch
		if j.results, err = room(b, j.results[:0], q.count*batch.out); err != nil {
			break
		}
		var rows []float32
		if rows, err = b.rows(q, want.output, i); err != nil {
			break
		}
		j.ctx, j.images, j.count, j.began, j.until = ctx, rows, q.count, began, until
		submit := batch.submit
		if i == len(q.wanted)-1 {
			submit = batch.lead // the last output: computed in this goroutine, while workers compute the previous ones
		}
		if err = submit(j); err != nil {
			break
		}
		submitted++
	}
	b.values, b.classes = b.values[:0], b.classes[:0]
	for i, j := range b.jobs[:submitted] {
		values, failed := j.result()
		err = cmp.Or(err, failed)
		if failed != nil && ctx.Err() != nil {
			return err
		}
		var classes *tessera.Prediction
		if predict := q.wanted[i].output.predict; predict != nil && failed == nil {
			b.count(4 * int64(len(values))) // until trim counts again
			if classes, failed = predict(values, q.count); failed != nil {
				err = cmp.Or(err, failed)
			} else {
				values = classes.Probabilities
			}
		}
		b.values, b.classes = append(b.values, values), append(b.classes, classes)
	}
	b.lent = false
	return err
}

// reply writes the response. It first frees the other memory of the request, because a client may take long to read.
func (b *buffer) reply(w http.ResponseWriter, name string, l *loaded, q *request) error {
	header, h := 0, w.Header()
	if q.png {
		var out bytes.Buffer
		if err := data.WritePNG(&out, l.shape, b.values[0]); err != nil {
			return err
		}
		b.response = out.Bytes()
		h.Set("Content-Type", "image/png")
	} else {
		var err error
		if header, err = b.encode(name, l, q); err != nil {
			return err
		}
		if header < len(b.response) {
			h["Content-Type"] = binaryType
			h.Set(headerLength, strconv.Itoa(header))
		} else {
			h["Content-Type"] = jsonType
		}
	}
	b.trim(mostPooled)
	h.Set("Content-Length", strconv.Itoa(len(b.response)))
	_, _ = w.Write(b.response) // fails if the client is gone
	return nil
}

// headerLength is the name of the HTTP header with the length of the JSON that precedes binary data.
const headerLength = "Inference-Header-Content-Length"

// The content types of inference responses, as header values. All handlers share them, and none changes them.
var (
	binaryType = []string{"application/octet-stream"}
	jsonType   = []string{"application/json"}
)

// encode writes the response to the buffer: header bytes of JSON, then the binary data. It returns an error if a value for the
// JSON is not finite.
func (b *buffer) encode(name string, l *loaded, q *request) (header int, err error) {
	dst := append(b.response[:0], `{"model_name":"`...)
	dst = append(dst, name...) // letters, digits and ._-
	dst = append(append(append(dst, `","model_version":"`...), l.version...), '"')
	if q.hasID {
		id, err := json.Marshal(q.id)
		if err != nil {
			return 0, err
		}
		dst = append(append(dst, `,"id":`...), id...)
	}
	if len(q.warnings) > 0 {
		warning, err := json.Marshal(strings.Join(q.warnings, "; "))
		if err != nil {
			return 0, err
		}
		dst = append(append(append(dst, `,"parameters":{"warning":`...), warning...), '}')
	}
	dst = append(dst, `,"outputs":[`...)
	size := 0 // of the binary data
	for i, w := range q.wanted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.output.appendHeader(dst, q.count)
		if w.binary {
			n := 4 * len(b.values[i])
			if w.output.datatype == typeBytes {
				n = 0
				for _, label := range b.classes[i].Labels {
					n += len(w.output.binary[label])
				}
			}
			dst = strconv.AppendInt(append(dst, `,"parameters":{"binary_data_size":`...), int64(n), 10)
			dst = append(dst, '}', '}')
			size += n
			continue
		}
		dst = append(dst, `,"data":[`...)
		if w.output.datatype == typeBytes {
			for _, label := range b.classes[i].Labels {
				dst = append(append(dst, w.output.labels[label]...), ',')
			}
			dst[len(dst)-1] = ']'
		} else if dst, err = b.appendNumbers(dst, b.values[i]); err != nil {
			return 0, fmt.Errorf("output %q: %w", w.output.name, err)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, ']', '}')
	header = len(dst)
	if dst, err = room(b, dst, header+size); err != nil {
		return 0, err
	}
	for i, w := range q.wanted {
		switch {
		case !w.binary:
		case w.output.datatype == typeBytes:
			for _, label := range b.classes[i].Labels {
				dst = append(dst, w.output.binary[label]...)
			}
		default:
			dst = appendBinary(dst, b.values[i])
		}
	}
	b.response = dst
	return header, nil
}

// appendHeader appends the name, the data type and the shape of an output of n images.
func (o *output) appendHeader(dst []byte, n int) []byte {
	dst = append(append(dst, `{"name":`...), o.quoted...)
	dst = append(append(append(dst, `,"datatype":"`...), o.datatype...), `","shape":[`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	for _, d := range o.shape {
		dst = strconv.AppendInt(append(dst, ','), int64(d), 10)
	}
	return append(dst, ']')
}

// mostDigits is the maximum length of a float32 as text, with its comma.
const mostDigits = 24

// appendNumbers appends the elements of an array and the closing bracket.
func (b *buffer) appendNumbers(dst []byte, values []float32) (_ []byte, err error) {
	if err := finite(values); err != nil {
		return dst, fmt.Errorf("%w, which JSON cannot represent; ask for binary data", err)
	}
	for i, v := range values {
		if cap(dst)-len(dst) < mostDigits {
			if dst, err = room(b, dst, len(dst)+len(dst)/4+12*(len(values)-i)+mostDigits); err != nil {
				return dst, err
			}
		}
		dst = append(appendNumber(dst, v), ',')
	}
	dst[len(dst)-1] = ']'
	return dst, nil
}

// appendBinary appends values as little-endian FP32.
func appendBinary(dst []byte, values []float32) []byte {
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}
