package train

import (
	"tessera/engine"
	"tessera/team"
)

// complete returns the options with what runs programs, where they name nothing: the engine on Team, or on a team with one
// goroutine per CPU. release ends that team.
func (o Options) complete() (complete Options, release func()) {
	release = func() {}
	if o.Backend != nil {
		return o, release
	}
	if o.Team == nil {
		o.Team = team.New(0)
		release = o.Team.Close
	}
	o.Backend = engine.Backend{Team: o.Team}
	return o, release
}
