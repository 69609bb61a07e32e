package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"tessera/config"
)

// modelsTitle lists models; the other titles are those of config.Vocabularies.
const modelsTitle = "models"

func listCommand() *cobra.Command {
	var f modelFlags
	var asJSON bool
	titles := append([]string{modelsTitle}, config.Vocabularies()...)
	cmd := &cobra.Command{
		Use:   "list [" + strings.Join(titles, ", ") + "]",
		Short: "Show what there is, with keys and defaults",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = titles
			}
			all, err := describe(&f, args)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			for i, title := range args {
				if i > 0 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := printList(cmd.OutOrStdout(), title, all[title]); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	anyOf(cmd, titles)
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "the file that declares models")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// describe returns the entries of every title.
func describe(f *modelFlags, titles []string) (map[string][]config.Description, error) {
	all := map[string][]config.Description{}
	for _, title := range titles {
		if list, ok := config.Describe(title); ok {
			all[title] = list
			continue
		}
		models, err := f.load()
		if err != nil {
			return nil, err
		}
		for _, name := range models.Names() {
			m, err := models.Model(name)
			if err != nil {
				return nil, err
			}
			all[title] = append(all[title], config.Description{Name: name, About: m.About, Keys: []config.KeyDescription{}})
		}
	}
	return all, nil
}

// printList prints one title: names with one line each, and under each name its keys.
func printList(out io.Writer, title string, list []config.Description) error {
	fmt.Fprintln(out, title)
	width := 0
	for _, d := range list {
		width = max(width, len(d.Name))
	}
	for _, d := range list {
		fmt.Fprintf(out, "  %-*s  %s\n", width, d.Name, d.About)
		t := newTable(out)
		for _, k := range d.Keys {
			t.row("      "+k.Key, byDefault(k), k.Want, k.About)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	return nil
}

// byDefault says what a key holds when it is not given.
func byDefault(k config.KeyDescription) string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "":
		return "-"
	}
	return "= " + k.Default
}
