package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tessera/internal/regular"
	"tessera/report"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

func drawTraining(w *figureWork) (*report.Figure, error) {
	var courses []report.TrainingRun
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
	return report.Training(courses...)
}

// readCourse reads the metrics of a run.
func readCourse(shown shownRun) (report.TrainingRun, error) {
	run := shown.path
	path := filepath.Join(run, folder.Metrics)
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return report.TrainingRun{}, noMetrics(run)
	} else if err != nil {
		return report.TrainingRun{}, err
	}
	defer file.Close()
	course, err := report.ReadTraining(shown.label, file)
	switch {
	case err != nil:
		return course, checkpoint.Errorf(path, "damaged: %v; only this figure needs the file, the run itself is intact", err)
	case len(course.Epochs) == 0:
		return course, noMetrics(run)
	}
	return course, nil
}

// noMetrics is the error of a run without metrics to draw.
func noMetrics(run string) error {
	if _, err := os.Stat(filepath.Join(run, folder.Config)); err != nil {
		return fmt.Errorf("%s: %w", run, folder.ErrNotRun)
	}
	return usagef("%s: no %s to draw: no epoch has finished, or the file was removed", run, folder.Metrics)
}
