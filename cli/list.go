package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera/config"
	"tessera/table"
)

// The titles of a file's declarations; the other titles are config.Vocabularies.
const (
	modelsTitle = "models"
	sweepsTitle = "sweeps"
)

// metricsTitle is the title of the metrics, which are not declared in a file.
const metricsTitle = "metrics"

func listCommand() *cobra.Command {
	var f modelFlags
	var asJSON bool
	titles := slices.Concat([]string{modelsTitle}, config.Vocabularies(), []string{metricsTitle, sweepsTitle})
	cmd := &cobra.Command{
		Use:   "list [" + strings.Join(titles, ", ") + "]",
		Short: "List models, layers, losses and all other parts, with keys and defaults",
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
				if err := printTitle(cmd.OutOrStdout(), title, all[title]); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	anyOf(cmd, titles)
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file that declares the models, or \""+shippedFile+"\"")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// describe returns the entries of every title.
func describe(f *modelFlags, titles []string) (map[string]any, error) {
	all := map[string]any{}
	for _, title := range titles {
		if title == metricsTitle {
			all[title] = describedMetrics()
			continue
		}
		if list, ok := config.Describe(title); ok {
			all[title] = list
			continue
		}
		models, err := f.load()
		if err != nil {
			return nil, err
		}
		if all[title], err = declared(models, title); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// declared returns the entries of a file's declarations.
func declared(models *config.File, title string) ([]table.Description, error) {
	list := []table.Description{}
	add := func(name, about string) {
		list = append(list, table.Description{Name: name, About: about, Keys: []table.KeyDescription{}})
	}
	if title == sweepsTitle {
		for _, name := range models.SweepNames() {
			s, err := models.Sweep(name)
			if err != nil {
				return nil, err
			}
			add(name, s.About)
		}
		return list, nil
	}
	for _, name := range models.Names() {
		m, err := models.Model(name)
		if err != nil {
			return nil, err
		}
		add(name, m.About)
	}
	return list, nil
}

// printTitle prints the entries of one title.
func printTitle(out io.Writer, title string, entries any) error {
	if described, ok := entries.([]describedMetric); ok {
		return printMetrics(out, described)
	}
	list, _ := entries.([]table.Description)
	return printList(out, title, list)
}

// printList prints one title: names with one line each, and under each name its keys.
func printList(out io.Writer, title string, list []table.Description) error {
	fmt.Fprintln(out, title)
	width := 0
	for _, d := range list {
		width = max(width, len(d.Name))
	}
	for _, d := range list {
		fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, d.Name, d.About), " "))
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

// byDefault describes the default of a key.
func byDefault(k table.KeyDescription) string {
	switch {
	case k.Required:
		return "required"
	case k.Default == "":
		return "-"
	}
	return "= " + k.Default
}
