package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// appendResponse appends an inference response: its JSON, of header bytes, then the binary data. It is an error if a value that
// is not finite would have to be JSON.
func appendResponse(dst []byte, name string, l *loaded, r *request, values [][]float32) (body []byte, header int, err error) {
	begin := len(dst)
	dst = append(dst, `{"model_name":"`...)
	dst = append(dst, name...) // letters, digits and ._-
	dst = append(dst, `","model_version":"`...)
	dst = append(dst, l.version...)
	dst = append(dst, '"')
	if r.hasID {
		id, err := json.Marshal(r.id)
		if err != nil {
			return dst, 0, err
		}
		dst = append(append(dst, `,"id":`...), id...)
	}
	dst = append(dst, `,"outputs":[`...)
	for i, w := range r.wanted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.output.appendHeader(dst, r.count)
		if w.binary {
			dst = append(dst, `,"parameters":{"binary_data_size":`...)
			dst = strconv.AppendInt(dst, int64(4*len(values[i])), 10)
			dst = append(dst, '}', '}')
			continue
		}
		if err := finite(values[i]); err != nil {
			return dst, 0, fmt.Errorf("output %q: %w, which JSON cannot represent; ask for binary data", w.output.name, err)
		}
		dst = appendNumbers(append(dst, `,"data":`...), values[i])
		dst = append(dst, '}')
	}
	dst = append(dst, ']', '}')
	header = len(dst) - begin
	for i, w := range r.wanted {
		if w.binary {
			dst = appendBinary(dst, values[i])
		}
	}
	return dst, header, nil
}

// appendNumbers appends an array.
func appendNumbers(dst []byte, values []float32) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumber(dst, v)
	}
	return append(dst, ']')
}

// appendHeader appends name, data type and shape of an output of n images.
func (o *output) appendHeader(dst []byte, n int) []byte {
	dst = append(append(dst, `{"name":`...), o.quoted...)
	dst = append(dst, `,"datatype":"FP32","shape":[`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	for _, d := range o.shape {
		dst = strconv.AppendInt(append(dst, ','), int64(d), 10)
	}
	return append(dst, ']')
}

// headerLength is the header that gives the length of the JSON before binary data.
const headerLength = "Inference-Header-Content-Length"

// The types of inference responses; no handler changes them.
var (
	typeBinary = []string{"application/octet-stream"}
	typeJSON   = []string{"application/json"}
)

// writeResponse answers with an inference response. With binary data the type of the body is application/octet-stream.
func writeResponse(w http.ResponseWriter, body []byte, header int) {
	h := w.Header()
	if header < len(body) {
		h["Content-Type"] = typeBinary
		h.Set(headerLength, strconv.Itoa(header))
	} else {
		h["Content-Type"] = typeJSON
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // fails where the client is gone
}
