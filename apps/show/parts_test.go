package show

import (
	"testing"

	"tessera/internal/expect"
)

func TestAPartIsNamedByItsLargestColumns(t *testing.T) {
	names := []string{"length", "mass", "width", "age"}
	for _, one := range []struct {
		atom []float32
		want string
	}{
		{[]float32{0.1, -3, 2, 0}, "-mass, width"},
		{[]float32{1, 1, 1, 1}, "all columns alike"},
		{[]float32{0, 0, 0, 0}, ""},
		{[]float32{1}, ""}, // not of these columns
	} {
		expect.Equal(t, PartName(one.atom, names), one.want, one.atom)
	}
	expect.Equal(t, largest([]float32{0.1, -3, 2, 0}, names, 8, 0), "-mass, width, length", "of many columns")
}
