package scheduler

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var update = flag.Bool("update", false, "write the golden files again")

// example returns a job whose paths need quotes.
func example() Job {
	return Job{Sweep: "Targets of \"p\"", Folder: "/shared/a sweep/it's", Work: "/home/me/my models", Program: "/opt/tessera", Data: "/shared/data", Tasks: 8, Parallel: 2, PerJob: 1001}
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		fatal.If(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	fatal.If(t, err)
	expect.Equal(t, text, string(want), path, "differs; if that is intended, run go test ./scheduler -update")
}

func TestTheScriptsAreTheGoldenOnes(t *testing.T) {
	scripts, err := example().Slurm()
	if err != nil || len(scripts) != 1 {
		t.Fatal(err, len(scripts))
	}
	golden(t, "array.sh.golden", scripts[0].Text)
	job, err := example().Kubernetes()
	fatal.If(t, err)
	golden(t, "job.yaml.golden", job.Text)
	without := example()
	without.Generated = true
	if job, err = without.Kubernetes(); err != nil {
		t.Fatal(err)
	}
	golden(t, "job-generated.yaml.golden", job.Text)
}

func TestTheLimitOfAScriptIsRead(t *testing.T) {
	for _, want := range []int{0, 1, 20} {
		job := example()
		job.Parallel = want
		scripts, err := job.Slurm()
		fatal.If(t, err)
		text := ""
		if want > 0 {
			text = "%" + strconv.Itoa(want)
		}
		expect.Equal(t, Limit(scripts[0].Text), text, want, "at the same time")
	}
}

func TestMoreTasksThanAJobMayHaveTakeSeveralScripts(t *testing.T) {
	job := example()
	job.Tasks, job.PerJob, job.Parallel = 25, 10, 0
	scripts, err := job.Slurm()
	if err != nil || len(scripts) != 3 {
		t.Fatal(err, len(scripts))
	}
	for i, want := range []struct{ name, array, index string }{
		{"array-1.sh", "#SBATCH --array=0-9\n", "$((0 + SLURM_ARRAY_TASK_ID))"},
		{"array-2.sh", "#SBATCH --array=0-9\n", "$((10 + SLURM_ARRAY_TASK_ID))"},
		{"array-3.sh", "#SBATCH --array=0-4\n", "$((20 + SLURM_ARRAY_TASK_ID))"},
	} {
		if s := scripts[i]; s.Name != want.name || !strings.Contains(s.Text, want.array) || !strings.Contains(s.Text, want.index) {
			t.Errorf("script %d is %s:\n%s", i, s.Name, s.Text)
		}
	}
	expect.Equal(t, job.Script(10), "array-2.sh", "index 10 is in")
}

func TestJobsThatNoScriptCanDescribeAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Job){
		"0 tasks":    func(j *Job) { j.Tasks = 0 },
		"line break": func(j *Job) { j.Work = "a\nrm -rf b" },
		"missing":    func(j *Job) { j.Folder = "" },
	} {
		job := example()
		change(&job)
		_, slurm := job.Slurm()
		_, kubernetes := job.Kubernetes()
		for _, err := range []error{slurm, kubernetes} {
			expect.Error(t, err, want)
		}
	}
}

func TestALabelHasWhatANameInKubernetesMayHave(t *testing.T) {
	for name, want := range map[string]string{"Figure_8": "tessera-figure-8", "ß!": "tessera", "a\nb": "tessera-a-b", strings.Repeat("x", 90): "tessera-" + strings.Repeat("x", 44)} {
		expect.Equal(t, (Job{Sweep: name}).Label(), want, name)
	}
}

// stage is a folder in which a script runs. It contains replacements of the programs tessera and scontrol.
type stage struct {
	*testing.T
	dir string
}

func newStage(t *testing.T, tessera string) stage {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("left out: there is no bash")
	}
	s := stage{t, t.TempDir()}
	s.program("scontrol", `echo "$@" >>"`+s.dir+`/scontrol.log"`)
	s.program("tessera it's", tessera)
	return s
}

func (s stage) program(name, text string) {
	s.Helper()
	fatal.If(s, os.WriteFile(filepath.Join(s.dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// run runs the second script of a job as task 3 and returns the exit code and the output.
func (s stage) run(data string, variables ...string) (int, string) {
	s.Helper()
	scripts, err := Job{Sweep: "s", Folder: filepath.Join(s.dir, "a sweep"), Work: s.dir, Program: filepath.Join(s.dir, "tessera it's"), Data: data, Tasks: 20, PerJob: 10}.Slurm()
	fatal.If(s, err)
	path := filepath.Join(s.dir, "script")
	fatal.If(s, os.WriteFile(path, []byte(scripts[1].Text), 0o644))
	if out, err := exec.Command("bash", "-n", path).CombinedOutput(); err != nil {
		s.Fatalf("bash -n: %v\n%s", err, out)
	}
	cmd := exec.Command("bash", path)
	cmd.Env = append([]string{"PATH=" + s.dir + ":" + os.Getenv("PATH"), "SLURM_ARRAY_JOB_ID=77", "SLURM_ARRAY_TASK_ID=3"}, variables...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// requeued returns the recorded calls of scontrol.
func (s stage) requeued() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "scontrol.log")) // no file means that scontrol was not called
	return string(text)
}

func TestTheScriptRunsItsIndexAndPassesOnTheExitCode(t *testing.T) {
	s := newStage(t, `echo "$1|$2|$3|$TESSERA_DATA|$PWD"; exit 5`)
	code, out := s.run("/the data")
	if want := "trial|" + s.dir + "/a sweep|13|/the data|" + s.dir + "\n"; code != 5 || out != want || s.requeued() != "" {
		t.Errorf("exit code %d, want 5; got %q, want %q; scontrol: %s", code, out, want, s.requeued())
	}
	if _, out := s.run("/the data", "TESSERA_DATA=/other"); !strings.Contains(out, "|/other|") {
		t.Errorf("TESSERA_DATA of the cluster is ignored: %s", out)
	}
}

func TestAScriptWhoseTrialWasPreemptedGoesBackToTheQueue(t *testing.T) {
	// The trial signals the shell as Slurm does. While it writes its checkpoint, it gets a second signal.
	s := newStage(t, `trap 'trap "" USR1; echo written; kill -USR1 $PPID; sleep 0.2; exit 75' USR1
kill -USR1 $PPID; for i in $(seq 400); do sleep 0.05; done`)
	code, out := s.run("")
	if code != 75 || strings.Count(out, "written\n") != 1 || s.requeued() != "requeue 77_3\n" {
		t.Errorf("exit code %d, want 75; scontrol: %q\n%s", code, s.requeued(), out)
	}
}

func TestAScriptThatSlurmEndsStopsItsTrial(t *testing.T) {
	s := newStage(t, `trap 'exit 130' TERM; kill -TERM $PPID; for i in $(seq 400); do sleep 0.05; done`)
	if code, out := s.run(""); code != 130 || s.requeued() != "" {
		t.Errorf("exit code %d, want 130; scontrol: %q\n%s", code, s.requeued(), out)
	}
}

func TestASimulatedScheduleGivesEachTaskToTheFirstFreeCore(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		tasks []time.Duration
		cores int
		want  time.Duration
	}{
		{nil, 4, 0},
		{[]time.Duration{3 * s, 2 * s, 4 * s}, 0, 9 * s},
		{[]time.Duration{3 * s, 2 * s, 4 * s}, 1, 9 * s},
		{[]time.Duration{3 * s, 2 * s, 4 * s}, 2, 6 * s}, // core 1: 3; core 2: 2 and 4
		{[]time.Duration{4 * s, 3 * s, 2 * s}, 2, 5 * s}, // core 1: 4; core 2: 3 and 2
		{[]time.Duration{1 * s, 1 * s, 1 * s, 5 * s}, 2, 6 * s},
		{[]time.Duration{3 * s, 2 * s, 4 * s}, 1 << 40, 4 * s},
	} {
		expect.Equal(t, Simulate(c.tasks, c.cores), c.want, c.tasks, "on", c.cores, "cores")
	}
}

func TestAPercentSignInTheFolderIsNoSymbolOfSlurm(t *testing.T) {
	job := example()
	job.Folder = "/shared/50%j"
	scripts, err := job.Slurm()
	fatal.If(t, err)
	for _, want := range []string{"#SBATCH --output=/shared/50%%j/logs/%A_%a.log\n", "trial '/shared/50%j' "} {
		expect.Contains(t, scripts[0].Text, want, "the script")
	}
}
