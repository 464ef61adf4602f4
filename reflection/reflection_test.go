package reflection

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
	"github.com/fulmar-rpc/fulmar/internal/linkbuf"
	"github.com/fulmar-rpc/fulmar/internal/protoservice"
	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// newReflector returns one of a server with services of its own.
func newReflector(t *testing.T) *reflector {
	t.Helper()
	server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	server.RegisterService(protoservice.PantryServiceDesc, struct{}{})
	Register(server)
	files, err := described()
	if err != nil {
		t.Fatal(err)
	}
	return &reflector{server: server, described: files}
}

// namesOf returns the names of files that were told.
func namesOf(t *testing.T, files [][]byte) (names []string) {
	t.Helper()
	for _, encoded := range files {
		file := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(encoded, file); err != nil {
			t.Fatal(err)
		}
		names = append(names, file.GetName())
	}
	return names
}

func TestAnswer_EveryQuestion(t *testing.T) {
	r, told := newReflector(t), map[string]bool{}
	services := r.answer(&request{kind: askServices}, told).services
	if want := []string{"fulmar.test.v1.Pantry", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}; !slices.Equal(services, want) {
		t.Errorf("services %q", services)
	}
	whole := []string{"pantry.proto", "google/protobuf/empty.proto", "google/protobuf/timestamp.proto"}
	for _, symbol := range []string{"fulmar.test.v1.Pantry", "fulmar.test.v1.Pantry.Put", "fulmar.test.v1.Jar"} {
		if names := namesOf(t, r.answer(&request{kind: askSymbol, text: symbol}, map[string]bool{}).files); !slices.Equal(names, whole) {
			t.Errorf("%s: files %q", symbol, names)
		}
	}
	if names := namesOf(t, r.answer(&request{kind: askFile, text: "google/protobuf/timestamp.proto"}, told).files); len(names) != 1 {
		t.Errorf("a file: %q", names)
	}
	if names := namesOf(t, r.answer(&request{kind: askSymbol, text: "fulmar.test.v1.Jar"}, told).files); !slices.Equal(names, whole[:2]) {
		t.Errorf("without what was told: %q", names)
	}
	for _, asked := range []*request{
		{kind: askFile, text: "grpc/health/v1/health.proto"}, {kind: askSymbol, text: "grpc.health.v1.Health"}, {kind: askSymbol, text: "grpc.health.v1.HealthListResponse"},
	} {
		if names := namesOf(t, r.answer(asked, told).files); !slices.Equal(names, []string{"grpc/health/v1/health.proto"}) {
			t.Errorf("%q: files %q", asked.text, names)
		}
	}
	for _, asked := range []*request{
		{kind: askFile, text: "no.proto"}, {kind: askSymbol, text: "no.Symbol"}, {kind: askSymbol, text: "\xff"},
		{kind: askExtension, text: "fulmar.test.v1.Jar", number: 7}, {kind: askExtensionNumbers, text: "no.Message"},
	} {
		if answer := r.answer(asked, told); answer.code != fulmar.NotFound || answer.message == "" {
			t.Errorf("%+v: %+v", asked, answer)
		}
	}
	if answer := r.answer(&request{}, told); answer.code != fulmar.InvalidArgument {
		t.Errorf("no question: %+v", answer)
	}
	if answer := r.answer(&request{kind: askExtensionNumbers, text: "fulmar.test.v1.Jar"}, told); answer.code != 0 || len(answer.numbers) != 0 {
		t.Errorf("numbers of extensions: %+v", answer)
	}
}

// TestReflection_StreamsDoNotHoldUpAStop: a tool that keeps its stream gets its end.
func TestReflection_StreamsDoNotHoldUpAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := fulmar.NewServer(fulmar.ServerConfig{LocalOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		Register(server)
		if _, err := server.Listen(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx) }()
		client, err := fulmar.NewClient(fulmar.ClientConfig{Local: server})
		if err != nil {
			t.Fatal(err)
		}
		method, err := fulmar.RawProtobufMethod(serviceNames()[0], "ServerReflectionInfo", false)
		if err != nil {
			t.Fatal(err)
		}
		method.ClientStreams, method.ServerStreams = true, true
		stream, err := fulmar.OpenBidiStream[fulmar.Raw, fulmar.Raw](t.Context(), client, method)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&fulmar.Raw{0x3a, 0}); err != nil {
			t.Error(err)
		}
		if answer, err := stream.Recv(); err != nil || len(*answer) == 0 {
			t.Errorf("%v, %v", answer, err)
		}
		synctest.Wait()
		start := time.Now()
		stop()
		if answer, err := stream.Recv(); fulmar.CodeOf(err) != fulmar.Unavailable {
			t.Errorf("in the end: %v, %v", answer, err)
		}
		if err := <-served; err != nil || time.Since(start) > time.Second {
			t.Errorf("Serve returned %v after %v", err, time.Since(start))
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzRequest: any bytes as a request: read, or refused where the library that they are read
// with has an error; the answer has them in it.
func FuzzRequest(f *testing.F) {
	f.Add([]byte{0x3a, 0})
	f.Add([]byte{0x22, 2, 'a', 'b'})
	f.Add([]byte{0x2a, 5, 0x0a, 1, 'x', 0x10, 9})
	f.Fuzz(func(t *testing.T, in []byte) {
		sound := true
		for rest := in; len(rest) > 0 && sound; {
			_, _, n := protowire.ConsumeField(rest)
			if sound = n > 0; sound {
				rest = rest[n:]
			}
		}
		asked := new(request)
		if _, err := (codec{}).ReadBody(in, asked, limits.DefaultMessage(), false); err != nil {
			return
		}
		if !sound {
			t.Errorf("% x is read as %+v", in, asked)
		}
		out := linkbuf.New(linkbuf.NewPool())
		defer out.Release()
		if err := (codec{}).AppendBody(out, &response{asked: asked, code: fulmar.NotFound, message: "m"}, limits.DefaultMessage()); err != nil {
			t.Fatal(err)
		}
		written, _ := out.Peek(out.Len())
		number, kind, n := protowire.ConsumeTag(written)
		if back, m := protowire.ConsumeBytes(written[n:]); number != fieldOriginal || kind != protowire.BytesType || m < 0 || string(back) != string(in) {
			t.Errorf("% x came back as % x", in, back)
		}
	})
}
