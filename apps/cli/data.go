package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"tessera/apps/show/doc"
	"tessera/data"
)

func init() {
	Commands.Register("data", "List, download and check data sets", func() Command { return &group{"tessera data list"} })
	Commands.Register("data list", "List the data sets and where they are found", func() Command { return &dataListCommand{} })
	Commands.Register("data get", "Download data sets and verify their checksums", func() Command { return &dataGetCommand{} })
	Commands.Register("data verify", "Verify the checksums of downloaded data sets", func() Command { return &dataVerifyCommand{} })
}

// published is the name of a data set that can be downloaded.
type published string

func (published) Choices() []string { return data.Published() }

type dataListCommand struct {
	dataFlag
	jsonFlag
}

func (f *dataListCommand) Help() Help { return Help{Examples: []string{"tessera data list"}} }

func (f *dataListCommand) Do(cmd *Call) error {
	return cmd.Show(&doc.Document{Blocks: []doc.Block{dataTable(data.SearchDirs(f.Data))}}, f.JSON)
}

// dataTable has a row for each data set.
func dataTable(dirs data.Dirs) *doc.Table {
	t := &doc.Table{Key: "data", Columns: []doc.Column{{Key: "name"}, {Key: "state"}, {Key: "about", Wrap: true}}}
	for _, s := range data.List(dirs) {
		t.Row(s.Name, state(s), s.About)
	}
	return t
}

// state returns in words whether a set can be used.
func state(s data.Status) string {
	if s.Origin != data.Downloaded {
		return string(s.Origin)
	}
	found := 0
	for _, f := range s.Files {
		if f.Path != "" {
			found++
		}
	}
	switch found {
	case len(s.Files):
		return "found"
	case 0:
		return "not found"
	}
	return fmt.Sprintf("%d of %d files", found, len(s.Files))
}

type dataGetCommand struct {
	Names []published `arg:"NAME" doc:"data sets"`
	Data  string      `flag:"data" is:"place" doc:"folder for the data sets, created if necessary" default:"$TESSERA_DATA, or the cache"`
}

func (f *dataGetCommand) Help() Help {
	return Help{
		Long:     "Download data sets into the folder --data, $" + data.EnvDir + " or the cache, the first that is given.\nAn interrupted download resumes. Files with the right checksum are kept.",
		Examples: []string{"tessera data get fashion-mnist mnist"},
	}
}

func (f *dataGetCommand) Do(cmd *Call) error {
	dirs := data.SearchDirs(f.Data)
	if len(dirs) == 0 {
		return usagef("no folder for downloads; give --data DIR")
	}
	d := data.Download{Progress: showDownload(cmd.ErrOrStderr())}
	for _, name := range f.Names {
		files, err := d.Get(cmd.Context(), string(name), dirs[0])
		if _, ok := errors.AsType[*data.Error](err); err != nil && !ok {
			return writing(dirs[0], err)
		} else if err != nil {
			return err
		}
		for _, f := range files {
			if err := cmd.wrote(f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// showDownload prints a line for each started file and for each failed mirror.
func showDownload(out io.Writer) func(data.Progress) {
	var last, failed string
	return func(p data.Progress) {
		switch {
		case p.Err != nil: // the error of the command has the problem of each mirror, if none provides the file
			failed = fmt.Sprintf("%s: %v\n", p.URL, p.Err)
		case p.URL != last:
			fmt.Fprint(out, failed)
			failed = ""
			last = p.URL
			fmt.Fprintln(out, p.URL)
		}
	}
}

type dataVerifyCommand struct {
	Names []published `arg:"NAME" optional:"true" doc:"data sets; without one, all that are found"`
	dataFlag
	jsonFlag
}

func (f *dataVerifyCommand) Help() Help {
	return Help{Examples: []string{"tessera data verify fashion-mnist"}}
}

func (f *dataVerifyCommand) Do(cmd *Call) error {
	dirs := data.SearchDirs(f.Data)
	if len(f.Names) == 0 {
		if f.Names = present(dirs); len(f.Names) == 0 {
			cmd.say("no downloaded data set was found: there is nothing to verify")
		}
	}
	return verify(cmd, f.Names, dirs, f.JSON)
}

// present returns the downloaded sets with at least one file.
func present(dirs data.Dirs) []published {
	var names []published
	for _, s := range data.List(dirs) {
		if slices.ContainsFunc(s.Files, func(f data.FileStatus) bool { return f.Path != "" }) {
			names = append(names, published(s.Name))
		}
	}
	return names
}

// verify prints the checksum of every file and returns the first error.
func verify(cmd *Call, names []published, dirs data.Dirs, asJSON bool) error {
	var wrong error
	t := &doc.Table{Key: "files", Columns: []doc.Column{{Key: "data"}, {Key: "file"}, {Key: "state"}, {Key: "checksum", Wrap: true}}}
	for _, name := range names {
		s, err := data.Verify(cmd.Context(), string(name), dirs)
		if err != nil {
			return err
		}
		for _, f := range s.Files {
			switch {
			case f.Path == "":
				t.Row(name, f.Name, "missing")
			case f.Problem != nil:
				t.Row(name, f.Name, "wrong", f.Problem.Error())
			default:
				t.Row(name, f.Name, "ok", f.SHA256)
			}
		}
		if wrong == nil {
			wrong = s.Problem()
		}
	}
	d := &doc.Document{}
	d.Add(t)
	return cmp.Or(cmd.Show(d, asJSON), wrong)
}
