package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"tessera/part/table"
)

// parsing matches the prefix that Go's parse functions add to the error of a flag's value.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing ".*": `)

// newRoot returns the command with all sub-commands; each has a separate file.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tessera",
		Short:         "Train auto-encoders that learn the parts of images",
		Long:          "Tessera trains and evaluates models that are declared in models.toml: part-based auto-encoders, classifiers, baselines.\nTo begin: `tessera train swimmer-parts`, or `tessera init` for a models.toml, which `tessera help models` explains.",
		SilenceUsage:  true,
		SilenceErrors: true, // explain prints them
		Version:       versionLine(),
	}
	root.SetVersionTemplate("{{.Version}}\n") // the same line as the command version
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		text := unitless.ReplaceAllString(parsing.ReplaceAllString(err.Error(), ""), "want a number with a unit, as in 30s or 10m")
		return errors.New(text + nearFlag(cmd, err))
	})
	root.AddCommand(
		trainCommand(),
		resumeCommand(),
		runsCommand(),
		sweepCommand(),
		trialCommand(),
		workerCommand(),
		reproduceCommand(),
		evalCommand(),
		compareCommand(),
		reportCommand(),
		uiCommand(),
		attackCommand(),
		encodeCommand(),
		decodeCommand(),
		exportCommand(),
		rankCommand(),
		checkCommand(),
		summaryCommand(),
		figureCommand(),
		serveCommand(),
		listCommand(),
		dataCommand(),
		doctorCommand(),
		versionCommand(),
		initCommand(),
		docsCommand(),
		modelsTopic(),
	)
	wrapHelp(root)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages |", fmt.Sprintf(".FlagUsagesWrapped %d |", helpWidth)))
	return root
}

// nearFlag suggests a flag similar to an unknown one, "" if there is none.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	if s := table.Suggest("--"+unknown.GetSpecifiedName(), names); strings.HasPrefix(s, "did you mean") {
		return ": " + s
	}
	return ""
}
