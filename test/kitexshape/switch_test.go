package kitexshape_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	guide   = "../../docs/guide/from-kitex.md"
	example = "../../examples/from-kitex"
)

// patience bounds the wait for a program: who waits this long has failed.
const patience = 20 * time.Second

// TestGuide_SwitchesAService does what the guide says to a service on Kitex of more
// than 30 structs: it runs the guide's commands and writes the guide's files, and
// nothing else. What comes of it is the example, whose business code is that of
// before, and both servers are called by both clients. The clone that the guide
// begins with is this one. Modules are downloaded for the service on Kitex, and
// none is while the guide is followed.
func TestGuide_SwitchesAService(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the guide's commands are for GNU tools")
	}
	folder := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root, filepath.Join(folder, "fulmar")); err != nil {
		t.Fatal(err)
	}
	service := filepath.Join(folder, "booking")
	for _, part := range []string{"idl", "hotels"} {
		copyFolder(t, filepath.Join(example, part), filepath.Join(service, part))
	}
	copyFolder(t, "testdata/booking", service)
	generateKitex(t, service)
	download(t, service)
	programs := map[string]string{}
	build(t, service, programs, "Kitex")

	follow(t, folder, service)

	compareWithExample(t, service)
	build(t, service, programs, "Fulmar")
	output := map[string]string{}
	for _, server := range []string{"Kitex", "Fulmar"} {
		for _, client := range []string{"Kitex", "Fulmar"} {
			output[client+" calls "+server] = call(t, programs["server on "+server], programs["client on "+client])
		}
	}
	want := output["Kitex calls Kitex"]
	if strings.Count(want, "\n") != 8 {
		t.Errorf("before the switch the client printed %q", want)
	}
	for who, got := range output {
		if got != want {
			t.Errorf("%s:\n%s\nbefore the switch:\n%s", who, got, want)
		}
	}
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// generateKitex runs Kitex's tool of the version that this module has.
func generateKitex(t *testing.T, service string) {
	t.Helper()
	path := run(t, ".", "go", "tool", "-n", "kitex")
	run(t, service, strings.TrimSpace(path), "-module", "example.com/booking", "-gen-path", "gen", "-no-dependency-check", "idl/booking.thrift")
}

// download fetches the modules that the service's tidy go.mod needs, for no other
// module may need the same versions of them.
func download(t *testing.T, service string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "tidy", "-diff")
	command.Dir = service
	command.Env = append(os.Environ(), "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
}

// build compiles both programs of the service, and adds them to those that there are.
func build(t *testing.T, service string, programs map[string]string, library string) {
	t.Helper()
	folder := t.TempDir()
	for name, source := range map[string]string{"server": ".", "client": "./cmd/client"} {
		program := filepath.Join(folder, name)
		run(t, service, "go", "build", "-o", program, source)
		programs[name+" on "+library] = program
	}
}

// run returns what a command prints.
func run(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	// What the cache holds was verified when it was downloaded.
	command.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=off", "GOSUMDB=off")
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(arguments, " "), err, output, complaints.String())
	}
	return string(output)
}

// follow does what the guide says.
func follow(t *testing.T, folder, service string) {
	t.Helper()
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	// The first line of a program says which it is.
	programs := map[string]string{"// Command booking ": "main.go", "// Command client ": "cmd/client/main.go"}
	commands, files := 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
		language, text := block[1], block[2]
		switch language {
		case "sh":
			where := service
			if cloned, rest, _ := strings.Cut(text, "\n"); strings.HasPrefix(cloned, "git clone ") {
				where, text = folder, rest
			}
			run(t, where, "sh", "-e", "-c", text)
			commands++
		case "go":
			for start, name := range programs {
				if strings.HasPrefix(text, start) {
					if err := os.WriteFile(filepath.Join(service, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
					files++
				}
			}
		}
	}
	if commands != 4 || files != 2 {
		t.Errorf("followed %d blocks of commands and %d files, want 4 and 2", commands, files)
	}
}

// compareWithExample wants the example to be what the steps lead to.
func compareWithExample(t *testing.T, service string) {
	t.Helper()
	switched, committed := sources(t, service), sources(t, example)
	if len(switched) < 8 {
		t.Errorf("the service has %d files", len(switched))
	}
	for name, text := range committed {
		if switched[name] != text {
			t.Errorf("%s is not what the steps of the guide make of it", name)
		}
	}
	for name := range switched {
		if _, found := committed[name]; !found {
			t.Errorf("the example lacks %s", name)
		}
	}
	module, err := os.ReadFile(filepath.Join(service, "go.mod"))
	if err != nil || strings.Contains(string(module), "cloudwego") || !strings.Contains(string(module), "github.com/fulmar-rpc/fulmar v0.0.0\n") {
		t.Errorf("go.mod (%v) is\n%s", err, module)
	}
	structs := regexp.MustCompile(`(?m)^struct `)
	if n := len(structs.FindAllString(committed["idl/booking.thrift"]+committed["idl/common.thrift"], -1)); n < 30 {
		t.Errorf("%d structs are not enough for the claim", n)
	}
}

// sources returns the definitions and the Go files of a service that nobody generates,
// without tests.
func sources(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name == "gen":
			return fs.SkipDir
		case entry.IsDir(), filepath.Ext(name) != ".go" && filepath.Ext(name) != ".thrift", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(filepath.Join(folder, name))
		found[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// call starts the server, has the client call it, and returns what that prints.
func call(t *testing.T, server, client string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	served := exec.Command(server)
	served.Env = append(os.Environ(), "ADDRESS="+address)
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var exit *exec.ExitError
		if err := served.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("wait: %v", err)
		}
	}()
	defer func() {
		if err := served.Process.Kill(); err != nil {
			t.Errorf("the server has ended before it was told to: %v", err)
		}
		<-ended
	}()
	var dialer net.Dialer
	for {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		select {
		case <-ended:
			t.Fatal("the server has ended")
		case <-ctx.Done():
			t.Fatalf("waited %v for the server to listen: %v", patience, err)
		default:
		}
	}
	calling := exec.CommandContext(ctx, client)
	calling.Env = append(os.Environ(), "ADDRESS="+address)
	var complaints strings.Builder
	calling.Stderr = &complaints
	output, err := calling.Output()
	if err != nil {
		t.Errorf("the client: %v\n%s", err, complaints.String())
	}
	return string(output)
}
