package parts

import (
	"slices"

	"tessera"
	"tessera/apps/cli"
	"tessera/apps/show/doc"
)

// Peaks is a command that prints the largest value of each atom of a run.
type Peaks struct {
	Folder string  `arg:"RUN" is:"folder" doc:"the folder of a run"`
	Above  float64 `flag:"above" want:">= 0" doc:"leave out atoms with smaller values"`
	JSON   bool    `flag:"json" doc:"print one JSON document"`
}

func init() {
	cli.Commands.Register("peaks", "Print the largest value of each atom", func() cli.Command { return &Peaks{} })
}

// Help implements [cli.Command].
func (p *Peaks) Help() cli.Help {
	return cli.Help{Examples: []string{"tessera peaks runs/parts --above 0.1"}}
}

// Do implements [cli.Command].
func (p *Peaks) Do(call *cli.Call) error {
	r, err := tessera.Open(p.Folder, tessera.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	t := &doc.Table{Key: "atoms", Columns: doc.Columns("atom", "peak")}
	for i, a := 0, r.Atoms(); a != nil && i < a.Count; i++ {
		if peak := slices.Max(a.Values[i*a.Pixels() : (i+1)*a.Pixels()]); float64(peak) >= p.Above {
			t.Row(i, float64(peak))
		}
	}
	return call.Show(&doc.Document{Blocks: []doc.Block{t}}, p.JSON)
}
