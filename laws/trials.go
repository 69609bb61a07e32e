package laws

import "fmt"

// batches are the numbers of images or rows in the trials.
var batches = []int{1, 2, 5}

// trials are a kit of laws for parts that run as graphs. C is a part in one trial: an input, a batch, a mode, a back end.
// All laws of a trial share its compiled programs.
type trials[T any, C fmt.Stringer] struct {
	laws []trialLaw[C]
	each func(fresh func() T, try func(c C)) error
}

// trialLaw is one law for a part in a trial.
type trialLaw[C any] struct {
	name   string
	broken func(c C) error // nil when the part obeys
}

// Names implements [Kit].
func (k trials[T, C]) Names() []string {
	names := make([]string, len(k.laws))
	for i, law := range k.laws {
		names[i] = law.name
	}
	return names
}

// Judge implements [Kit]. For every law it returns the first failing trial; a part that cannot be run breaks all laws.
func (k trials[T, C]) Judge(fresh func() T) map[string]error {
	broken := map[string]error{}
	err := k.each(fresh, func(c C) {
		for _, law := range k.laws {
			if broken[law.name] != nil {
				continue
			}
			if err := law.broken(c); err != nil {
				broken[law.name] = fmt.Errorf("%v: %w", c, err)
			}
		}
	})
	for _, law := range k.laws {
		if err != nil {
			broken[law.name] = err
		}
	}
	return broken
}
