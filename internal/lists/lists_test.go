package lists

import (
	"fmt"
	"strconv"
	"testing"

	"tessera/internal/expect"
)

func TestListsKeepTheirOrder(t *testing.T) {
	numbers := Range(2, 6)
	odd := Only(numbers, func(n int) bool { return n%2 == 1 })
	squares := Of(4, func(i int) int { return i * i })
	for _, one := range []struct{ got, want []string }{
		{Map(numbers, strconv.Itoa), []string{"2", "3", "4", "5"}}, {Map(odd, strconv.Itoa), []string{"3", "5"}}, {Map(squares, strconv.Itoa), []string{"0", "1", "4", "9"}},
		{Map(Add(odd, 7, 3, 7, 1), strconv.Itoa), []string{"3", "5", "7", "1"}},
	} {
		expect.Slice(t, one.got, one.want)
	}
}

// A list without elements is nil, so that an empty one is left out of JSON.
func TestEmptyListsAreNil(t *testing.T) {
	for i, list := range [][]int{Map([]string{}, func(string) int { return 0 }), Of(0, func(i int) int { return i }), Range(3, 3), Range(3, 1),
		Only([]int{1}, func(int) bool { return false }), Add[int](nil)} {
		if list != nil {
			t.Error(fmt.Sprint(i), "is not nil")
		}
	}
}
