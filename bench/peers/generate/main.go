// Command generate makes the messages and services of the peers, each with the
// peer's own tool at the version that go.mod pins.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// prefix is the import path of the output folder.
const prefix = "github.com/fulmar-rpc/fulmar/bench/peers/gen"

func main() {
	idl := flag.String("idl", "", "folder with the interface definitions")
	output := flag.String("o", "", "output folder, which is replaced")
	flag.Parse()
	if err := run(context.Background(), *idl, *output); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, idl, output string) error {
	if idl == "" || output == "" {
		return errors.New("want -idl and -o")
	}
	// The tools take some seconds to build and to start; most often nothing has
	// changed.
	stamp, sum := filepath.Join(output, "inputs.sha256"), ""
	var err error
	if sum, err = inputs(idl); err != nil {
		return err
	}
	if made, err := os.ReadFile(stamp); err == nil && string(made) == sum {
		return nil
	}
	if err := os.RemoveAll(output); err != nil {
		return err
	}
	if err := makeAll(ctx, idl, output); err != nil {
		return err
	}
	if err := constrain(output); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(sum), 0o666)
}

func makeAll(ctx context.Context, idl, output string) error {
	definitions := []string{filepath.Join(idl, "echo.thrift"), filepath.Join(idl, "codec.thrift")}
	for _, thrift := range definitions {
		if err := tool(ctx, "kitex", "-type", "thrift", "-module", "github.com/fulmar-rpc/fulmar/bench/peers",
			"-gen-path", filepath.Join(output, "kitex"), thrift); err != nil {
			return err
		}
	}
	// Its streams over TTHeader are those of its newer interface.
	if err := tool(ctx, "kitex", "-streamx", "-type", "thrift", "-module", "github.com/fulmar-rpc/fulmar/bench/peers",
		"-gen-path", filepath.Join(output, "kitex"), filepath.Join(idl, "tts.thrift")); err != nil {
		return err
	}
	// Kitex makes messages of its own of Protobuf.
	if err := tool(ctx, "kitex", "-type", "protobuf", "-module", "github.com/fulmar-rpc/fulmar/bench/peers",
		"-gen-path", filepath.Join(output, "kitexpb"), "-I", idl, filepath.Join(idl, "echo.proto")); err != nil {
		return err
	}
	if err := apache(ctx, definitions, filepath.Join(output, "apache")); err != nil {
		return err
	}
	for _, file := range []protobufFile{
		{name: "echo.proto", folder: "protobuf", goName: "echopb", plugins: []plugin{{name: "protoc-gen-go"}, {name: "protoc-gen-go-grpc"},
			{name: "protoc-gen-connect-go"}, {name: "protoc-gen-go-drpc"}}},
		{name: "codec.proto", folder: "protobuf/messages", goName: "messagespb", plugins: []plugin{
			{name: "protoc-gen-go"}, {"protoc-gen-go-vtproto", "features=marshal+unmarshal+size"},
		}},
	} {
		if err := protobuf(ctx, idl, file, output); err != nil {
			return err
		}
	}
	return capnProto(ctx, filepath.Join(output, "capnp"))
}

// constrain keeps what was generated, and the libraries that it imports, out of
// builds for systems that the benchmark does not run on.
func constrain(output string) error {
	return filepath.WalkDir(output, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, append([]byte("//go:build linux\n\n"), content...), 0o666)
	})
}

// inputs hashes everything that the output depends on.
func inputs(idl string) (string, error) {
	hash := sha256.New()
	names := []string{"go.mod"}
	for _, name := range []string{"echo.thrift", "echo.proto", "codec.thrift", "codec.proto", "tts.thrift"} {
		names = append(names, filepath.Join(idl, name))
	}
	sources, err := filepath.Glob("generate/*.go")
	if err != nil {
		return "", err
	}
	for _, name := range slices.Concat(names, sources) {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// tool runs a tool of go.mod. Its output counts only if it fails.
func tool(ctx context.Context, name string, arguments ...string) error {
	_, err := pipe(ctx, nil, name, arguments...)
	return err
}

// pipe runs a tool of go.mod with input and returns what it printed.
func pipe(ctx context.Context, input []byte, name string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"tool", name}, arguments...)...)
	var stderr bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(input), &stderr
	stdout, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool %s: %w\n%s%s", name, err, stdout, strings.TrimSpace(stderr.String()))
	}
	return stdout, nil
}
