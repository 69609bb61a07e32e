package train

import (
	"context"
	"testing"
)

func TestNoModelIsAnError(t *testing.T) {
	if _, err := Run(context.Background(), nil, Options{Out: t.TempDir()}); err == nil {
		t.Error("no model is trained")
	}
}
