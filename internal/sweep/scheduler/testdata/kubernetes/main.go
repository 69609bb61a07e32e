// Command kubernetes decodes a Job from standard input strictly, with the types of k8s.io/api. An unknown field, a
// repeated field or a value of another type is an error, which it prints. Otherwise it prints the name of the Job.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	batch "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := check(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var job batch.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		return err
	}
	rules := job.Spec.PodFailurePolicy
	if job.APIVersion != batch.SchemeGroupVersion.String() || job.Kind != "Job" || rules == nil || job.Spec.CompletionMode == nil {
		return errors.New("not an Indexed Job with a pod failure policy")
	}
	if err := checkRules(rules.Rules, &job.Spec); err != nil {
		return err
	}
	fmt.Println(job.Name)
	return nil
}

// checkRules checks rules that the API server checks in addition to types: known actions, ascending exit codes,
// existing containers, restartPolicy Never, and FailIndex only with backoffLimitPerIndex.
func checkRules(rules []batch.PodFailurePolicyRule, spec *batch.JobSpec) error {
	if *spec.CompletionMode != batch.IndexedCompletion || spec.Template.Spec.RestartPolicy != "Never" || spec.BackoffLimitPerIndex == nil {
		return errors.New("want completionMode Indexed, restartPolicy Never and backoffLimitPerIndex")
	}
	for i, rule := range rules {
		switch rule.Action {
		case batch.PodFailurePolicyActionFailIndex, batch.PodFailurePolicyActionIgnore:
		default:
			return fmt.Errorf("rule %d: action %q", i, rule.Action)
		}
		if codes := rule.OnExitCodes; codes != nil {
			if codes.ContainerName == nil || *codes.ContainerName != spec.Template.Spec.Containers[0].Name || codes.Operator != batch.PodFailurePolicyOnExitCodesOpIn {
				return fmt.Errorf("rule %d: container or operator", i)
			}
			for j, code := range codes.Values {
				if code <= 0 || j > 0 && codes.Values[j-1] >= code {
					return fmt.Errorf("rule %d: exit codes %v are not ascending", i, codes.Values)
				}
			}
		}
		for _, pattern := range rule.OnPodConditions {
			if pattern.Type != "DisruptionTarget" || pattern.Status != "True" {
				return fmt.Errorf("rule %d: condition %q", i, pattern.Type)
			}
		}
	}
	return nil
}
