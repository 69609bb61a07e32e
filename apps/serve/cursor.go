package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// cursor reads JSON from a slice. It accepts what encoding/json accepts; the fuzz tests compare the two. encoding/json itself
// takes longer to read the numbers of an image than the engine takes to encode it.
type cursor struct {
	b []byte
	i int
}

// next skips white space and returns the next byte, 0 at the end.
func (c *cursor) next() byte {
	for c.i < len(c.b) {
		switch b := c.b[c.i]; b {
		case ' ', '\t', '\r', '\n':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// bad is a syntax error at the cursor.
func (c *cursor) bad(want string) error {
	if c.i >= len(c.b) {
		return fmt.Errorf("JSON: got the end of the text, want %s", want)
	}
	r, _ := utf8.DecodeRune(c.b[c.i:])
	return fmt.Errorf("JSON: byte %d: got %q, want %s", c.i, r, want)
}

// take reads one byte of punctuation.
func (c *cursor) take(b byte) error {
	if c.next() != b {
		return c.bad(fmt.Sprintf("%q", b))
	}
	c.i++
	return nil
}

// end returns an error unless only white space is left.
func (c *cursor) end() error {
	if c.next(); c.i < len(c.b) {
		return c.bad("the end of the text")
	}
	return nil
}

// null reads a null, if the next value is one.
func (c *cursor) null() bool {
	if c.next(); !bytes.HasPrefix(c.b[c.i:], []byte("null")) {
		return false
	}
	c.i += 4
	return true
}

// object reads an object: member reads the value of each key. null is an object without members.
func (c *cursor) object(member func(key string) error) error {
	if c.null() {
		return nil
	}
	if err := c.take('{'); err != nil {
		return err
	}
	if c.next() == '}' {
		c.i++
		return nil
	}
	for {
		key, err := c.text()
		if err != nil {
			return err
		}
		if err := c.take(':'); err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		switch c.next() {
		case ',':
			c.i++
		case '}':
			c.i++
			return nil
		default:
			return c.bad("',' or '}'")
		}
	}
}

// array reads an array: element reads each of its values. null is an array without elements.
func (c *cursor) array(element func() error) error {
	if c.null() {
		return nil
	}
	if err := c.take('['); err != nil {
		return err
	}
	if c.next() == ']' {
		c.i++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch c.next() {
		case ',':
			c.i++
		case ']':
			c.i++
			return nil
		default:
			return c.bad("',' or ']'")
		}
	}
}

// text reads a string.
func (c *cursor) text() (string, error) {
	if c.next() != '"' {
		return "", c.bad("a string")
	}
	for i := c.i + 1; i < len(c.b); i++ {
		switch b := c.b[i]; {
		case b == '"':
			s := string(c.b[c.i+1 : i])
			c.i = i + 1
			return s, nil
		case b < ' ', b == '\\', b >= utf8.RuneSelf:
			return c.escaped()
		}
	}
	return "", c.bad("a string that ends")
}

// escaped reads a string with escapes or letters outside of ASCII.
func (c *cursor) escaped() (s string, err error) {
	raw, err := c.raw()
	if err != nil {
		return "", err
	}
	return s, json.Unmarshal(raw, &s)
}

// raw returns the text of the next value, whatever it is.
func (c *cursor) raw() ([]byte, error) {
	c.next()
	begin, depth := c.i, 0
	for i := begin; i < len(c.b); i++ {
		switch c.b[i] {
		case '"':
			for i++; i < len(c.b) && c.b[i] != '"'; i++ {
				if c.b[i] == '\\' {
					i++
				}
			}
			i = min(i, len(c.b)-1)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		}
		if depth > 0 {
			continue
		}
		if e := i + 1; e >= len(c.b) || depth < 0 || bytes.IndexByte([]byte(",]}: \t\r\n"), c.b[e]) >= 0 {
			if depth < 0 {
				e--
			}
			c.i = e
			if raw := c.b[begin:e]; json.Valid(raw) {
				return raw, nil
			}
			break
		}
	}
	c.i = begin
	return nil, c.bad("a value")
}

// skip reads a value that has no meaning here.
func (c *cursor) skip() error {
	_, err := c.raw()
	return err
}

// size reads an integer from 0 to 2^53.
func (c *cursor) size() (int, error) {
	c.next()
	begin, n := c.i, 0
	for c.i < len(c.b) && c.b[c.i] >= '0' && c.b[c.i] <= '9' && n < 1<<53 {
		n = 10*n + int(c.b[c.i]-'0')
		c.i++
	}
	leading := c.i > begin+1 && c.b[begin] == '0'
	fraction := c.i < len(c.b) && bytes.IndexByte([]byte(".eE0123456789"), c.b[c.i]) >= 0
	if c.i == begin || leading || fraction || n > math.MaxInt || n > 1<<53 {
		c.i = begin
		return 0, c.bad("an integer from 0 to 2^53")
	}
	return n, nil
}

// boolean reads true or false.
func (c *cursor) boolean() (bool, error) {
	c.next()
	for _, word := range []string{"true", "false"} {
		if bytes.HasPrefix(c.b[c.i:], []byte(word)) {
			c.i += len(word)
			return word == "true", nil
		}
	}
	return false, c.bad("true or false")
}

var errRange = errors.New("a number is outside of the range of FP32")
