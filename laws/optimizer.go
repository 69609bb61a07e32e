package laws

import (
	"fmt"

	"tessera/optim"
)

// Optimizer contains the laws of optimizers. Mini-batch rules also obey [Rule], full-batch optimizers [Search].
var Optimizer = Laws[optim.Optimizer]{
	{"is a rule or a search, and not both", oneSort},
}

func oneSort(fresh func() optim.Optimizer) error {
	_, rule := fresh().(optim.Rule)
	_, search := fresh().(optim.Search)
	if rule == search {
		return fmt.Errorf("%T: a Rule is %v, a Search is %v", fresh(), rule, search)
	}
	return nil
}
