package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/internal/lists"
)

// Commands contains the sub-commands by name; the name "data list" is that of a command below data. A command is one file: a struct whose
// tagged fields are its flags and arguments, and one call of Register in init. Other modules register theirs in the same way.
var Commands = part.New[Command]("command")

// Command is a sub-command: a pointer to a struct that is read by the tags of parts (package [table]), as its constructor returns it with the
// defaults. A group of flags that several commands have is an embedded struct. These tags determine flags and arguments:
//
//	flag:"out,o"        a flag --out, and -o for short; without it toml:"step_size" makes a flag --step-size
//	arg:"RUN"           an argument; those of a slice are one or more, those tagged optional:"true" may be missing, least:"2" asks for two
//	want, oneof, doc    range, choices and description; choices may also come from the type of the field
//	required:"true"     the flag must be given
//	is:"folder"         what a text names, which is checked and completed: see [meanings]
//	also:"method"       a former name of the flag
//	each:"true"         a list takes one element each time that the flag is given; other lists are separated by commas
//	default:"all CPUs"  what help says of a default that depends on other values
//	needs:"listen nats" the flag needs one of these flags
//	without:"out set"   the flag cannot be given with one of these
//	together:"NAME"     of all flags with this tag all are given or none
//
// The struct, its groups and the types of its fields may have the method Check() error; a [part.KeyError] names a key. It is called before Do.
type Command interface {
	// Help returns what help says beside the tags.
	Help() Help
	// Do runs the command after its fields were set. Results are written to the output of the call, messages to its error output.
	Do(call *Call) error
}

// Help is the description of a command.
type Help struct {
	Long     string   // further paragraphs; the line of the registry if it is empty
	Examples []string // command lines, at least one
}

// Call is one call of a command: its context, its outputs, and which flags were given.
type Call struct{ *cobra.Command }

// Given reports whether one of the named flags was given.
func (c *Call) Given(flags ...string) bool {
	return slices.ContainsFunc(flags, func(name string) bool { return c.Flags().Changed(name) })
}

// group is a command that has only sub-commands.
type group struct{ example string }

func (g *group) Help() Help          { return Help{Examples: []string{g.example}} }
func (g *group) Do(call *Call) error { return call.Help() }

// addCommands adds the registered commands to the root, each below the command that its name begins with.
func addCommands(root *cobra.Command) {
	at := map[string]*cobra.Command{"": root}
	for _, e := range Commands.All() { // "data" comes before "data list"
		parent, name := "", e.Name
		if i := strings.LastIndex(e.Name, " "); i >= 0 {
			parent, name = e.Name[:i], e.Name[i+1:]
		}
		cmd := newCommand(name, e.About, e.New())
		at[e.Name] = cmd
		at[parent].AddCommand(cmd)
	}
}

func newCommand(name, about string, c Command) *cobra.Command {
	help := c.Help()
	flags, args := fieldsOf(c)
	cmd := &cobra.Command{Use: name + usageOf(flags, args), Short: about, Long: help.Long, Example: "  " + strings.Join(help.Examples, "\n  ")}
	if help.Examples == nil {
		cmd.Example = ""
	}
	cmd.Args = func(cmd *cobra.Command, texts []string) error {
		if err := setArguments(cmd, args, texts); err != nil {
			return err
		}
		return missingFlag(cmd, flags)
	}
	cmd.RunE = work(func(call *Call, _ []string) error {
		if err := checked(call, c, flags, args); err != nil {
			return err
		}
		return c.Do(call)
	})
	cmd.ValidArgsFunction = func(_ *cobra.Command, given []string, text string) ([]string, cobra.ShellCompDirective) {
		return completeArgument(c, args, given, text)
	}
	addFlags(cmd, c, flags)
	return cmd
}

// fieldsOf returns the flags and the arguments of a command or a group of flags.
func fieldsOf(c any) (flags, args []table.Field) {
	for _, f := range table.Fields(c) {
		if f.Tag.Get("arg") != "" {
			args = append(args, f)
		} else {
			flags = append(flags, f)
		}
	}
	if m, ok := c.(extended); ok {
		flags = append(flags, m.More()...)
	}
	return flags, args
}

// extended is a command with flags for keys of parts that it chooses.
type extended interface{ More() []table.Field }

// keysOfAll lists the keys of all parts of a registry, each once, with the default of the first part that has it.
func keysOfAll[T any](r *part.Registry[T]) (fields []table.Field) {
	for _, e := range r.All() {
		for _, f := range table.Fields(e.New()) {
			if !slices.ContainsFunc(fields, func(other table.Field) bool { return other.Key == f.Key }) {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// usageOf returns the arguments and the required flags for the line that shows the usage: " RUN --to FORMAT".
func usageOf(flags, args []table.Field) string {
	var b strings.Builder
	for _, f := range args {
		text := f.Key
		switch {
		case f.Tag.Get("usage") != "":
			text = f.Tag.Get("usage")
		case f.Value.Kind() == reflect.Slice && optional(f):
			text = "[" + text + "]..."
		case f.Value.Kind() == reflect.Slice:
			text += "..."
		case optional(f):
			text = "[" + text + "]"
		}
		b.WriteString(" " + text)
	}
	for _, f := range flags {
		if f.Required {
			b.WriteString(" --" + flagName(f) + " " + strings.ToUpper(kindOf(f)))
		}
	}
	return b.String()
}

func optional(f table.Field) bool { return f.Tag.Get("optional") == "true" }

// noun returns the word for an argument in messages.
func noun(f table.Field) string { return strings.ToLower(f.Key) }

// pathOf returns the name of a command without that of the program: "data list".
func pathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// missing returns the error for an argument or a flag that is not given.
func missing(cmd *cobra.Command, name string, f table.Field) error {
	want := f.Doc
	if c := f.Choices(); c != nil {
		want = "one of " + strings.Join(c, ", ")
	}
	return fmt.Errorf("%s: missing %s, want %s", pathOf(cmd), name, want)
}

func setArguments(cmd *cobra.Command, args []table.Field, texts []string) error {
	all := texts
	for _, f := range args {
		several := f.Value.Kind() == reflect.Slice
		own := texts[:min(1, len(texts))]
		if several {
			own = texts
		}
		texts = texts[len(own):]
		least, _ := strconv.Atoi(f.Tag.Get("least"))
		switch {
		case len(own) == 0 && optional(f):
			continue
		case len(own) == 0 || own[0] == "":
			return missing(cmd, noun(f), f)
		case len(own) < least:
			return fmt.Errorf("%s: got %d %s, want at least %d", pathOf(cmd), len(own), noun(f), least)
		}
		for i, text := range own {
			if err := setText(f, text, i == 0); err != nil {
				return fmt.Errorf("%s: %s: %w", pathOf(cmd), noun(f), err)
			}
		}
	}
	switch {
	case len(texts) == 0:
		return nil
	case len(args) == 0 && cmd.HasSubCommands():
		names := lists.Map(cmd.Commands(), (*cobra.Command).Name)
		return fmt.Errorf("%s: unknown command %q: %s", pathOf(cmd), all[0], table.Suggest(all[0], names))
	case len(args) == 0:
		return fmt.Errorf("%s: got %s, want no argument", pathOf(cmd), table.Quoted(all))
	}
	hint := ""
	if set := cmd.Flag("set"); set != nil && set.Changed && !strings.Contains(set.Value.String(), "=") {
		hint = "; a setting is one word, as in --set train.epochs=3"
	}
	if i := slices.IndexFunc(all, func(text string) bool { return strings.HasSuffix(text, ".toml") }); i >= 0 && cmd.Flag("file") != nil {
		hint = fmt.Sprintf("; --file names a file of models: --file %s", all[i])
	}
	return fmt.Errorf("%s: got %s, want one %s%s", pathOf(cmd), table.Quoted(all), noun(args[len(args)-1]), hint)
}

func missingFlag(cmd *cobra.Command, flags []table.Field) error {
	for _, f := range flags {
		if f.Required && !cmd.Flags().Changed(flagName(f)) {
			return missing(cmd, "--"+flagName(f), f)
		}
	}
	return nil
}

// checked returns the first error of the values of a command that concerns more than one flag, or what a text names.
func checked(call *Call, c Command, flags, args []table.Field) error {
	for _, f := range flags {
		if needs := strings.Fields(f.Tag.Get("needs")); len(needs) > 0 && call.Given(flagName(f)) && !call.Given(needs...) {
			return usagef("--%s: needs --%s", flagName(f), strings.Join(needs, " or --"))
		}
	}
	if err := checkGroups(reflect.ValueOf(c).Elem()); err != nil {
		return err
	}
	if memberOf(call).quiet { // rank 0 has the files
		return nil
	}
	for _, f := range append(args, flags...) {
		if s := meanings[f.Tag.Get("is")]; s.check != nil {
			for _, text := range texts(f) {
				if err := s.check(text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkGroups calls the method Check of the embedded structs and of the struct itself.
func checkGroups(v reflect.Value) error {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous && v.Field(i).Kind() == reflect.Struct {
			if err := checkGroups(v.Field(i)); err != nil {
				return err
			}
		}
	}
	itself := reflect.NewAt(v.Type(), v.Addr().UnsafePointer()) // also of a type that is not exported
	c, ok := itself.Interface().(interface{ Check() error })
	if !ok {
		return nil
	}
	return flagError(c.Check())
}

// flagError returns the error about a key of a part as one about its flag.
func flagError(err error) error {
	if key := table.KeyOf(err); key != "" {
		return usagef("--%s", strings.Replace(err.Error(), key, dashed(key), 1))
	}
	return err
}
