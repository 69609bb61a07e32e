package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"tessera/show/figures"
	"tessera/train"
	"tessera/train/folder"
)

func drawTraining(w *figureWork) (*figures.Figure, error) {
	var courses []figures.TrainingRun
	runs, err := w.shown()
	if err != nil {
		return nil, err
	}
	for _, run := range runs {
		course, err := readCourse(run)
		if err != nil {
			return nil, err
		}
		courses = append(courses, course)
	}
	return figures.Training(courses...)
}

// readCourse reads the metrics of a run.
func readCourse(shown shownRun) (figures.TrainingRun, error) {
	epochs, err := train.ReadHistory(shown.path)
	if err == nil && len(epochs) == 0 {
		err = noMetrics(shown.path)
	}
	return figures.TrainingRun{Label: shown.label, Epochs: epochs}, err
}

// noMetrics is the error of a run without metrics to draw.
func noMetrics(run string) error {
	if _, err := os.Stat(filepath.Join(run, folder.Config)); err != nil {
		return fmt.Errorf("%s: %w", run, folder.ErrNotRun)
	}
	return usagef("%s: no %s to draw: no epoch has finished, or the file was removed", run, folder.Metrics)
}
