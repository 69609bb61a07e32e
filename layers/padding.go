package layers

import "fmt"

// Padding is the number of pixels around an image that the filters of a convolution or the windows of a pooling may cover.
// Filters read zeros there. "same" gives an output of ceil(input / stride) rows and columns, with an odd pixel at the end;
// "valid" is no padding; a number is the pixels on every side.
type Padding struct {
	Same   bool
	Pixels int // used if Same is false
}

// FromTOML sets p from a TOML value: "same", "valid" or a number >= 0.
func (p *Padding) FromTOML(value any) error {
	switch x := value.(type) {
	case string:
		switch x {
		case "same":
			*p = Padding{Same: true}
			return nil
		case "valid":
			*p = Padding{}
			return nil
		}
		return fmt.Errorf("got %q, want \"same\", \"valid\" or a number of pixels >= 0", x)
	case int64:
		if x >= 0 {
			*p = Padding{Pixels: int(x)}
			return nil
		}
	}
	return fmt.Errorf("got %v, want \"same\", \"valid\" or a number of pixels >= 0", value)
}

// TOML returns the value that [Padding.FromTOML] reads back.
func (p Padding) TOML() any {
	switch {
	case p.Same:
		return "same"
	case p.Pixels == 0:
		return "valid"
	}
	return p.Pixels
}

// along returns the output's length and the padding before the input along one axis of length in, for windows that span
// reach pixels. The length is < 1 if no window fits.
func (p Padding) along(in, reach, stride int) (out, before int) {
	if p.Same {
		out = (in + stride - 1) / stride
		return out, max((out-1)*stride+reach-in, 0) / 2
	}
	slack := in + 2*p.Pixels - reach
	if slack < 0 {
		return 0, p.Pixels
	}
	return slack/stride + 1, p.Pixels
}

// back is along for the transposed convolution: a convolution of out values with that padding gives in values. For "same"
// out is the longest such axis.
func (p Padding) back(in, reach, stride int) (out, before int) {
	if p.Same {
		out = in * stride
		return out, max((in-1)*stride+reach-out, 0) / 2
	}
	return (in-1)*stride + reach - 2*p.Pixels, p.Pixels
}
