package train

// Team is a fixed number of goroutines that work on one job together.
type Team interface {
	// Threads is how many they are.
	Threads() int
	// Do runs f(0), ..., f(Threads()-1) at the same time and returns when all have returned.
	Do(f func(thread int))
}

// alone is a team of one: the caller.
type alone struct{}

func (alone) Threads() int          { return 1 }
func (alone) Do(f func(thread int)) { f(0) }
