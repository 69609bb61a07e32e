package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
)

// nested reads the data of a tensor into the images of a buffer. The data are a flat array, or arrays that are nested by
// dimension.
type nested struct {
	buffer   *buffer
	from, to int   // range of its values in the buffer
	dims     []int // dimensions of the arrays read so far
	leaf     int   // depth of the numbers, plus one; 0 before the first number
	most     int   // maximum number of values in the buffer
	text     textReader
	texts    bool                   // the elements are texts, of each of which the values of its sample are read
	beside   []map[string][]float32 // the other columns of each text
	named    bool                   // they may be names of classes
	classes  []string
	holed    bool // null is a missing value
	places   map[string]int
	entries  bool // the elements are the entries of rows, by the names of their columns
}

// values returns all numbers in the buffer, including those of the previous inputs.
func (t *nested) values() []float32 { return t.buffer.images }

// read reads the array at the cursor, which is inside `depth` other arrays.
func (t *nested) read(c *cursor, depth int) error {
	if err := c.take('['); err != nil {
		return err
	}
	if depth == deepest {
		return fmt.Errorf("data: got more than %d dimensions", deepest)
	}
	begin, n, inner := len(t.values()), 0, c.next() == '['
	switch {
	case c.next() == ']':
		c.i++
	case inner:
		for more := true; more; n++ {
			err := t.read(c, depth+1)
			if err == nil {
				more, err = c.more(']')
			}
			if err != nil {
				return err
			}
		}
	case (t.text != nil || t.named) && c.ofTexts():
		t.texts = true
		if err := t.strings(c); err != nil {
			return err
		}
		n = len(t.values()) - begin
	case t.places != nil && depth == 0 && c.next() == '{':
		t.entries = true
		if err := t.rows(c); err != nil {
			return err
		}
		n = len(t.values()) - begin
	default:
		if err := t.numbers(c); err != nil {
			return err
		}
		n = len(t.values()) - begin
	}
	if !inner && t.leaf != 0 && t.leaf != depth+1 {
		return errors.New("data: numbers are nested at different depths")
	}
	if !inner {
		t.leaf = depth + 1
	}
	for len(t.dims) <= depth {
		t.dims = append(t.dims, -1)
	}
	if was := t.dims[depth]; was >= 0 && was != n {
		return fmt.Errorf("data: nested arrays have different lengths (got %d after %d)", n, was)
	}
	t.dims[depth] = n
	return nil
}

// next appends the values of a further element, which are 0.
func (t *nested) next(size int, what string) ([]float32, error) {
	values := t.values()
	n := len(values) + size
	if n > t.most {
		return nil, problemf(http.StatusRequestEntityTooLarge, "data: got more than %d %s; send fewer in one request", (t.most-t.from)/size, what)
	}
	var err error
	if n > cap(values) {
		if values, err = room(t.buffer, values, min(max(2*cap(values), n), t.most)); err != nil {
			return nil, err
		}
	}
	t.buffer.images = values[:n]
	clear(t.buffer.images[n-size:])
	return t.buffer.images[n-size:], nil
}

// rows reads the elements of an array of rows of a sparse matrix, {"column": value, ...}: other entries are 0.
func (t *nested) rows(c *cursor) error {
	seen, size := map[int]bool{}, len(t.places)
	for more, row := true, 0; more; row++ {
		if c.next() != '{' {
			return c.bad("'{'")
		}
		values, err := t.next(size, "rows")
		if err != nil {
			return err
		}
		clear(seen)
		err = c.object(func(name string) (err error) {
			i, found := t.places[name]
			switch {
			case !found:
				return fmt.Errorf("data: row %d: got the column %q, which is none of the %d of the training", row, cut(name), size)
			case seen[i]:
				return fmt.Errorf("data: row %d: got the column %q twice", row, cut(name))
			}
			seen[i] = true
			c.next()
			if values[i], err = c.number(); err != nil {
				err = fmt.Errorf("data: row %d, column %q: %w", row, cut(name), err)
			}
			return err
		})
		if err == nil {
			more, err = c.more(']')
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// strings reads the elements of an array of texts.
func (t *nested) strings(c *cursor) error {
	for more := true; more; {
		c.next()
		begin := c.i
		err := c.skip()
		if err != nil {
			return err
		}
		var text string // null is none
		if json.Unmarshal(c.b[begin:c.i], &text) != nil {
			return errors.New("data: got another value among texts, want strings")
		}
		row := []float32{0}
		if t.text == nil { // the column may follow its data
			t.classes = append(t.classes, text)
			if t.buffer.exact {
				err = t.buffer.keep([]byte("0"))
			}
		} else {
			var columns map[string][]float32
			if row, columns, err = t.text(text); err != nil {
				err = fmt.Errorf("data: %w", err)
			}
			t.beside = append(t.beside, columns)
		}
		if err != nil {
			return err
		}
		values, err := t.next(len(row), "texts")
		if err != nil {
			return err
		}
		copy(values, row)
		if more, err = c.more(']'); err != nil {
			return err
		}
	}
	return nil
}

// numbers reads the elements of an array of numbers. Most of the time for reading a request is spent here.
func (t *nested) numbers(c *cursor) error {
	values := t.values()
	for {
		v, end := decimal(c.b, c.i)
		if end > 0 && !t.buffer.exact {
			c.i = end
		} else {
			c.next()
			begin := c.i
			var err error
			if (t.holed || t.named) && c.null() {
				v = float32(math.NaN())
			} else {
				v, err = c.number()
			}
			if err == nil && t.buffer.exact {
				err = t.buffer.keep(c.b[begin:c.i])
			}
			if err != nil {
				return err
			}
		}
		if len(values) == cap(values) || len(values) >= t.most {
			if len(values) >= t.most {
				return problemf(http.StatusRequestEntityTooLarge, "data: got more than %d values; send fewer images in one request", t.most-t.from)
			}
			var err error
			if values, err = room(t.buffer, values, min(max(2*len(values), 1024), t.most)); err != nil {
				return err
			}
		}
		values = append(values, v)
		b := byte(0)
		if c.i < len(c.b) {
			b = c.b[c.i]
		}
		if b == ',' {
			c.i++
			continue
		}
		more, err := c.more(']')
		if err != nil {
			return err
		}
		if !more {
			t.buffer.images = values
			return nil
		}
	}
}
