package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera/data"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "List, download and check data sets",
		Args:  cobra.NoArgs,
		RunE:  work(func(cmd *cobra.Command, _ []string) error { return cmd.Help() }),
	}
	cmd.AddCommand(dataListCommand(), dataGetCommand(), dataVerifyCommand())
	return cmd
}

func dataListCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the data sets and where they are found",
		Args:  cobra.NoArgs,
		RunE: work(func(cmd *cobra.Command, _ []string) error {
			return printData(cmd.OutOrStdout(), data.SearchDirs(dir))
		}),
	}
	addDataFlag(cmd, &dir)
	return cmd
}

// printData prints one line per data set.
func printData(out io.Writer, dirs data.Dirs) error {
	t := newTable(out)
	for _, s := range data.List(dirs) {
		t.row(s.Name, state(s), s.About)
	}
	return t.flush()
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

func dataGetCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "get NAME...",
		Short:   "Download data sets and verify their checksums",
		Long:    "Download data sets into the folder --data, $" + data.EnvDir + " or the cache, the first that is given.\nAn interrupted download resumes. Files with the right checksum are kept.",
		Example: "  tessera data get fashion-mnist mnist",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			dirs := data.SearchDirs(dir)
			if len(dirs) == 0 {
				return usagef("no folder for downloads; give --data DIR")
			}
			d := data.Download{Progress: showDownload(cmd.ErrOrStderr())}
			for _, name := range args {
				files, err := d.Get(cmd.Context(), name, dirs[0])
				var missing *data.Error
				if err != nil && !errors.As(err, &missing) {
					return writing(dirs[0], err)
				} else if err != nil {
					return err
				}
				for _, f := range files {
					fmt.Fprintln(cmd.OutOrStdout(), f.Path)
				}
			}
			return nil
		}),
	}
	anyOf(cmd, data.Published())
	known := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("data get: missing data set, want one of %s", strings.Join(data.Published(), ", "))
		}
		return known(cmd, args)
	}
	addDataFlag(cmd, &dir)
	cmd.PreRunE = nil // the folder is created
	return cmd
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

func dataVerifyCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "verify [NAME...]",
		Short: "Verify the checksums of downloaded data sets",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			dirs := data.SearchDirs(dir)
			if len(args) == 0 {
				if args = present(dirs); len(args) == 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), "tessera: no downloaded data set was found: there is nothing to verify")
				}
			}
			return verify(cmd, args, dirs)
		}),
	}
	anyOf(cmd, data.Published())
	addDataFlag(cmd, &dir)
	return cmd
}

// present returns the downloaded sets with at least one file.
func present(dirs data.Dirs) []string {
	var names []string
	for _, s := range data.List(dirs) {
		if slices.ContainsFunc(s.Files, func(f data.FileStatus) bool { return f.Path != "" }) {
			names = append(names, s.Name)
		}
	}
	return names
}

// verify prints the checksum of every file and returns the first error.
func verify(cmd *cobra.Command, names []string, dirs data.Dirs) error {
	var wrong error
	t := newTable(cmd.OutOrStdout())
	for _, name := range names {
		s, err := data.Verify(cmd.Context(), name, dirs)
		if err != nil {
			return err
		}
		for _, f := range s.Files {
			if f.Path == "" {
				t.row(name, f.Name, "missing")
				continue
			}
			if f.Problem != nil {
				t.row(name, f.Name, "wrong", f.Problem)
				continue
			}
			t.row(name, f.Name, "ok", f.SHA256)
		}
		if wrong == nil {
			wrong = s.Problem()
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	return wrong
}
