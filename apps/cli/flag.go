package cli

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/metrics"
)

// dashed returns the flag of a key: step-size of step_size.
func dashed(key string) string { return strings.ReplaceAll(key, "_", "-") }

func flagName(f table.Field) string { return dashed(f.Key) }

// flagValue is the value of a flag: a field of a command.
type flagValue struct {
	table.Field
	given   bool
	command any // which has the field
}

// Set implements [pflag.Value]. A list that is given replaces the default; given again, it is continued.
func (v *flagValue) Set(text string) error {
	if err := setText(v.Field, text, !v.given); err != nil {
		return unwanted(err.Error())
	}
	if form := meanings[v.Tag.Get("is")].form; form != nil && text != "" {
		if err := form(text); err != nil {
			return unwanted(err.Error())
		}
	}
	v.given = true
	return nil
}

// unwanted is the error for a value that a flag does not accept.
type unwanted string

func (e unwanted) Error() string { return string(e) }

func (v *flagValue) String() string {
	if v.Field.Value.Kind() == reflect.Invalid { // of a zero flagValue
		return ""
	}
	if n := v.Field.Value; v.Tag.Get("unit") == "bytes" {
		return numeral.ExactBytes(n.Int())
	}
	return strings.Join(texts(v.Field), ",")
}

// Type implements [pflag.Value]: the word for the value in help.
func (v *flagValue) Type() string { return kindOf(v.Field) }

// setText sets a field from a text. Lists that are not given for the first time get further elements.
func setText(f table.Field, text string, first bool) error {
	if f.Value.Kind() != reflect.Slice {
		return f.SetText(text)
	}
	list := f
	list.Value = reflect.New(f.Value.Type()).Elem()
	if one := f.Value.Type().Elem(); f.Tag.Get("each") == "true" || f.Tag.Get("arg") != "" {
		item := f
		item.Value = reflect.New(one).Elem()
		if err := item.SetText(text); err != nil {
			return err
		}
		list.Value.Set(reflect.Append(list.Value, item.Value))
	} else if err := list.SetText(text); err != nil {
		return err
	}
	if first {
		f.Value.Set(list.Value)
	} else {
		f.Value.Set(reflect.AppendSlice(f.Value, list.Value))
	}
	return nil
}

// texts returns the value of a field, or the elements of a list, as texts that set them again; none for an empty text.
func texts(f table.Field) []string {
	if f.Value.Kind() != reflect.Slice {
		if text := textOf(f.Value); text != "" {
			return []string{text}
		}
		return nil
	}
	return lists.Of(f.Value.Len(), func(i int) string { return textOf(f.Value.Index(i)) })
}

func textOf(v reflect.Value) string {
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		return time.Duration(v.Int()).String()
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', -1, 64)
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10)
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	}
	return v.String()
}

// kindOf returns the word for the value of a flag: what a text names, or the type.
func kindOf(f table.Field) string {
	t, several := f.Value.Type(), ""
	if t.Kind() == reflect.Slice {
		t = t.Elem()
		if f.Tag.Get("each") != "true" {
			several = "s"
		}
	}
	switch is := f.Tag.Get("is"); {
	case is == "place":
		return "folder" + several
	case is == "output":
		return "file" + several
	case is != "":
		return is + several
	case f.Choices() != nil:
		return "name" + several
	case f.Tag.Get("unit") != "":
		return f.Tag.Get("unit")
	case t == reflect.TypeFor[time.Duration]():
		return "duration" + several
	case t.Kind() == reflect.Bool:
		return "bool" + several
	case t.Kind() == reflect.String:
		return "text" + several
	case t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32:
		return "number" + several
	}
	return "int" + several
}

// usageText returns the description of a flag in help: its doc, its choices and a default that depends on other values.
func usageText(f table.Field) string {
	text := f.Doc
	if c := f.Choices(); c != nil {
		text += ": " + strings.Join(c, ", ")
	}
	if standard := f.Tag.Get("default"); standard != "" {
		text += " (default " + standard + ")"
	}
	return text
}

// addFlags adds flags to a command of the library. c has the fields.
func addFlags(cmd *cobra.Command, c any, flags []table.Field) {
	together, now := map[string][]string{}, map[string]string{}
	for _, f := range flags {
		name := flagName(f)
		_, letter, _ := strings.Cut(f.Tag.Get("flag"), ",")
		if also := f.Tag.Get("also"); also != "" {
			now[also] = name
		}
		flag := cmd.Flags().VarPF(&flagValue{Field: f, command: c}, name, letter, usageText(f))
		if f.Value.Kind() == reflect.Bool {
			flag.NoOptDefVal = "true"
		}
		if f.Tag.Get("default") != "" || f.Value.IsZero() {
			flag.DefValue = ""
		}
		if f.Required {
			_ = cmd.MarkFlagRequired(name)
		}
		if group := f.Tag.Get("together"); group != "" {
			together[group] = append(together[group], name)
		}
	}
	for _, f := range flags {
		for other := range strings.FieldsSeq(f.Tag.Get("without")) {
			if cmd.Flags().Lookup(other) != nil { // a group may be that of commands with other flags
				cmd.MarkFlagsMutuallyExclusive(flagName(f), other)
			}
		}
	}
	if len(now) > 0 {
		cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
			return pflag.NormalizedName(cmp.Or(now[name], name))
		})
	}
	for _, names := range together {
		cmd.MarkFlagsRequiredTogether(names...)
	}
}

// completeFlags lets the shell complete the flags of a command and its sub-commands. The library keeps what is registered, and with it every
// flag, until the process ends: only a command that completes registers.
func completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if v, ok := flag.Value.(*flagValue); ok {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, func(_ *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
				return completeField(v.command, v.Field, args, text)
			})
		}
	})
	for _, sub := range cmd.Commands() {
		completeFlags(sub)
	}
}

// meaning is what a text names.
type meaning struct {
	form      func(text string) error                                // checks the form of a text when the flag is read; nil for none
	check     func(text string) error                                // checks what it names before the command; nil for none
	complete  func(command any, args []string, text string) []string // nil for none
	directive cobra.ShellCompDirective
}

// meanings are the values of the tag `is`: a folder must exist, a place need not; the others are completed.
var meanings = map[string]meaning{
	"folder":  {check: func(text string) error { return findFolder(text) }, directive: cobra.ShellCompDirectiveFilterDirs},
	"place":   {directive: cobra.ShellCompDirectiveFilterDirs},
	"file":    {},
	"output":  {}, // a file that is written
	"address": {form: checkAddress, directive: cobra.ShellCompDirectiveNoFileComp},
	"model":   {complete: declaredNames((*config.File).Names), directive: cobra.ShellCompDirectiveNoFileComp},
	"sweep":   {complete: declaredNames((*config.File).SweepNames), directive: cobra.ShellCompDirectiveNoFileComp},
	"kind":    {complete: func(any, []string, string) []string { return listTitles() }, directive: cobra.ShellCompDirectiveNoFileComp},
	"metric":  {complete: func(any, []string, string) []string { return metrics.Names() }, directive: cobra.ShellCompDirectiveNoFileComp},
	"setting": {complete: settingNames, directive: cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace},
}

// checkAddress returns an error for what is no address to listen on.
func checkAddress(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err == nil {
		return nil
	}
	port = "8080"
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		port = strconv.FormatUint(n, 10)
	}
	return fmt.Errorf("got %q, want HOST:PORT: 127.0.0.1:%s for this machine alone, :%s for all that reach it", text, port, port)
}

// declaredNames completes the names of a file of models.
func declaredNames(names func(*config.File) []string) func(any, []string, string) []string {
	return func(command any, _ []string, _ string) []string {
		reads, ok := command.(interface{ load() (*config.File, error) })
		if !ok {
			return nil
		}
		models, err := reads.load()
		if err != nil {
			return nil
		}
		return names(models)
	}
}

// settingNames completes the keys of the model that is the first argument, as --set writes them.
func settingNames(command any, args []string, _ string) []string {
	reads, ok := command.(interface {
		model(string, ...string) (*config.Model, error)
	})
	if !ok || len(args) == 0 {
		return nil
	}
	m, err := reads.model(args[0])
	if err != nil {
		return nil
	}
	root, _ := table.Parse(table.NewSource(m.Name, string(m.Text())))
	var keys []string
	root.Child("model").Child(m.Name).Leaves("", func(key, _ string) { keys = append(keys, key+"=") })
	return keys
}

// completeField lists the values of a flag or argument.
func completeField(c any, f table.Field, args []string, text string) ([]string, cobra.ShellCompDirective) {
	s, known := meanings[f.Tag.Get("is")]
	choices := f.Choices()
	switch {
	case choices == nil && s.complete != nil:
		choices = s.complete(c, args, text)
	case choices == nil && known:
		return nil, s.directive
	case choices == nil && f.Value.Kind() != reflect.String:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case choices == nil:
		return nil, cobra.ShellCompDirectiveDefault
	}
	if i := strings.LastIndex(text, ",") + 1; i > 0 && f.Value.Kind() == reflect.Slice { // the last element of a list
		choices = slices.Clone(choices)
		for k := range choices {
			choices[k] = text[:i] + choices[k]
		}
	}
	return choices, s.directive | cobra.ShellCompDirectiveNoFileComp
}

// completeArgument lists the values of the argument that follows those given.
func completeArgument(c any, args []table.Field, given []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f := args[min(len(given), len(args)-1)]
	if len(given) >= len(args) && f.Value.Kind() != reflect.Slice {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeField(c, f, given, text)
}

// givenFlags returns the flags of a command that were given, except one, as words of a command line.
func givenFlags(call *Call, except string) (words []string) {
	call.Flags().Visit(func(flag *pflag.Flag) {
		v, ok := flag.Value.(*flagValue)
		switch {
		case flag.Name == except || !ok:
		case v.Field.Value.Kind() == reflect.Bool && v.Field.Value.Bool():
			words = append(words, "--"+flag.Name)
		case v.Tag.Get("each") == "true":
			for _, text := range texts(v.Field) {
				words = append(words, "--"+flag.Name, text)
			}
		case v.Field.Value.Kind() == reflect.Bool:
			words = append(words, fmt.Sprintf("--%s=false", flag.Name))
		default:
			words = append(words, "--"+flag.Name, v.String())
		}
	})
	return words
}
