package hooks

// Stage is the place of a hook among those of a training. The functions of all hooks are called in the order of their stages; those
// of one stage in the order of their names, the phases of pruning in their declared order.
type Stage int

// The stages. A hook may name a stage between two of them: Follow + 1 comes after the moving average, before early stopping.
const (
	Prepare Stage = 100 // makes something of images before the first step: decomposition
	Select  Stage = 200 // chooses or changes parameters before a step: prune
	Distort Stage = 300 // changes the images of a step: adversarial
	Follow  Stage = 400 // keeps values that follow the parameters: average
	Judge   Stage = 500 // judges a complete epoch: early_stopping
	Last    Stage = 600 // all that name no stage: plateau, revive, teacher
)

// Staged is a hook that names its stage.
type Staged interface{ Stage() Stage }

// StageOf returns the stage of a hook: [Last] where it names none.
func StageOf(h Hook) Stage {
	if s, ok := h.(Staged); ok {
		return s.Stage()
	}
	return Last
}
