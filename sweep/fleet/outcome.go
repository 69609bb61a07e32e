package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"tessera/data"
	"tessera/internal/regular"
	"tessera/metrics"
	"tessera/part"
	"tessera/train"
	"tessera/train/folder"
)

// outcome returns the result that ends a trial: a finished run, or an error that every machine would have. Any other error is
// returned: the trial is not at its end.
func (a *attempt) outcome(ctx context.Context, err error) (*result, error) {
	var diverged *train.Diverged
	var notFinite *metrics.NotFinite
	var bad *data.Error
	var setting part.KeyError
	switch {
	case err == nil:
		text, err := regular.ReadFile(filepath.Join(a.dir, evalFile))
		return &result{Digest: sum(text)}, err
	case ctx.Err() != nil:
		return nil, err
	case errors.As(err, &diverged), errors.As(err, &notFinite), errors.As(err, &bad), errors.As(err, &setting):
		return &result{Problem: a.text(err)}, nil
	}
	return nil, err
}

// text is an error for other machines.
func (a *attempt) text(err error) string {
	return cut(strings.ReplaceAll(err.Error(), a.dir, trialPath))
}

// finish sends the run and the result, and takes the trial out of the queue.
func (a *attempt) finish(ctx context.Context, r *result) error {
	r.Protocol, r.Trial, r.Task, r.Worker = protocol, a.task.Trial, a.digest, a.self.Name
	if r.Run == nil {
		files, err := a.files()
		if err != nil {
			return err
		}
		if len(files) > 0 {
			if r.Run, err = a.store.put(ctx, a.prefix(), files); err != nil {
				return err
			}
		}
	}
	text, err := encode(r)
	if err != nil {
		return err
	}
	unique := a.task.Trial + newID()
	if err := a.store.again(ctx, func(ctx context.Context) error {
		_, err := a.store.js.Publish(ctx, a.names.subject("result."+a.task.Trial), text, jetstream.WithMsgID(unique))
		return err
	}); err != nil {
		return err
	}
	what := "done"
	if r.Problem != "" {
		what = "failed: " + r.Problem
	}
	a.options.Log(fmt.Sprintf("%s: %s", a, what))
	_ = a.message.Ack() // if it is lost, the coordinator withdraws the trial
	return nil
}

// String names the trial for people.
func (a *attempt) String() string { return "trial " + a.task.Trial + ", " + a.task.Label }

// prefix begins the names of the objects of this worker for the trial.
func (a *attempt) prefix() string { return a.task.Trial + "-" + a.self.ID }

// files are the files of the run, none if it has no run.
func (a *attempt) files() (files []folder.File, err error) {
	for _, name := range known {
		b, err := regular.ReadFile(filepath.Join(a.dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files = append(files, folder.File{Name: name, Data: b})
	}
	return files, nil
}

// exhausted reports whether a trial was tried too often.
func (r *record) exhausted() bool {
	failures := 0
	for _, t := range r.Tries {
		if t.Problem != "" {
			failures++
		}
	}
	return failures >= mostFailures || len(r.Tries)-failures >= mostLosses
}

// giveUp ends a trial that was tried too often.
func (a *attempt) giveUp(ctx context.Context, rec record) error {
	text := fmt.Sprintf("failed %d times:", len(rec.Tries))
	for _, t := range rec.Tries {
		if t.Problem == "" {
			t.Problem = "the worker ended or lost its connection"
		}
		text += fmt.Sprintf(" on %s: %s;", t.Worker, t.Problem)
	}
	return a.finish(ctx, &result{Problem: cut(strings.TrimSuffix(text, ";")), GaveUp: true})
}
