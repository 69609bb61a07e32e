package cli

import (
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"tessera/docs"
	"tessera/internal/atomicfile"
	"tessera/internal/machine"
	"tessera/internal/train/folder"
)

func init() {
	Commands.Register("docs", "Write man pages, shell completions and the documentation", func() Command { return &docsCommand{} })
}

type docsCommand struct {
	Dir string `arg:"DIR" is:"place" doc:"the folder to write into"`
}

func (f *docsCommand) Help() Help {
	return Help{
		Long: "Write into DIR:\n" +
			"  man1/         man pages; `man -M DIR tessera-train` shows one\n" +
			"  completions/  completions for bash, zsh, fish and PowerShell\n" +
			"  *.md          the documentation: guide has a page for each task, models.md explains models.toml, adding-a-part.md how to write a part in Go",
		Examples: []string{"tessera docs ~/.local/share/tessera", "MANPATH=~/.local/share/tessera: man tessera"},
	}
}

func (f *docsCommand) Do(cmd *Call) error {
	for path, write := range docFiles(cmd.Root()) {
		path = filepath.Join(f.Dir, filepath.FromSlash(path))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = atomicfile.Write(path, write)
		}
		if err != nil {
			return &folder.WriteError{Path: path, Err: err}
		}
	}
	cmd.Println(f.Dir)
	return nil
}

// docFiles returns the functions that write the files of the command docs, by path below its folder.
func docFiles(root *cobra.Command) map[string]func(io.Writer) error {
	files := map[string]func(io.Writer) error{
		"completions/tessera.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completions/_tessera":     root.GenZshCompletion,
		"completions/tessera.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"completions/tessera.ps1":  root.GenPowerShellCompletionWithDesc,
	}
	manPages(root, files)
	pages, _ := fs.Glob(docs.Pages, "*.md") // the patterns are well formed
	guide, _ := fs.Glob(docs.Pages, "guide/*.md")
	for _, page := range append(pages, guide...) {
		files[page] = func(w io.Writer) error {
			text, err := docs.Pages.ReadFile(page)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}
	}
	return files
}

// manPages adds the man pages of a command and its sub-commands, help topics included.
func manPages(cmd *cobra.Command, files map[string]func(io.Writer) error) {
	cmd.DisableAutoGenTag = true
	if strings.Contains("\n"+cmd.Long, "\n  ") { // Markdown would join the lines of a table
		cmd.Long = "    " + strings.ReplaceAll(cmd.Long, "\n", "\n    ")
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { // the library shows the default in place of the value
		kind, usage := pflag.UnquoteUsage(flag)
		if v, ok := flag.Value.(*flagValue); ok && flag.DefValue != "" && kind != "" {
			flag.Usage = fmt.Sprintf("%s (default %s)", usage, strings.Join(texts(v.Field), ","))
		}
		flag.DefValue = strings.ToUpper(kind)
	})
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	files["man1/"+name+".1"] = func(w io.Writer) error {
		return doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "tessera " + machine.Release, Manual: "Tessera", Date: commitTime()}, w)
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			manPages(c, files)
		}
	}
}

// commitTime returns the time of the commit from which the program was built, nil if unknown.
func commitTime() *time.Time {
	at, err := time.Parse(time.RFC3339, buildSetting("vcs.time"))
	if err != nil {
		return nil
	}
	return &at
}

// modelsText is the text of the help topic models.
//
//go:embed models_topic.txt
var modelsText string
