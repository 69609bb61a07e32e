package train

import "tessera/engine"

// complete returns the options with what runs programs, where they name nothing: the engine on a team with one goroutine per
// CPU. release ends that team.
func (o Options) complete() (complete Options, release func()) {
	if o.Backend != nil {
		return o, func() {}
	}
	team, own := o.Team.(*engine.Team)
	if own && team != nil {
		o.Backend = engine.Backend{Team: team}
		return o, func() {}
	}
	team = engine.NewTeam(0)
	o.Backend = engine.Backend{Team: team}
	if o.Team == nil {
		o.Team = team
	}
	return o, team.Close
}
