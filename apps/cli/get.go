package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/internal/train/release"
)

func init() {
	Commands.Register("get", "Get trained models from a release", func() Command { return &getCommand{} })
	Commands.Register("pack", "Pack runs into a release, with descriptions and checksums", func() Command { return &packCommand{runFlags: forRuns()} })
}

type getCommand struct {
	Names []string `arg:"NAME" optional:"true" doc:"models; without one, the models of the release are listed"`
	From  string   `flag:"from" is:"place" doc:"folder or address of the release" default:"$TESSERA_MODELS"`
	Out   string   `flag:"out,o" is:"place" doc:"folder of the run, for one model" default:"runs/NAME"`
}

func (f *getCommand) Help() Help {
	return Help{
		Long: "Read trained models from a release, a folder or a web server, verify their checksums, and keep each as a run without a checkpoint:\n" +
			"every command but resume reads it, and a model starts from it by start = { run = \"runs/NAME\" }.",
		Examples: []string{"tessera get --from ~/models", "tessera get parts --from https://example.org/models"},
	}
}

func (f *getCommand) Do(cmd *Call) error {
	from := cmp.Or(f.From, os.Getenv(release.Env))
	switch {
	case from == "":
		return usagef("get: no release: want --from FOLDER-OR-ADDRESS, or $%s", release.Env)
	case f.Out != "" && len(f.Names) != 1:
		return usagef("--out: got %d models, want one", len(f.Names))
	}
	all, err := release.List(cmd.Context(), from)
	if err != nil {
		return err
	}
	if len(f.Names) == 0 {
		t := &doc.Table{Key: "models", Columns: []doc.Column{{Key: "name"}, {Key: "sha256"}}}
		for _, m := range all {
			t.Row(m.Name, m.SHA256)
		}
		return cmd.Show(&doc.Document{Blocks: []doc.Block{t}}, false)
	}
	var chosen []release.Model
	for _, name := range f.Names {
		i := slices.IndexFunc(all, func(m release.Model) bool { return m.Name == name })
		if i < 0 {
			names := lists.Map(all, func(m release.Model) string { return m.Name })
			return usagef("get: %s has no model %q; %s", from, name, cmp.Or(table.Suggest(name, names), "it has none"))
		}
		chosen = append(chosen, all[i])
	}
	for _, m := range chosen {
		run := cmp.Or(f.Out, train.Place(m.Name))
		err := release.Get(cmd.Context(), from, m, run)
		if _, unread := errors.AsType[*data.Error](err); unread {
			return err
		} else if err != nil {
			return writing(run, err)
		}
		if err := cmd.wrote(run); err != nil {
			return err
		}
	}
	return nil
}

type packCommand struct {
	Runs []string `arg:"RUN" is:"folder" doc:"folders of runs; the name of a folder is that of its model in the release"`
	runFlags
	Out     string `flag:"out,o" is:"place" required:"true" doc:"folder of the release; archives of the same name are replaced"`
	Licence string `flag:"licence" doc:"licence of the models, for their descriptions"`
	Limits  string `flag:"limits" doc:"what the models are not good for, for their descriptions"`
}

func (f *packCommand) Help() Help {
	return Help{
		Long: "Write, for each run, NAME.tar.gz with its files but the checkpoint, NAME.md with what it is, how it was trained and what it reaches,\n" +
			"and SHA256SUMS. A web server that serves the folder, or the folder itself, is a release for `tessera get`.",
		Examples: []string{"tessera pack runs/parts runs/classifier -o release --licence CC-BY-4.0"},
	}
}

func (f *packCommand) Do(cmd *Call) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	for _, path := range f.Runs {
		if err := f.pack(cmd, path, options); err != nil {
			return err
		}
	}
	return nil
}

func (f *packCommand) pack(cmd *Call, path string, options tessera.Options) error {
	r, err := tessera.Open(path, options)
	if err != nil {
		return err
	}
	defer r.Close()
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name := filepath.Base(absolute)
	var text bytes.Buffer
	fmt.Fprintf(&text, "# %s\n\n", name)
	measured, err := measure(cmd.Context(), cmd, r)
	if err != nil {
		return err
	}
	d := show.RunDocument(r, measured, false)
	var notes []string
	if f.Licence != "" {
		notes = append(notes, "Licence: "+f.Licence+".")
	}
	if f.Limits != "" {
		notes = append(notes, "Limits: "+f.Limits)
	}
	if len(notes) > 0 {
		fmt.Fprintf(&text, "%s\n\n", strings.Join(notes, " "))
	}
	if err := d.Markdown(&text); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n`tessera get %s` keeps it as runs/%s.\n", name, name)
	m, err := release.Pack(path, name, text.Bytes(), f.Out)
	if err != nil {
		return writing(f.Out, err)
	}
	cmd.say("%s  %s", m.SHA256, m.Name)
	return nil
}
