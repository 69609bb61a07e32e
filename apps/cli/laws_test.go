package cli

import (
	"context"
	"flag"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera/config/part/table"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var update = flag.Bool("update", false, "write the flags of docs/command.md")

// eachField calls do for every flag and argument of every registered command.
func eachField(t *testing.T, do func(t *testing.T, command string, f table.Field)) {
	for _, e := range Commands.All() {
		for _, f := range table.Fields(e.New()) {
			t.Run(e.Name+" "+flagName(f), func(t *testing.T) { do(t, e.Name, f) })
		}
	}
}

// inProcess runs the command in this process.
func inProcess(args ...string) result {
	var stdout, stderr strings.Builder
	code := run(context.Background(), args, &stdout, &stderr)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestEveryFlagHasADescriptionAndARange(t *testing.T) {
	eachField(t, func(t *testing.T, command string, f table.Field) {
		if f.Doc == "" || strings.HasSuffix(f.Doc, ".") || f.Malformed() != nil {
			t.Errorf("description %q, range %q: %v", f.Doc, f.Want, f.Malformed())
		}
		k := f.Value.Type()
		if k.Kind() == reflect.Slice {
			k = k.Elem()
		}
		switch k.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64:
			if f.Want == "" {
				t.Error("a number without a range")
			}
		}
		if is := f.Tag.Get("is"); is != "" {
			if _, ok := meanings[is]; !ok {
				t.Errorf("it is an unknown %q", is)
			}
		}
		flags, _ := fieldsOf(must(Commands.Lookup(command)).New())
		for _, other := range strings.Fields(f.Tag.Get("needs")) {
			if !slices.ContainsFunc(flags, func(g table.Field) bool { return flagName(g) == other }) {
				t.Errorf("it needs --%s, which the command has not", other)
			}
		}
	})
}

func must[T any](value T, ok bool) T {
	if !ok {
		panic("there is none")
	}
	return value
}

// wrongTexts returns texts that a flag must refuse, none if it takes any text.
func wrongTexts(f table.Field) (texts []string) {
	t := f.Value.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case f.Choices() != nil:
		return []string{"no-such-name"}
	case t == reflect.TypeFor[time.Duration]():
		texts = []string{"soon", "5"}
	case f.Tag.Get("is") == "address":
		return []string{"8080", "localhost", "localhost:99999", "[::1"}
	case t.Kind() == reflect.String:
		return nil
	case t.Kind() == reflect.Bool:
		return []string{"perhaps"}
	case t.Kind() == reflect.Float64:
		texts = []string{"many", "NaN", ""}
	case f.Tag.Get("unit") == "bytes":
		texts = []string{"1gbit", "GB", "1e30TB", "-1MB"}
		fallthrough
	default:
		texts = append(texts, "many", "1.5", "", "99999999999999999999")
	}
	if f.Want == "> 0" {
		texts = append(texts, "0", "-1")
	} else if t.Kind() == reflect.Uint64 {
		texts = append(texts, "-1")
	}
	return texts
}

func TestAWrongValueHasOneFormOfError(t *testing.T) {
	form := regexp.MustCompile(`^tessera: (--[a-z-]+|[a-z ]+: [a-z]+): got [^ ].*, want [^ ].*\nsee "tessera [a-z -]+ --help" for the usage\n$`)
	eachField(t, func(t *testing.T, command string, f table.Field) {
		for _, text := range wrongTexts(f) {
			args := append(strings.Fields(command), "--"+flagName(f)+"="+text)
			if f.Tag.Get("arg") != "" {
				if args[len(args)-1] = text; text == "" {
					continue
				}
			}
			if r := inProcess(args...); r.code != exitUsage || !form.MatchString(r.stderr) || r.stdout != "" {
				t.Errorf("%q: exit code %d, %s%s", args, r.code, r.stdout, r.stderr)
			}
		}
	})
}

func TestChoicesAreCompleted(t *testing.T) {
	eachField(t, func(t *testing.T, command string, f table.Field) {
		if f.Tag.Get("arg") != "" && f.Choices() == nil {
			return
		}
		args := append([]string{"__complete"}, strings.Fields(command)...)
		if args = append(args, "--"+flagName(f)+"="); f.Tag.Get("arg") != "" {
			args[len(args)-1] = ""
		}
		completed := strings.Split(inProcess(args...).stdout, "\n")
		for _, c := range f.Choices() {
			if !slices.Contains(completed, c) {
				t.Errorf("%q does not complete %s: %q", args, c, completed)
			}
		}
	})
}

func TestModelsSettingsAndMetricsAreCompleted(t *testing.T) {
	t.Chdir(t.TempDir())
	fatal.If(t, os.WriteFile("models.toml", []byte(smallModels), 0o600))
	for args, want := range map[string]string{
		"train |": "small", "train small --set=|": "train.epochs=", "eval . --metrics=mse,ho|": "mse,hoyer", "sweep |": "figure8", "list |": "losses", "check --fill=|": "clothes",
	} {
		if got := inProcess(append([]string{"__complete"}, strings.Split(strings.ReplaceAll(args, "|", ""), " ")...)...); !slices.Contains(strings.Split(got.stdout, "\n"), want) {
			t.Errorf("%s: got %s, want %s", args, got.stdout, want)
		}
	}
}

// The examples of a command are parsed as when they are run, without looking for the files that they name.
func TestEveryCommandHasAnExampleThatParses(t *testing.T) {
	for _, e := range Commands.All() {
		examples := e.New().Help().Examples
		if len(examples) == 0 || !strings.Contains(examples[0], "tessera ") {
			t.Errorf("%s: the examples are %q", e.Name, examples)
		}
		for _, line := range examples {
			_, line, ok := strings.Cut(strings.ReplaceAll(line, "\\\n", ""), "tessera ")
			line, _, _ = strings.Cut(line, " | ")
			if ok && !strings.Contains(line, "tessera-") {
				expect.NoError(t, parses(strings.Fields(line)), "tessera", line)
			}
		}
	}
}

// parses returns the error of a command line before the command is run.
func parses(line []string) error {
	if line[0] != strings.TrimRight(line[0], "`:") || line[0] == "uses" {
		return nil
	}
	cmd, args, err := newRoot(widest).Find(line)
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err == nil {
		err = cmd.ValidateFlagGroups()
	}
	return err
}

func TestRequiredAndRelatedFlags(t *testing.T) {
	for args, want := range map[string]string{
		"train":                               "train: missing model, want the name of a model",
		"encode . --in x":                     "encode: missing --out, want output file or folder",
		"export .":                            "export: missing --to, want one of bin, csv, npz",
		"figure":                              "figure: missing kind, want one of atoms, reconstructions",
		"data get":                            "data get: missing name, want one of fashion-mnist, mnist",
		"eval a b":                            `eval: got "a", "b", want one run`,
		"train a b.toml":                      `train: got "a", "b.toml", want one model; --file names a file of models: --file b.toml`,
		"serve . --listen 8080":               `--listen: got "8080", want HOST:PORT: 127.0.0.1:8080 for this machine alone, :8080 for all that reach it`,
		"serve . --max-body 1gbit":            `--max-body: got "1gbit", want bytes, such as 500MiB or 2GB`,
		"version x":                           `version: got "x", want no argument`,
		"train a --shard-optimizer":           "--shard-optimizer: needs --distributed",
		"sweep a --lease 3s":                  "--lease: needs --listen or --nats",
		"sweep a --emit slurm --dry-run":      "--dry-run and --emit cannot be given together; give one of them",
		"serve . --tls-key x":                 "--tls-cert is missing: --tls-cert and --tls-key are given together",
		"eval . --split tset":                 `--split: got "tset", want one of train, validation, test; did you mean "test"?`,
		"train a --lr 0.1":                    "unknown flag: --lr: write --set optimizer.learning_rate=0.01",
		"train a --epoch 3":                   `unknown flag: --epoch: did you mean "--epochs"?`,
		"sample . -o x.npy --count 1 --eta 2": "--eta: got 2, want a number in [0,1]",
	} {
		if r := inProcess(strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit code %d, %swant %s", args, r.code, r.stderr, want)
		}
	}
}

// docs/command.md has the flags of every command, and a row of its table for every command.
func TestTheFlagsOfTheDocsAreThoseOfTheCommands(t *testing.T) {
	const path, begin = "../../docs/command.md", "\n## Flags of the commands\n"
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	before, _, _ := strings.Cut(string(text), begin)
	want := before + begin + "\n" + reference()
	if *update {
		fatal.If(t, os.WriteFile(path, []byte(want), 0o644))
	} else if want != string(text) {
		t.Errorf("%s is not that of the tags: go test ./apps/cli -run TestTheFlagsOfTheDocs -update", path)
	}
	for _, c := range newRoot(widest).Commands() {
		if !c.Hidden && c.Name() != "help" && !regexp.MustCompile("(?m)^\\|.*`(help )?"+c.Name()+"[ `]").MatchString(before) {
			t.Errorf("the table of commands has no row of %s", c.Name())
		}
	}
}
