package augment

import (
	"math"
	"math/rand/v2"
)

// Rotate rotates the image about its centre by an angle a from U[-Degrees, Degrees], counter-clockwise for a > 0, and
// interpolates bilinearly. With u and v the distances of pixel (i, j) from the centre, downwards and to the right,
//
//	y(i, j) = x(centre + (u cos a + v sin a, v cos a - u sin a))
//
// Pixels beyond the edge have the value Fill. Degrees = 0 changes nothing.
//
// Source: Simard, Steinkraus and Platt, Best practices for convolutional neural networks applied to visual document
// analysis, 2003.
type Rotate struct {
	Degrees float64 `toml:"degrees" want:"in [0,180]" doc:"largest angle, in either direction"`
	Fill    float64 `toml:"fill" want:"in [0,1]" doc:"the value beyond the edge"`
}

func init() {
	Registry.Register("rotate", "a rotation about the centre by up to degrees", func() Augmentation { return &Rotate{Degrees: 15} })
}

func (t *Rotate) Prepare(shape []int) (Change, error) {
	in, degrees, fill := sizeOf(shape), t.Degrees, float32(t.Fill)
	return func(dst, src []float32, r *rand.Rand) { turn(dst, src, in, uniform(r, -degrees, degrees), fill) }, nil
}

func turn(dst, src []float32, in size, degrees float64, fill float32) {
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	middleY, middleX := float64(in.height-1)/2, float64(in.width-1)/2
	at := func(y, x, c int) float32 {
		if y < 0 || y >= in.height || x < 0 || x >= in.width {
			return fill
		}
		return src[(y*in.width+x)*in.channels+c]
	}
	for i := range in.height {
		for j := range in.width {
			u, v := float64(i)-middleY, float64(j)-middleX
			y, x := middleY+u*cos+v*sin, middleX+v*cos-u*sin
			top, left := math.Floor(y), math.Floor(x)
			fy, fx := y-top, x-left
			y0, x0 := int(top), int(left)
			for c := range in.channels {
				upper := mix(at(y0, x0, c), at(y0, x0+1, c), fx)
				lower := mix(at(y0+1, x0, c), at(y0+1, x0+1, c), fx)
				dst[(i*in.width+j)*in.channels+c] = float32(mix(upper, lower, fy))
			}
		}
	}
}
