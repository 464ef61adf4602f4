package grpcio_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/notes"
	"github.com/fulmar-rpc/fulmar/test/interop/peer"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// details is a google.rpc.Status: code 8, message "no more notes".
const details = "\x08\x08\x12\x0dno more notes"

// pad is the service in Go, as notes.py has it.
type pad struct{}

var _ notes.NotesServer = pad{}

func (pad) Say(ctx context.Context, note *notes.Note) (*notes.Note, error) {
	switch note.Text {
	case "fail":
		return nil, fulmar.Errorf(fulmar.ResourceExhausted, "no more notes").WithDetails([]byte(details))
	case "metadata":
		call, _ := fulmar.CallFrom(ctx)
		who, _ := call.Metadata().Transient("who")
		raw, _ := call.Metadata().Transient("raw-bin")
		return &notes.Note{Text: fmt.Sprintf("%s %s", who, strings.ReplaceAll(fmt.Sprint([]byte(raw)), " ", ", "))}, nil
	case "long":
		return &notes.Note{Text: strings.Repeat("x", 100_000)}, nil
	case "hang":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return note, errors.Join(fulmar.SetReplyMetadata(ctx, "header-bin", "\x00\xff"), fulmar.SetReplyTrailer(ctx, "trailer", "t"))
}

func (pad) Count(note *notes.Note, stream fulmar.ServerStreamingServer[notes.Note]) error {
	for i := range note.Number {
		if err := stream.Send(&notes.Note{Text: note.Text, Number: i + 1}); err != nil {
			return err
		}
	}
	return nil
}

func (pad) Collect(stream fulmar.ClientStreamingServer[notes.Note, notes.Note]) error {
	var texts []string
	for note, err := range stream.All() {
		if err != nil {
			return err
		}
		texts = append(texts, note.Text)
	}
	return stream.SendAndClose(&notes.Note{Text: strings.Join(texts, "+"), Number: int64(len(texts))})
}

func (pad) Chat(stream fulmar.BidiStreamingServer[notes.Note, notes.Note]) error {
	for note, err := range stream.All() {
		if err != nil {
			return err
		}
		if err := stream.Send(&notes.Note{Text: "you said " + note.Text, Number: note.Number}); err != nil {
			return err
		}
	}
	return nil
}

func script(t *testing.T, arguments ...string) *exec.Cmd {
	return exec.Command(peer.Interpreter(t), append([]string{filepath.Join(peer.Folder(), "python", "notes.py")}, arguments...)...)
}

// TestGRPCIO_Client calls our server from Python.
func TestGRPCIO_Client(t *testing.T) {
	server, err := fulmar.NewServer(fulmar.ServerConfig{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	notes.RegisterNotesServer(server, pad{})
	bound, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	_, port, _ := strings.Cut(bound.String(), ":")
	var problems bytes.Buffer
	command := script(t, "client", port)
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil || strings.TrimSpace(string(out)) != "ok" {
		t.Errorf("%v, %q\n%s", err, out, problems.String())
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestGRPCIO_Server calls a server in Python, which compresses its answers.
func TestGRPCIO_Server(t *testing.T) {
	command := script(t, "server")
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	port, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: "127.0.0.1:" + strings.TrimSpace(port), Protocol: fulmar.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	api := notes.NewNotesClient(client)
	for range 2 {
		t.Run("unary", func(t *testing.T) { unary(t, api) })
		t.Run("failures", func(t *testing.T) { failures(t, api) })
		t.Run("streams", func(t *testing.T) { streams(t, api) })
	}
}

func unary(t *testing.T, api notes.NotesClient) {
	var back map[string]string
	note, err := api.Say(t.Context(), &notes.Note{Text: "hello", Number: -7}, fulmar.ReceiveMetadata(&back))
	if err != nil || note.Text != "hello" || note.Number != -7 {
		t.Errorf("echo: %v, %v", note, err)
	}
	if back["header-bin"] != "\x00\xff" || back["trailer"] != "t" {
		t.Errorf("what came back with it: %q", back)
	}
	ctx := fulmar.WithTransient(fulmar.WithTransient(t.Context(), "who", "go"), "raw-bin", "\x01\x00\xfe")
	if note, err := api.Say(ctx, &notes.Note{Text: "metadata"}); err != nil || note.Text != "go [1, 0, 254]" {
		t.Errorf("metadata: %v, %v", note, err)
	}
	if note, err := api.Say(t.Context(), &notes.Note{Text: "long"}); err != nil || note.Text != strings.Repeat("x", 100_000) {
		t.Errorf("long: %d letters, %v", len(note.GetText()), err)
	}
}

func failures(t *testing.T, api notes.NotesClient) {
	_, err := api.Say(t.Context(), &notes.Note{Text: "fail"})
	var failed *fulmar.Error
	if !errors.As(err, &failed) || failed.Code() != fulmar.ResourceExhausted || !strings.Contains(failed.Error(), "no more notes") || string(failed.Details()) != details {
		t.Errorf("fail: %v", err)
	}
	_, err = api.Say(t.Context(), &notes.Note{Text: "hang"}, fulmar.Timeout(200*time.Millisecond))
	if fulmar.CodeOf(err) != fulmar.DeadlineExceeded {
		t.Errorf("deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, err = api.Say(ctx, &notes.Note{Text: "hang"}); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func streams(t *testing.T, api notes.NotesClient) {
	count, err := api.Count(t.Context(), &notes.Note{Number: 500})
	if err != nil {
		t.Fatal(err)
	}
	next := int64(1)
	for note, err := range count.All() {
		if err != nil || note.Number != next {
			t.Fatalf("count: %v, %v, want %d", note, err, next)
		}
		next++
	}
	if next != 501 {
		t.Errorf("count ended before %d", next)
	}
	collect, err := api.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b", "c"} {
		if err := collect.Send(&notes.Note{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	if note, err := collect.CloseAndRecv(); err != nil || note.Text != "a+b+c" || note.Number != 3 {
		t.Errorf("collect: %v, %v", note, err)
	}
	chats(t, api)
	endless, err := api.Count(t.Context(), &notes.Note{Number: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if note, err := endless.Recv(); err != nil || note.Number != 1 {
		t.Errorf("first: %v, %v", note, err)
	}
	endless.Cancel()
	if _, err := endless.Recv(); fulmar.CodeOf(err) != fulmar.Canceled {
		t.Errorf("a cancelled stream ends with %v", err)
	}
}

func chats(t *testing.T, api notes.NotesClient) {
	chat, err := api.Chat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := []string{"a", strings.Repeat("b", 300_000)}
	var answers []string
	for _, text := range said {
		if err := chat.Send(&notes.Note{Text: text}); err != nil {
			t.Fatal(err)
		}
		note, err := chat.Recv()
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, strings.TrimPrefix(note.Text, "you said "))
	}
	if !slices.Equal(answers, said) {
		t.Error("the answers are others")
	}
	if err := chat.CloseSend(); err != nil {
		t.Error(err)
	}
	if _, err := chat.Recv(); err != io.EOF {
		t.Errorf("chat ends with %v", err)
	}
}
