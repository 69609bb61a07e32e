package shell

import (
	"os/exec"
	"testing"

	"tessera/internal/expect"
)

func TestAWordIsOneArgumentOfTheSameText(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh on this machine")
	}
	for text, want := range map[string]string{
		"runs/a-1_b.c:d,e=f+g@h%i": "runs/a-1_b.c:d,e=f+g@h%i", "": "''", "two words": "'two words'", "it's": `'it'\''s'`,
		`loss.1={ kind = "l1" }`: `'loss.1={ kind = "l1" }'`, "$HOME": "'$HOME'", "~": "'~'", "a;b": "'a;b'", "ünit": "'ünit'", "a\nb": "'a\nb'", "*": "'*'",
	} {
		got := Word(text)
		expect.Equal(t, got, want, text)
		if said, err := exec.Command(sh, "-c", `printf %s `+got).Output(); err != nil || string(said) != text {
			t.Errorf("%q: a shell reads %q, %v", text, said, err)
		}
	}
}
