package laws

import (
	"fmt"

	"tessera/optim"
)

// Optimizer is what every optimizer obeys. Those that are rules obey [Rule] too, the others [Search].
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
