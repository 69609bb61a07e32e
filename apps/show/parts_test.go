package show

import "testing"

func TestAPartIsNamedByItsLargestColumns(t *testing.T) {
	names := []string{"length", "mass", "width", "age"}
	for _, one := range []struct {
		atom []float32
		want string
	}{
		{[]float32{0.1, -3, 2, 0}, "-mass, width"},
		{[]float32{1, 1, 1, 1}, "length, mass, width"},
		{[]float32{0, 0, 0, 0}, ""},
		{[]float32{1}, ""}, // not of these columns
	} {
		if got := PartName(one.atom, names); got != one.want {
			t.Errorf("%v: got %q, want %q", one.atom, got, one.want)
		}
	}
}
