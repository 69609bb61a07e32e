package main

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"tessera/internal/tools/internal/module"
)

// repository returns the root of the working tree and the full hash of a commit.
func repository(ctx context.Context, base string) (root, commit string, err error) {
	top, err := module.Output(exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel"))
	if err != nil {
		return "", "", err
	}
	hash, err := module.Output(exec.CommandContext(ctx, "git", "rev-parse", "--verify", "--end-of-options", base+"^{commit}"))
	if err != nil {
		return "", "", fmt.Errorf("--base %s: no such commit: %w", base, err)
	}
	return strings.TrimSpace(top), strings.TrimSpace(hash), nil
}

// buildCommit builds the command of a commit from a copy of its files in the folder work. The working tree is not changed.
func buildCommit(ctx context.Context, root, commit, work, binary string) error {
	archive := exec.CommandContext(ctx, "git", "archive", "--format=zip", "-0", commit)
	archive.Dir = root
	text, err := module.Output(archive)
	if err != nil {
		return err
	}
	files, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		return err
	}
	source := filepath.Join(work, "base")
	if err := os.CopyFS(source, files); err != nil {
		return err
	}
	return build(ctx, source, binary)
}

// build builds the command of the module in a folder. With -trimpath both programs share the build cache.
func build(ctx context.Context, source, binary string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", binary, "./apps/tessera")
	c.Dir = source
	_, err := module.Output(c)
	return err
}
