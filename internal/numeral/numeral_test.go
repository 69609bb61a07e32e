package numeral

import (
	"math"
	"testing"
)

func TestTexts(t *testing.T) {
	nan := math.NaN()
	for _, one := range []struct{ got, want string }{
		{Float(0.123456), "0.1235"}, {Float(1e-9), "1e-09"}, {Float(math.Copysign(0, -1)), "0"}, {Float(nan), "-"}, {Float(9999.6), "10,000"},
		{Float(12345.6), "12,346"}, {Float(-123456), "-123,456"}, {Float(3e9), "3e+09"}, {Float(math.Inf(1)), "+Inf"},
		{Exact(0.1), "0.1"}, {Fixed(0.98765, 3), "0.988"}, {Count(999), "999"}, {Count(-1000), "-1,000"}, {Count(157684), "157,684"},
		{Of(1, "image"), "1 image"}, {Of(0, "image"), "0 images"}, {Of(10000, "image"), "10,000 images"},
		{Percent(0.9324), "93.2 %"}, {Percent(1), "100 %"}, {Percent(nan), "-"},
		{Spread(0.07884, 0.00612), "0.07884 ± 0.0061"}, {Spread(3, 0), "3"}, {Spread(3, nan), "3"}, {Interval(-1, 2), "[-1, 2]"},
		{P(0.034567), "= 0.035"}, {P(0), "< 0.0001"}, {P(1), "= 1"},
		{Seconds(0), "0 s"}, {Seconds(4.2e-6), "4.2 µs"}, {Seconds(0.0042), "4.2 ms"}, {Seconds(4.24), "4.2 s"}, {Seconds(75), "75 s"}, {Seconds(719), "12 min"},
		{Seconds(9000), "2.5 h"}, {Seconds(4 * 86400), "4 days"}, {Seconds(1e12), "over 100 years"},
		{Bytes(512), "512 B"}, {Bytes(3_200_000), "3.2 MB"}, {Bytes(999_999), "1 MB"}, {Operations(2.5e9), "2.5 GFLOP"}, {Shape([]int{28, 28}), "28x28"}, {Shape(nil), ""},
	} {
		if one.got != one.want {
			t.Errorf("got %q, want %q", one.got, one.want)
		}
	}
}
