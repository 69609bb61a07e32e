package cli

import (
	"fmt"
	"slices"
	"strings"

	"tessera/apps/internal/study"
	"tessera/config"
	"tessera/data"
	"tessera/internal/shell"
	"tessera/internal/sweep"
)

func init() {
	Commands.Register("reproduce", "Reproduce a table or figure of the study, or another table of docs/reproduction", func() Command {
		return &reproduceCommand{sweepFlags: forSweeps()}
	})
}

// reproduction is the name of a table.
type reproduction string

func (reproduction) Choices() []string { return study.Names() }

// reproduceCommand is the command reproduce. Without --svm the codes are classified as in the study.
type reproduceCommand struct {
	Name reproduction `arg:"NAME" doc:"the name of a table"`
	sweepFlags
}

func (f *reproduceCommand) Help() Help {
	return Help{
		Long: "Train the models of a table or figure of the study, then write a page that compares our results with the published ones;\n" +
			"or train another sweep of docs/reproduction, then write a page with one table of its settings.\n" +
			"The models are the trials of the sweep NAME: an interrupted sweep resumes, and a finished sweep is not trained again.\n" +
			"A model that cannot be trained for so few --epochs has a row without values; the exit code is then 8.\n\n" + reproductionLines(),
		Examples: []string{"tessera reproduce table1 --epochs 2 --out trial", "tessera reproduce table1",
			"tessera reproduce shipped --epochs 1 --seeds 1 --out trial", "tessera reproduce shipped --jobs 1", "tessera reproduce known-parts"},
	}
}

func reproductionLines() string {
	var b strings.Builder
	for _, r := range study.Reproductions() {
		fmt.Fprintf(&b, "  %-28s  %s\n", r.Name, r.Title)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (f *reproduceCommand) Do(cmd *Call) error {
	r, err := study.Find(string(f.Name))
	if err != nil {
		return err
	}
	return r.Explain(f.write(cmd, r))
}

// write trains the sweep of a reproduction, and writes and prints its page.
func (f *reproduceCommand) write(cmd *Call, r study.Reproduction) error {
	further := f.further(cmd)
	if !cmd.Given("svm") {
		f.SVM = r.SVM
	}
	chosen := len(f.Metrics) > 0
	if !chosen {
		f.Metrics = r.Columns
	}
	if cmd.Given("with") {
		r.With = nil // the page has those of the flags in its command
	} else {
		with, err := f.taken(r.With)
		if err != nil {
			return err
		}
		r.With, f.With = with, with
	}
	models, err := f.declaring(r)
	if err != nil {
		return err
	}
	spec, err := f.declared(cmd, models, r.Name)
	if err != nil {
		return err
	}
	return f.run(cmd, spec, func(s *sweep.Sweep, results *sweep.Results) error {
		if chosen && r.Columns != nil {
			if r.Columns = columnsOf(results, f.Metrics); len(r.Columns) == 0 { // none applies, or no trial was measured
				r.Columns = f.Metrics
			}
		}
		page, err := r.Write(cmd.Context(), s, results, study.Options{Data: f.Data, Threads: f.Jobs, Flags: further})
		if err != nil {
			return err
		}
		return cmd.Show(page.Document(), false)
	})
}

// declaring returns the models with the sweep of a reproduction: those of the user, unless only the file of the page declares the
// sweep.
func (f *reproduceCommand) declaring(r study.Reproduction) (*config.File, error) {
	models, err := f.load()
	if err != nil || r.File == "" || f.File != "" || slices.Contains(models.SweepNames(), r.Name) {
		return models, err
	}
	if models, err = r.Declaration(); err != nil {
		return nil, err
	}
	return searching(models, data.SearchDirs(f.Data)), nil
}

// further returns the given flags that change the page but not the declaration of the sweep, as words of a command line.
func (f *reproduceCommand) further(cmd *Call) (words []string) {
	if f.File != "" {
		words = append(words, "-f", shell.Word(f.File))
	}
	if len(f.Metrics) > 0 {
		words = append(words, "--metrics", shell.Word(strings.Join(f.Metrics, ",")))
	}
	if cmd.Given("svm") {
		words = append(words, fmt.Sprintf("--svm=%t", f.SVM))
	}
	for _, setting := range f.With {
		words = append(words, "--with", shell.Word(setting))
	}
	return words
}

// taken returns the settings that one of the selected metrics has.
func (f *reproduceCommand) taken(settings []string) (with []string, err error) {
	chosen, err := selected(f.Metrics...)
	for _, text := range settings {
		if err == nil && chosen.SetText(text) == nil {
			with = append(with, text)
		}
	}
	return with, err
}
