package config

// Start is where a new run of the model takes its first parameters from: those of another run.
type Start struct {
	Run string `toml:"run" required:"true" doc:"the folder of the other run"`
	On  string `toml:"on" doc:"a glob over parameter paths: matching parameters are copied, all others are initialised"`
}

// Defaults sets the defaults of the table.
func (s *Start) Defaults() { s.On = "*" }

// start checks that something is to be taken, and from somewhere. The other run is read when the training begins.
func (c *checker) start() {
	s := c.model.Start
	if s == nil || c.model.inDoubt("start") {
		return
	}
	if s.Run == "" {
		c.report("start", "", "run", "run: got \"\", want the folder of a run", "")
	}
	c.glob("start", "", "on", s.On)
}
