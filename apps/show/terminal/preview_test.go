package terminal_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/apps/show/terminal"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// bars returns n atoms of 6 x 4 pixels: row i of atom i is 1.
func bars(n int) *metrics.Atoms {
	a := &metrics.Atoms{Shape: []int{6, 4}, Count: n, Values: make([]float32, n*24)}
	for i := range n {
		for x := range 4 {
			a.Values[i*24+i%6*4+x] = 1
		}
	}
	return a
}

func drawn(t *testing.T, a *metrics.Atoms, p terminal.Protocol, columns int) (string, int) {
	t.Helper()
	var b bytes.Buffer
	n, err := terminal.Atoms(&b, a, p, columns)
	fatal.If(t, err)
	return b.String(), n
}

func TestTerminalsAreDetected(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want terminal.Protocol
	}{
		{map[string]string{"TERM": "xterm-kitty"}, terminal.Kitty},
		{map[string]string{"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, terminal.Kitty},
		{map[string]string{"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, terminal.ITerm2},
		{map[string]string{"TERM": "foot"}, terminal.Sixel},
		{map[string]string{"TERM": "screen-256color", "TMUX": "x", "KITTY_WINDOW_ID": "1", "COLORTERM": "truecolor"}, terminal.Blocks},
		{map[string]string{"TERM": "xterm-256color", "COLORTERM": "truecolor"}, terminal.Blocks},
		{map[string]string{"TERM": "xterm-256color"}, terminal.Greys},
		{map[string]string{"TERM": "xterm-kitty", "NO_COLOR": "1"}, terminal.None},
		{map[string]string{"TERM": "dumb"}, terminal.None},
		{map[string]string{"TERM": "vt100"}, terminal.None},
		{nil, terminal.None},
	} {
		expect.Equal(t, terminal.Detect(func(name string) string { return c.env[name] }), c.want, c.env)
	}
}

func TestBlocksKeepToTheColumns(t *testing.T) {
	text, n := drawn(t, bars(9), terminal.Blocks, 14)
	if n != 6 { // three atoms of four columns in a line, two lines
		t.Errorf("%d atoms are shown, want 6", n)
	}
	plain := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(text, "")
	lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
	if len(lines) != 7 || lines[0] != "▀▀▀▀ ▀▀▀▀ ▀▀▀▀" || lines[3] != "" {
		t.Errorf("got %q", lines)
	}
	if !strings.HasPrefix(text, "\x1b[38;2;255;") { // the first row of atom 0 is white above black
		t.Errorf("begins with %q", text[:20])
	}
	if _, n := drawn(t, bars(9), terminal.Greys, 3); n != 0 {
		t.Errorf("%d atoms are shown in three columns, want none", n)
	}
}

// The commands of kitty and iTerm2 contain the grid as a PNG.
func TestPicturesAreWholePNGs(t *testing.T) {
	a := bars(61)
	for p, data := range map[terminal.Protocol]*regexp.Regexp{
		terminal.Kitty:  regexp.MustCompile(`\x1b_G[^;]*;([^\x1b]*)\x1b\\`),
		terminal.ITerm2: regexp.MustCompile(`:([^:\a]*)\a`),
	} {
		text, n := drawn(t, a, p, 80)
		expect.Equal(t, n, 60, p, n, "atoms")
		var whole string
		for _, m := range data.FindAllStringSubmatch(text, -1) {
			if len(m[1]) > 4096 && p == terminal.Kitty {
				t.Errorf("%s: a command carries %d bytes", p, len(m[1]))
			}
			whole += m[1]
		}
		file, err := base64.StdEncoding.DecodeString(whole)
		fatal.If(t, err, p)
		picture, err := png.Decode(bytes.NewReader(file))
		fatal.If(t, err, p)
		if r, _, _, _ := picture.At(0, 0).RGBA(); r>>8 != 255 {
			t.Errorf("%s: the first row of atom 0 is not white", p)
		}
	}
}

// unsixel decodes the output of sixel according to the definition of the format.
func unsixel(t *testing.T, text string) *image.RGBA {
	t.Helper()
	text = strings.TrimSuffix(strings.TrimPrefix(text, "\x1bPq\"1;1;"), "\x1b\\\n")
	size := regexp.MustCompile(`^(\d+);(\d+)`).FindStringSubmatch(text)
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	picture := image.NewRGBA(image.Rect(0, 0, number(size[1]), number(size[2])))
	colors := map[int]color.RGBA{}
	x, y, current := 0, 0, 0
	for _, m := range regexp.MustCompile(`#(\d+)(?:;2;(\d+);(\d+);(\d+))?|!(\d+)([?-~])|([?-~])|(\$)|(-)`).FindAllStringSubmatch(text[len(size[0]):], -1) {
		switch {
		case m[1] != "":
			if current = number(m[1]); m[2] != "" {
				colors[current] = color.RGBA{uint8(number(m[2]) * 255 / 100), uint8(number(m[3]) * 255 / 100), uint8(number(m[4]) * 255 / 100), 255}
			}
		case m[8] != "":
			x = 0
		case m[9] != "":
			x, y = 0, y+6
		default:
			times, c := 1, m[7]
			if m[5] != "" {
				times, c = number(m[5]), m[6]
			}
			for range times {
				for bit := range 6 {
					if (c[0]-'?')>>bit&1 == 1 {
						picture.SetRGBA(x, y+bit, colors[current])
					}
				}
				x++
			}
		}
	}
	return picture
}

func TestSixelsAreThePicture(t *testing.T) {
	text, n := drawn(t, bars(6), terminal.Sixel, 80)
	if n != 6 {
		t.Fatalf("%d atoms, want 6", n)
	}
	picture := unsixel(t, text)
	step := (picture.Rect.Dx() + 2) / 6
	scale := (step - 2) / 4
	for i := range 6 {
		for row := range 6 {
			want := uint8(0)
			if row == i {
				want = 255
			}
			if got := picture.RGBAAt(i*step+scale, row*scale+scale/2); got.R != want || got.A != 255 {
				t.Errorf("atom %d, row %d: got %v, want %d", i, row, got, want)
			}
		}
	}
}

func TestAtomsThatAreNoImagesAreAnError(t *testing.T) {
	for _, a := range []*metrics.Atoms{nil, {Shape: []int{4}, Count: 1, Values: make([]float32, 4)}} {
		expect.Is(t, expect.Err(terminal.Atoms(&bytes.Buffer{}, a, terminal.Blocks, 80)), terminal.ErrNoPicture)
	}
}

func TestLargeAtomsAreShrunkToTheWidthOfATerminal(t *testing.T) {
	const side = 300
	a := &metrics.Atoms{Shape: []int{side, side}, Count: 20, Values: make([]float32, 20*side*side)}
	for i := range a.Values {
		a.Values[i] = float32(i%side) / side
	}
	text, _ := drawn(t, a, terminal.ITerm2, 80)
	_, file, _ := strings.Cut(strings.TrimSuffix(text, "\a\n"), ":")
	b, err := base64.StdEncoding.DecodeString(file)
	fatal.If(t, err)
	picture, err := png.DecodeConfig(bytes.NewReader(b))
	if err != nil || picture.Width > 720 {
		t.Errorf("the picture is %d pixels wide: %v", picture.Width, err)
	}
}

// A picture of long, thin atoms is shrunk by a factor larger than their short side.
func TestLongThinAtomsAreDrawn(t *testing.T) {
	for _, shape := range [][]int{{1, 2000}, {3, 900}, {2000, 1}, {1, 1}} {
		pixels := shape[0] * shape[1]
		a := &metrics.Atoms{Count: 2, Shape: shape, Values: slices.Repeat([]float32{0.5}, 2*pixels)}
		for _, p := range []terminal.Protocol{terminal.Blocks, terminal.Greys, terminal.Kitty, terminal.ITerm2, terminal.Sixel} {
			var b bytes.Buffer
			if _, err := terminal.Atoms(&b, a, p, 80); err != nil && !errors.Is(err, terminal.ErrNoPicture) {
				t.Errorf("%v by %s: %v", shape, p, err)
			}
		}
	}
}
