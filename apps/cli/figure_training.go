package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"tessera/internal/regular"
	"tessera/show/figures"
	"tessera/train/checkpoint"
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
	run := shown.path
	path := filepath.Join(run, folder.Metrics)
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return figures.TrainingRun{}, noMetrics(run)
	} else if err != nil {
		return figures.TrainingRun{}, err
	}
	defer file.Close()
	course, err := figures.ReadTraining(shown.label, file)
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
