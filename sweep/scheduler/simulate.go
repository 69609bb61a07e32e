package scheduler

import "time"

// Simulate returns how long tasks take on a number of cores that are equally fast: every core takes the next task, in their order,
// as soon as it has finished one, as the workers of a sweep do. The result is the end of the last task.
func Simulate(tasks []time.Duration, cores int) time.Duration {
	free := make([]time.Duration, max(1, min(cores, len(tasks)))) // when each core has finished
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
