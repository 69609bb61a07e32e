package cli

import (
	"slices"

	"tessera"
	"tessera/apps/show"
	"tessera/config/part/table"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

func init() {
	Commands.Register("calibrate", "Calibrate the probabilities of a classifier", func() Command {
		return &calibrateCommand{runFlags: forRuns(), Method: calibrationMethod(posthoc.Methods()[0])}
	})
}

type calibrationMethod string

func (calibrationMethod) Choices() []string { return posthoc.Methods() }

type calibrateCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Method calibrationMethod `flag:"method" doc:"how probabilities are calibrated"`
	Head   string            `flag:"head" doc:"head that is calibrated, for models with several classifiers"`
	Remove bool              `flag:"remove" doc:"remove all calibrations of the run, and its thresholds"`
}

func (f *calibrateCommand) Help() Help {
	return Help{
		Long: "Fit a calibration of a classifier to the images that were held out for validation (validation of the data set), and keep it in the run. " +
			"eval, predict, serve, export, figures and reports apply it from then on and say so. The table compares accuracy, nll, ece and the Brier score before " +
			"and after, on the validation images, to which the calibration was fitted, and on the test images.\n\n" +
			"temperature divides all logits by one number and keeps every prediction. platt and isotonic have more freedom, need more images and may change " +
			"predictions. A training that continues makes the calibration invalid: fit it again.",
		Examples: []string{"tessera calibrate runs/classifier", "tessera calibrate runs/classifier --method isotonic", "tessera calibrate runs/classifier --remove"},
	}
}

func (f *calibrateCommand) Do(cmd *Call) error {
	run := f.Folder
	options, err := f.options()
	if err != nil {
		return err
	}
	options.Raw = f.Remove // what is there may be damaged
	r, err := tessera.Open(run, options)
	if isPostHoc(err) { // replaced
		warn(cmd, err.Error()+"; it is replaced")
		options.Raw = true
		r, err = tessera.Open(run, options)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if f.Remove {
		return refit.Remove(r)
	}
	if heads := r.ClassHeads(); f.Head != "" && len(heads) > 0 && !slices.Contains(heads, f.Head) || f.Head == "" && len(heads) > 1 {
		return usagef("--head: got %q, want one of %s", f.Head, table.Quoted(heads))
	}
	done, err := refit.Calibrate(cmd.Context(), r, f.Head, string(f.Method))
	if err != nil {
		return err
	}
	return cmd.Show(show.Calibrated(done), f.JSON)
}
