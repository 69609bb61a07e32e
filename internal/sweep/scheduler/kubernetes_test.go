package scheduler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

// decoder builds the program that decodes a job strictly with the types of k8s.io/api. It is a separate module, because
// nothing else depends on these types.
func decoder(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "decoder")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	cmd.Dir = "testdata/kubernetes"
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=-mod=readonly")
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "module lookup disabled") {
		t.Skip("left out: k8s.io/api is not here; `cd sweep/scheduler/testdata/kubernetes && go mod download` fetches it")
	} else if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestTheKubernetesJobHasTheTypesOfItsAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("left out: it compiles k8s.io/api")
	}
	decoder := decoder(t)
	job, err := example().Kubernetes()
	fatal.If(t, err)
	decoded := func(text string) (string, error) {
		cmd := exec.Command(decoder)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := decoded(job.Text); err != nil || out != example().Label()+"\n" {
		t.Errorf("got %q, %v", out, err)
	}
	without := example()
	without.Generated = true
	if job, err := without.Kubernetes(); err != nil || strings.Contains(job.Text, "tessera-data") {
		t.Errorf("a volume of data that no model reads, %v:\n%s", err, job.Text)
	} else if out, err := decoded(job.Text); err != nil || out != example().Label()+"\n" {
		t.Errorf("without data: got %q, %v", out, err)
	}
	for old, wrong := range map[string]string{
		"backoffLimitPerIndex": "backoffLimitPerIndexes",
		"values: [75, 130]":    "values: [130, 75]",
		"restartPolicy: Never": "restartPolicy: OnFailure",
	} {
		if out, err := decoded(strings.Replace(job.Text, old, wrong, 1)); err == nil {
			t.Errorf("%s is taken: %s", wrong, out)
		}
	}
}
