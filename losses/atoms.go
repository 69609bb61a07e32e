package losses

// onAtoms is embedded by the penalties of the atoms.
type onAtoms struct{}

// On implements [Loss].
func (onAtoms) On() string { return Atoms }

// Reads implements [Loss].
func (onAtoms) Reads() Reads { return Reads{Atoms: true} }
