package page

import (
	"fmt"
	"path/filepath"
	"strings"

	"tessera/internal/shell"
	"tessera/train"
	"tessera/train/folder"
)

// Origin is where a run comes from, and how it is made again.
type Origin struct {
	Facts    [][2]string // environment
	Data     [][2]string // file, SHA-256
	Commands []Command
	Unlisted bool // it was measured on files that the record of the training does not list
}

// Command is a command line and what it does.
type Command struct{ Line, About string }

// originOf describes the record of a run.
func originOf(r *Run, e train.Environment) Origin {
	var o Origin
	for _, f := range [][2]string{{"tessera", e.Version}, {"Go", e.Go}, {"system", e.System}, {"CPU", e.CPU}, {"back end", e.Backend}, {"kernels", e.BLAS}} {
		if f[1] != "" {
			o.Facts = append(o.Facts, f)
		}
	}
	same := ""
	if e.Threads > 0 {
		o.Facts = append(o.Facts, [2]string{"threads", fmt.Sprint(e.Threads)})
		same = fmt.Sprintf(" --threads %d --backend %s", e.Threads, e.Backend)
	}
	for _, f := range e.Data {
		o.Data = append(o.Data, [2]string{filepath.Join(filepath.Base(filepath.Dir(f.Path)), filepath.Base(f.Path)), f.SHA256})
	}
	if e.Start != nil {
		o.Data = append(o.Data, [2]string{filepath.Base(e.Start.Path) + " (initial parameters)", e.Start.SHA256})
	}
	name := shell.Word(r.Name)
	o.Commands = []Command{
		{"tessera train " + name + " -f " + folder.Config + same, "trains it again from the settings above, saved as " + folder.Config + ": on the same kind of CPU to the same bytes"},
		{"tessera eval " + shell.Word(r.Path), "measures it again"},
		{"tessera report " + shell.Word(r.Path) + " -o report.html", "writes this page"},
	}
	if len(e.Command) > 0 {
		var words []string
		for _, w := range e.Command {
			words = append(words, shell.Word(w))
		}
		words[0] = shell.Word(filepath.Base(e.Command[0]))
		o.Commands = append(o.Commands, Command{strings.Join(words, " "), "is the command that was given"})
	}
	return o
}
