package cli

import (
	"tessera/apps/show/doc"
	"tessera/apps/show/page"
	"tessera/data"
)

func init() {
	Commands.Register("atoms", "List the units of a run by their use, or describe one", func() Command {
		return &atomsCommand{runFlags: forRuns(), Unit: -1, Count: 10}
	})
}

type atomsCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	splitFlag
	jsonFlag
	Unit  int `flag:"unit" want:">= 0" doc:"number of the unit that is described" default:"a list of the units"`
	Count int `flag:"count,n" want:"> 0" doc:"number of units, or of samples, units and values for one unit"`
}

func (f *atomsCommand) Help() Help {
	return Help{
		Long: "List the units of a model with codes by their mean use, each with the share of samples that use it and, for samples with named columns, the largest values of its atom. " +
			"--unit describes one: the samples that use it most, by name and class, the units that are used with it, its use by class, and what it changes. " +
			"Pictures of all of it are on the page of tessera report.",
		Examples: []string{"tessera atoms runs/topics", "tessera atoms runs/dictionary --unit 17 -n 20 --json"},
	}
}

func (f *atomsCommand) Do(cmd *Call) error {
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	var d *doc.Document
	switch split := data.Split(f.Split); {
	case f.Unit < 0:
		d, err = page.Units(cmd.Context(), r, split, f.Count)
	case f.Unit >= r.Units():
		return usagef("--unit: got %d, want 0 to %d: the code has %d units", f.Unit, r.Units()-1, r.Units())
	default:
		d, err = page.Unit(cmd.Context(), r, split, f.Unit, f.Count)
	}
	if err != nil {
		return err
	}
	return cmd.Show(d, f.JSON)
}
