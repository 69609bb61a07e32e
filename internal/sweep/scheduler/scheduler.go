// Package scheduler writes job files with which cluster schedulers run the trials of a sweep, and simulates schedules.
package scheduler

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
	"time"
)

// Job is an array job whose tasks share the folder of a sweep. A task runs `tessera trial FOLDER INDEX`.
type Job struct {
	Sweep    string // name of the sweep
	Folder   string // absolute path of the sweep's folder, the same on all machines
	Work     string // working directory of the tasks; relative paths of data refer to it
	Program  string // path of the program tessera
	Data     string // folder of the data sets; "" if there is none
	Tasks    int    // number of indices, which start at 0
	Parallel int    // maximum number of concurrent tasks; 0: no limit
	PerJob   int    // maximum number of tasks per Slurm job, limited by its MaxArraySize

	Generated bool // the models need no data files
}

// File is a text file for the sweep's folder.
type File struct{ Name, Text string }

//go:embed slurm.sh kubernetes.yaml
var texts embed.FS

// templates contains the texts of the job files.
var templates = template.Must(template.New("").Delims("<<", ">>").
	Funcs(template.FuncMap{"quoted": quoted, "option": option}).ParseFS(texts, "*.sh", "*.yaml"))

// Names of the job files.
const (
	SlurmFile      = "array.sh"
	KubernetesFile = "job.yaml"
	LogsDir        = "logs" // folder for the logs of Slurm's tasks
)

type slurmJob struct {
	Job
	Path        string // path of the script
	First, Last int    // First is the index of the first trial, which is array task 0. The array ends at Last.
	Logs        string
}

// Slurm returns the scripts of the job. There are several if the job has more tasks than a Slurm job may have.
func (j Job) Slurm() ([]File, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	var files []File
	for first := 0; first < j.Tasks; first += j.PerJob {
		one := slurmJob{Job: j, First: first, Last: min(j.PerJob, j.Tasks-first) - 1}
		name := j.Script(first)
		one.Path, one.Logs = filepath.Join(j.Folder, name), filepath.Join(strings.ReplaceAll(j.Folder, "%", "%%"), LogsDir, "%A_%a.log")
		text, err := filled("slurm.sh", one)
		if err != nil {
			return nil, err
		}
		files = append(files, File{name, text})
	}
	return files, nil
}

// Script returns the name of the script that runs an index: array.sh, or array-1.sh, array-2.sh, ...
func (j Job) Script(index int) string {
	if j.Tasks <= j.PerJob {
		return SlurmFile
	}
	return fmt.Sprintf("array-%d.sh", index/j.PerJob+1)
}

// limit matches the maximum number of concurrent tasks in a Slurm script.
var limit = regexp.MustCompile(`(?m)^#SBATCH --array=\S*(%\d+)`)

// Limit returns the maximum number of concurrent tasks in a Slurm script, in the syntax of sbatch: "%2". It returns ""
// if there is no limit.
func Limit(script string) string {
	if found := limit.FindStringSubmatch(script); found != nil {
		return found[1]
	}
	return ""
}

// Kubernetes returns the file of a Kubernetes Indexed Job.
func (j Job) Kubernetes() (File, error) {
	if err := j.check(); err != nil {
		return File{}, err
	}
	if j.Parallel == 0 {
		j.Parallel = j.Tasks
	}
	text, err := filled("kubernetes.yaml", j)
	return File{KubernetesFile, text}, err
}

// check returns an error for a job without tasks and for paths that a script cannot contain.
func (j Job) check() error {
	if j.Tasks < 1 || j.PerJob < 1 || j.Parallel < 0 {
		return fmt.Errorf("scheduler: got %d tasks, %d per job, %d at the same time; want > 0, > 0, >= 0", j.Tasks, j.PerJob, j.Parallel)
	}
	for _, path := range []string{j.Folder, j.Work, j.Program, j.Data} {
		if strings.ContainsAny(path, "\n\r\x00") {
			return fmt.Errorf("scheduler: the path %q contains a line break; give another one", path)
		}
	}
	if j.Folder == "" || j.Work == "" || j.Program == "" {
		return errors.New("scheduler: the folder, the working folder or the program is missing")
	}
	return nil
}

// Label returns the name of the job: the name of the sweep, reduced to the characters and the length that Kubernetes
// allows.
func (j Job) Label() string {
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, "tessera-"+j.Sweep)
	return strings.TrimRight(label[:min(len(label), longestLabel)], "-")
}

// longestLabel is the maximum length of a label. It leaves space for the index that Kubernetes appends to the name of a
// pod.
const longestLabel = 52

func filled(name string, data any) (string, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, data)
	return b.String(), err
}

// quoted returns a text in single quotes for a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// option returns a path in the syntax of an #SBATCH line.
func option(path string) string {
	if !strings.ContainsAny(path, " \t\"'\\#") {
		return path
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}

// Simulate returns the time until the last task ends on equally fast cores. As in a sweep, a core takes the next task, in the
// given order, as soon as it has finished one.
func Simulate(tasks []time.Duration, cores int) time.Duration {
	free := make([]time.Duration, max(1, min(cores, len(tasks)))) // times at which the cores become free
	var end time.Duration
	for _, t := range tasks {
		next := 0
		for i := range free {
			if free[i] < free[next] {
				next = i
			}
		}
		free[next] += t
		end = max(end, free[next])
	}
	return end
}
