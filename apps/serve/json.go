package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// cursor reads JSON from a slice. It accepts the same texts as encoding/json, up to the limits below; fuzz tests compare both.
// encoding/json itself takes longer to read the numbers of an image than the engine takes to encode the image: see
// docs/dev/adr/0020.
type cursor struct {
	b []byte
	i int
}

// mostText is the largest size in bytes of a string or a number. It limits the copies of parts of a body.
const mostText = 4096

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

// bad returns a syntax error at the cursor.
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

// more reads the character after an element. It returns true for a comma and false for the end of the list.
func (c *cursor) more(end byte) (bool, error) {
	switch c.next() {
	case ',':
		c.i++
		return true, nil
	case end:
		c.i++
		return false, nil
	}
	return false, c.bad(fmt.Sprintf("',' or %q", end))
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

// ofTexts reports whether the next value is a text, or null before a text in a list.
func (c *cursor) ofTexts() bool {
	ahead := *c
	for ahead.null() && ahead.next() == ',' {
		ahead.i++
	}
	return ahead.next() == '"'
}

// object reads an object. The function member reads the value of each key. null is an object without members.
func (c *cursor) object(member func(key string) error) error {
	return c.list('{', '}', func() error {
		key, err := c.text()
		if err == nil {
			err = c.take(':')
		}
		if err != nil {
			return err
		}
		return member(key)
	})
}

// array reads an array. The function element reads each value. null is an array without elements.
func (c *cursor) array(element func() error) error { return c.list('[', ']', element) }

func (c *cursor) list(open, end byte, element func() error) error {
	if c.null() {
		return nil
	}
	if err := c.take(open); err != nil {
		return err
	}
	if c.next() == end {
		c.i++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		if more, err := c.more(end); !more {
			return err
		}
	}
}

func (c *cursor) text() (s string, err error) {
	if c.next() != '"' {
		return "", c.bad("a string")
	}
	plain := true // printable ASCII without escapes
	for i := c.i + 1; i < len(c.b) && i <= c.i+mostText; i++ {
		switch b := c.b[i]; {
		case b == '"':
			text := c.b[c.i : i+1]
			if plain {
				s = string(text[1 : len(text)-1])
			} else if json.Unmarshal(text, &s) != nil {
				return "", c.bad("a string")
			}
			c.i = i + 1
			return s, nil
		case b == '\\':
			plain = false
			i++
		case b < ' ', b >= utf8.RuneSelf:
			plain = false
		}
	}
	return "", c.bad(fmt.Sprintf("a string that ends within %d bytes", mostText))
}

// raw returns the text of the next value, of any type.
func (c *cursor) raw() ([]byte, error) {
	c.next()
	end, depth, quoted := c.i, 0, false
scan:
	for ; end < len(c.b); end++ {
		switch b := c.b[end]; {
		case quoted && b == '\\':
			end++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			depth++
		case depth == 0 && (b == ',' || b == ']' || b == '}'):
			break scan
		case b == '}', b == ']':
			depth--
		}
	}
	text := bytes.TrimRight(c.b[c.i:min(end, len(c.b))], " \t\r\n")
	if !json.Valid(text) {
		return nil, c.bad("a value")
	}
	c.i += len(text)
	return text, nil
}

func (c *cursor) skip() error {
	_, err := c.raw()
	return err
}

// size reads an integer from 0 to 2^53, of at most 16 digits.
func (c *cursor) size() (int, error) {
	c.next()
	begin := c.i
	if text, err := c.raw(); err == nil && len(text) <= 16 {
		if n, err := strconv.Atoi(string(text)); err == nil && n >= 0 && int64(n) <= 1<<53 {
			return n, nil
		}
	}
	c.i = begin
	return 0, c.bad("an integer from 0 to 2^53")
}

func (c *cursor) boolean() (bool, error) {
	c.next()
	begin := c.i
	text, _ := c.raw()
	if s := string(text[:min(5, len(text))]); s == "true" || s == "false" {
		return s == "true", nil
	}
	c.i = begin
	return false, c.bad("true or false")
}

// number reads a number and rounds it to the nearest float32, as strconv.ParseFloat does. It reads small integers, such as pixels,
// digit by digit.
func (c *cursor) number() (float32, error) {
	b, n, end := c.b, float32(0), c.i
	for end < len(b) && b[end]-'0' <= 9 {
		n = 10*n + float32(b[end]-'0')
		end++
	}
	if count := end - c.i; end < len(b) && (b[end] == ',' || b[end] == ']') && (count == 1 || 1 < count && count < 8 && b[c.i] != '0') { // n is exact
		c.i = end
		return n, nil
	}
	for end < len(b) && (b[end]-'0' <= 9 || bytes.IndexByte([]byte("+-.eE"), b[end]) >= 0) {
		end++
	}
	text := b[c.i:end]
	if len(text) > mostText {
		return 0, fmt.Errorf("JSON: byte %d: got a number of %d bytes, want at most %d", c.i, len(text), mostText)
	}
	if !json.Valid(text) {
		return 0, c.bad("a number")
	}
	v, err := strconv.ParseFloat(string(text), 32)
	if err != nil {
		return 0, fmt.Errorf("JSON: byte %d: a number is outside of the range of FP32", c.i)
	}
	c.i = end
	return float32(v), nil
}

// tens contains powers of ten as integers.
var tens = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16}

// inverses contains the float64 values nearest to the inverses of tens.
var inverses = [...]float64{1e-0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16}

// longest is the maximum number of bytes that decimal reads.
const longest = 3 + 16

// decimal reads a number between -10 and 10 with 1 to 15 digits after its point, as [cursor.number] does, and returns where it
// ends: at a comma or a bracket. It returns 0 for all other numbers, which [cursor.number] then reads. Most numbers of images
// are such decimals. Their lengths are unpredictable, so the digits are read without a branch per digit.
//
// The value is computed in float64 as its digits times a power of ten. The digits, the power and the product are rounded, so that
// the error is at most three units in the last place. Rounding the product to float32 gives the correct
// value unless the midpoint between two float32 values is within this error; in that case strconv reads the number.
func decimal(b []byte, i int) (v float32, end int) {
	if len(b)-i < longest {
		return 0, 0
	}
	sign := uint32(0)
	if b[i] == '-' {
		sign = 1 << 31
		i++
	}
	first := uint64(b[i] - '0')
	if first > 9 || b[i+1] != '.' {
		return 0, 0
	}
	i += 2
	x := binary.LittleEndian.Uint64(b[i:])
	count := digits(x)
	n := eight(x << (64 - 8*count))
	if count == 8 {
		y := binary.LittleEndian.Uint64(b[i+8:])
		more := digits(y)
		n = n*tens[more] + eight(y<<(64-8*more))
		count += more
	}
	n += first * tens[count]
	end = i + int(count)
	exact := float64(int64(n)) * inverses[count]
	if n == 0 || count == 0 || count == 16 || !rounds(exact) || b[end] != ',' && b[end] != ']' {
		return 0, 0
	}
	return math.Float32frombits(math.Float32bits(float32(exact)) | sign), end
}

// digits returns the number of leading decimal digits among the eight bytes of x, counted from the lowest byte.
func digits(x uint64) uint {
	x ^= 0x3030303030303030                                     // the value of a digit, at least 10 of another byte
	others := (x + 0x7676767676767676 | x) & 0x8080808080808080 // the lowest bit marks the first byte that is no digit
	return uint(bits.TrailingZeros64(others)) >> 3
}

// eight returns the number formed by eight decimal digits. Each byte of x is the value of one digit, not its character; the
// lowest byte is the first digit. Digits are combined into pairs, pairs into fours, and fours into the result. Source: Lemire,
// "SWAR explained: parsing eight digits", 2022.
func eight(x uint64) uint64 {
	x = (x & 0x0f0f0f0f0f0f0f0f) * (10<<8 + 1) >> 8
	x = (x & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	return (x & 0x0000ffff0000ffff) * (10000<<32 + 1) >> 32
}

// rounds reports whether v, whose error is at most three units in the last place, rounds to the same float32 as the exact value.
func rounds(v float64) bool {
	const half = 1 << 28 // half of the range of the 29 bits that float64 has in addition to float32
	below := math.Float64bits(v) & (1<<29 - 1)
	return below-half+4 > 8 && v >= 0x1p-126 && v <= 0x1p127
}

// appendNumber appends a finite number, with as few digits as identify it, in the format of encoding/json.
func appendNumber(dst []byte, v float32) []byte {
	if size := float32(math.Abs(float64(v))); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, float64(v), 'e', -1, 32)
	}
	return strconv.AppendFloat(dst, float64(v), 'f', -1, 32)
}
