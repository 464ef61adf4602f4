package codec

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// inlining tells of the code that was generated from codec.thrift how many
// functions the compiler inlines, and how many are too complex for that: with its
// defaults, and with the flag -l=4, which the article has tried.
func inlining(ctx context.Context, root string) ([]string, error) {
	notes := []string{"inlining of what is generated from codec.thrift: functions that can be inlined, and that are too complex; the same with -l=4"}
	for _, generated := range []struct{ name, module, folder string }{
		{fulmar, "bench", "gen/messages"},
		{paperNew, "bench/peers", "gen/kitex/messages"},
		{paperOld, "bench/peers", "gen/apache/messages"},
	} {
		note := generated.name + ":"
		for _, flags := range []string{"-m=2", "-m=2 -l=4"} {
			printed, err := explain(ctx, filepath.Join(root, generated.module), generated.folder, flags)
			if err != nil {
				return nil, err
			}
			can, complex := countInlining(printed, generated.folder)
			note += fmt.Sprintf(" %d can, %d too complex;", can, complex)
		}
		notes = append(notes, strings.TrimSuffix(note, ";"))
	}
	return notes, nil
}

// explain builds a package with flags that make the compiler say what it decides.
func explain(ctx context.Context, module, folder, flags string) ([]byte, error) {
	command := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), "build", "-gcflags="+flags, "./"+folder)
	command.Dir = module
	command.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("building %s of module %s with %s: %w", folder, module, flags, err)
	}
	return stderr.Bytes(), nil
}

// countInlining counts functions by what the compiler has printed about the files
// of a folder. Instances of generic functions from elsewhere do not count.
func countInlining(printed []byte, folder string) (can, complex int) {
	lines := bufio.NewScanner(bytes.NewReader(printed))
	// A line names the whole type of what it is about.
	lines.Buffer(nil, len(printed)+1)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case !strings.HasPrefix(line, folder+"/"):
		case strings.Contains(line, ": can inline "):
			can++
		case strings.Contains(line, ": cannot inline ") && strings.Contains(line, "function too complex"):
			complex++
		}
	}
	return can, complex
}
