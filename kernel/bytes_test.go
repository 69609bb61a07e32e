package kernel

import "testing"

func TestBytesAreDividedBy255(t *testing.T) {
	src := make([]uint8, 256+33)
	for i := range src {
		src[i] = uint8(i)
	}
	for _, set := range elementwiseSets() {
		for n := range len(src) + 1 {
			dst := make([]float32, n+1)
			dst[n] = canary
			set.FromBytes(dst[:n], src)
			for i, v := range dst[:n] {
				if want := float32(src[i]) / 255; v != want {
					t.Fatalf("%s, n=%d: byte %d becomes %v, want %v", set.Name, n, src[i], v, want)
				}
			}
			if dst[n] != canary {
				t.Fatalf("%s, n=%d: wrote outside", set.Name, n)
			}
		}
	}
}
