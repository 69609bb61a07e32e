package hugepages

import "testing"

// TestMakeGivesZerosThatCanBeWritten uses lengths close to whole pages, at which the part in huge pages begins and
// ends.
func TestMakeGivesZerosThatCanBeWritten(t *testing.T) {
	const values = page / 4
	for _, n := range []int{0, 1, values - 1, values, values + 1, 2*values - 1, 3 * values, 3*values + 7} {
		for range 2 { // the second round may get memory that was used before
			s := Make[float32](n)
			if len(s) != n || cap(s) < n {
				t.Fatalf("%d values: got %d", n, len(s))
			}
			for i, v := range s {
				if v != 0 {
					t.Fatalf("%d values: value %d is %g", n, i, v)
				}
				s[i] = 1
			}
		}
	}
}
