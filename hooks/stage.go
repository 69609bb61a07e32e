package hooks

// Stage determines when a hook's functions are called relative to other hooks: in the order of the stages, within a stage
// in the order of the hooks' names. The phases of pruning keep their declared order.
type Stage int

// The stages. A hook may name a stage between two of them: Follow + 1 comes after the moving average, before early stopping.
const (
	Prepare Stage = 100 // prepares images before the first step: decomposition
	Select  Stage = 200 // selects or changes parameters before a step: prune
	Distort Stage = 300 // changes the images of a step: adversarial
	Follow  Stage = 400 // maintains values that depend on the parameters: average
	Judge   Stage = 500 // evaluates a complete epoch: early_stopping
	Last    Stage = 600 // all hooks without a stage: plateau, revive, teacher
)

// Staged is implemented by hooks with a stage.
type Staged interface{ Stage() Stage }

// StageOf returns the stage of a hook, [Last] by default.
func StageOf(h Hook) Stage {
	if s, ok := h.(Staged); ok {
		return s.Stage()
	}
	return Last
}
