package laws

import "fmt"

// batches are the numbers of images or rows that laws are tried with.
var batches = []int{1, 2, 5}

// trials are a kit of statements about parts that run as graphs. C is a part in one trial: an input, a batch, a mode, a back
// end. All laws are tried in one trial after the other, so that they share what is compiled for it.
type trials[T any, C fmt.Stringer] struct {
	laws []trialLaw[C]
	each func(fresh func() T, try func(c C)) error
}

// trialLaw is one statement about a part in a trial.
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

// Judge implements [Kit]. Of every law it tells the first trial that breaks it; a part that cannot be tried breaks all.
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
