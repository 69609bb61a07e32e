package numeral

import (
	"math"
	"testing"

	"tessera/internal/expect"
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
		expect.Equal(t, one.got, one.want)
	}
}

// What is written is read again, in any case and with a space before the unit; what has no unit or no number is refused.
func TestBytesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]int64{"1gb": 1e9, "500 MiB": 500 << 20, "1.5KB": 1500, "64KiB": 1 << 16, "7B": 7, "32MIB": 32 << 20} {
		got, ok := ParseBytes(text)
		if again, _ := ParseBytes(ExactBytes(got)); !ok || got != want || again != want {
			t.Errorf("%q: got %d, %v, written %s and read as %d; want %d", text, got, ok, ExactBytes(got), again, want)
		}
	}
	for _, text := range []string{"", "1", "GB", "1gbit", "-1MB", "0x1MB", "1_0MB", "1e30TB", "NaNMB", "InfGB"} {
		if n, ok := ParseBytes(text); ok {
			t.Errorf("%q: got %d, want an error", text, n)
		}
	}
}
