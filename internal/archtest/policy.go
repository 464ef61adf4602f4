package archtest

// group separates what runs in a user's process from what generates code: of
// all packages they share internal/limits only.
type group string

const (
	runtimeGroup   group = "runtime"
	generatorGroup group = "generator"
	testGroup      group = "test helper"
	moduleGroup    group = "nested module"
)

// place says where a folder stands and what it may import. Changing this data
// needs a decision record in docs/adr: do not change it to make a build pass.
type place struct {
	// folder is relative to the root; "x/..." means x and everything below.
	folder string
	group  group
	// line is the level inside the group. Imports point to lower lines only.
	line int
	// public marks what users and the modules that act like users may import.
	public bool
	// thirdParty lists the modules from elsewhere that the package may import,
	// testThirdParty those that only its tests may.
	thirdParty     []string
	testThirdParty []string
	// without lists packages that the folder's code, tests apart, must not
	// import although its line would allow it.
	without []string
	// standard, unless it is nil, lists all packages of the standard library
	// that the folder's code, tests apart, may import.
	standard []string
	// why is the one sentence that explains the restrictions.
	why string
}

const (
	moduleNet      = "golang.org/x/net"
	moduleSys      = "golang.org/x/sys"
	moduleProtobuf = "google.golang.org/protobuf"
	moduleGoleak   = "go.uber.org/goleak"
	moduleCobra    = "github.com/spf13/cobra"
	modulePflag    = "github.com/spf13/pflag"
	moduleCompile  = "github.com/bufbuild/protocompile"
	moduleStatic   = "honnef.co/go/tools"
)

// rootRequirements are the only modules that the root go.mod may require
// directly, and rootRequirementsMax is how many of them at once (D3).
func rootRequirements() []string {
	return []string{moduleNet, moduleSys, moduleProtobuf, moduleGoleak}
}

const rootRequirementsMax = 5

// packagePolicy is the layer table of ARCHITECTURE.md. Packages that are
// planned stand in it too, so that their place is decided before they grow.
func packagePolicy() []place {
	var all []place
	all = append(all, runtimePolicy()...)
	all = append(all, wirePolicy()...)
	all = append(all, generatorPolicy()...)
	return append(all, otherPolicy()...)
}

func runtimePolicy() []place {
	pure := pureStandard()
	return []place{
		{folder: "internal/assert", group: runtimeGroup, line: 0},
		{folder: "internal/limits", group: runtimeGroup, line: 0},

		{
			folder: "internal/byteswap", group: runtimeGroup, line: 1, thirdParty: []string{moduleSys},
			standard: []string{"encoding/binary", "math/bits", "unsafe"},
			why:      "numbers in, bytes out; the one place with assembly keeps to itself (ADR-0002)",
		},
		{folder: "internal/linkbuf", group: runtimeGroup, line: 1},
		{folder: "internal/clock", group: runtimeGroup, line: 1},
		{
			folder: "internal/logtext", group: runtimeGroup, line: 1, standard: []string{"slices", "strconv", "strings", "unicode/utf8"},
			why: "values in, a line of a log out",
		},
		{folder: "internal/peerlog", group: runtimeGroup, line: 1},
		{folder: "internal/workers", group: runtimeGroup, line: 1},
		{
			folder: "internal/thriftwire", group: runtimeGroup, line: 1, standard: pure,
			why: "bytes in, bytes out: no sockets, clocks, goroutines or locks (D9)",
		},

		{folder: "eventloop/...", group: runtimeGroup, line: 2, public: true, thirdParty: []string{moduleSys}, testThirdParty: []string{moduleNet}},
		{folder: "cluster", group: runtimeGroup, line: 2, public: true, thirdParty: []string{moduleNet}, why: "of golang.org/x/net messages of DNS only (ADR-0071)"},
		{
			folder: "observe", group: runtimeGroup, line: 2, public: true, without: []string{"net", "os", "syscall"},
			why: "it counts and logs what it is told, and reaches nothing outside but a logger",
		},
		{
			folder: "thrift", group: runtimeGroup, line: 2, public: true, without: []string{"net", "os", "syscall"},
			why: "a codec touches no socket and no file",
		},
		{
			folder: "thrift/methods", group: runtimeGroup, line: 3, public: true, without: []string{"net", "os", "syscall"},
			why: "it touches no socket and no file",
		},
		{
			folder: "thrift/view", group: runtimeGroup, line: 3, public: true, without: []string{"net", "os", "syscall"},
			why: "it reads and writes parts of messages, and touches no socket and no file",
		},
		{
			folder: "thrift/descriptor", group: runtimeGroup, line: 3, public: true, without: []string{"net", "os", "syscall"},
			why: "it reads what generated code says about itself, and touches no socket and no file",
		},
		{
			folder: "protobuf", group: runtimeGroup, line: 2, public: true, thirdParty: []string{moduleProtobuf}, without: []string{"net", "os", "syscall"},
			why: "a codec touches no socket and no file",
		},
		{folder: "internal/simnet", group: runtimeGroup, line: 2, testThirdParty: []string{moduleNet}},

		{folder: "cluster/registries", group: runtimeGroup, line: 3, public: true, without: []string{"os", "syscall"}, why: "it reaches nothing outside but a logger (ADR-0074)"},
		{folder: "internal/transport", group: runtimeGroup, line: 3},
		{
			folder: "policy", group: runtimeGroup, line: 3, public: true, without: []string{"net", "os", "syscall", "context"},
			why: "data, and state machines that are told what time it is; above cluster and observe, whose types its data has (ADR-0070)",
		},
		{
			folder: ".", group: runtimeGroup, line: 4, public: true, testThirdParty: []string{moduleProtobuf},
			without: []string{modulePath + "/thrift", modulePath + "/protobuf", "syscall"},
			why:     "codecs fit by shape, so a Thrift user never links Protobuf; file descriptors belong to eventloop",
		},
		{folder: "fulmartest", group: runtimeGroup, line: 5, public: true},
		{folder: "reflection", group: runtimeGroup, line: 5, public: true, thirdParty: []string{moduleProtobuf}, without: []string{"net", "os", "syscall"}, why: "a service as users have them"},
		{folder: "health", group: runtimeGroup, line: 5, public: true, thirdParty: []string{moduleProtobuf}, without: []string{"net", "os", "syscall"}, why: "a service as users have them"},
	}
}

// wirePolicy: bytes in, bytes out.
func wirePolicy() []place {
	pure := pureStandard()
	return []place{
		{
			folder: "internal/wire/...", group: runtimeGroup, line: 2, standard: pure,
			why: "bytes in, bytes out: no sockets, clocks, goroutines or locks (D9)",
		},
		{
			folder: "internal/wire/http2", group: runtimeGroup, line: 2, thirdParty: []string{moduleNet}, standard: pure,
			why: "bytes in, bytes out; of golang.org/x/net header compression only, the rest is for tests (ADR-0056)",
		},
		{
			folder: "internal/wire/grpc", group: runtimeGroup, line: 2, standard: append(pure, "encoding/base64"),
			why: "values and bytes in, values and bytes out (ADR-0056)",
		},
	}
}

// pureStandard lists packages of which none waits, locks, logs, reads a clock or
// reaches outside.
func pureStandard() []string {
	return []string{
		"bytes", "cmp", "encoding/binary", "encoding/hex", "errors", "fmt", "iter", "maps",
		"math", "math/bits", "slices", "strconv", "strings", "unicode", "unicode/utf8",
	}
}

func generatorPolicy() []place {
	confined := []string{"net", "os/exec", "plugin"}
	why := "an interface definition from a stranger must not reach the network or start a program (SECURITY.md)"
	return []place{
		{folder: "gen/schema", group: generatorGroup, line: 0, public: true, without: confined, why: why},
		{folder: "internal/idl/...", group: generatorGroup, line: 1, without: confined, why: why},
		{
			folder: "internal/pluginwire", group: generatorGroup, line: 1, without: append([]string{"os"}, confined...),
			why: "bytes in, bytes out: plugin programs are started by cmd/fulmar only (ADR-0036)",
		},
		{folder: "internal/emit/...", group: generatorGroup, line: 2, without: confined, why: why},
		{folder: "internal/outfolder", group: generatorGroup, line: 3, without: confined, why: why},
		{folder: "gen", group: generatorGroup, line: 4, public: true, without: confined, why: why},
		// The only one that starts programs: those that --plugin names.
		{folder: "cmd/fulmar/...", group: generatorGroup, line: 5, thirdParty: []string{moduleCobra, modulePflag, moduleCompile, moduleProtobuf}},
	}
}

func otherPolicy() []place {
	return []place{
		{folder: "internal/testkit", group: testGroup, line: 0, thirdParty: []string{moduleGoleak}},
		{folder: "internal/loadgen", group: testGroup, line: 0},
		{folder: "internal/testservers", group: testGroup, line: 0},
		{folder: "internal/archtest", group: testGroup, line: 1},
		{folder: "internal/registrytest", group: testGroup, line: 1},
		{folder: "internal/testservice", group: testGroup, line: 1},                                        // Generated code, so it uses what generated code uses.
		{folder: "internal/protoservice", group: testGroup, line: 1, thirdParty: []string{moduleProtobuf}}, // So is this.
		{folder: "docs/guide", group: testGroup, line: 1, testThirdParty: []string{moduleProtobuf}},

		// Modules of their own. They use Fulmar as a user does. "*" allows any
		// module from elsewhere: their requirements never reach a user.
		{folder: "examples/...", group: moduleGroup},
		// As in a user's own folder: its module is called example.com/shop, so its
		// tests cannot import internal/testkit and look for leaks with goleak.
		{folder: "examples/quickstart/...", group: moduleGroup, thirdParty: []string{"example.com/shop"}, testThirdParty: []string{moduleGoleak}},
		{folder: "examples/from-kitex/...", group: moduleGroup, thirdParty: []string{"example.com/booking"}, testThirdParty: []string{moduleGoleak}},
		{folder: "contrib/...", group: moduleGroup, thirdParty: []string{"*"}},
		{folder: "contrib/grpccompat", group: moduleGroup, public: true, thirdParty: []string{"*"}},
		{folder: "contrib/etcd", group: moduleGroup, public: true, thirdParty: []string{"*"}},
		{folder: "contrib/yamlpolicy", group: moduleGroup, public: true, thirdParty: []string{"*"}},
		{folder: "contrib/zookeeper", group: moduleGroup, public: true, thirdParty: []string{"*"}},
		// Plugins that a generator of one's own can have in it.
		{folder: "contrib/plugins/mock", group: moduleGroup, public: true},
		{folder: "contrib/plugins/validate", group: moduleGroup, public: true},
		{folder: "test/...", group: moduleGroup, thirdParty: []string{"*"}},
		{folder: "test/grpc/...", group: moduleGroup, thirdParty: []string{"*"}},
		{folder: "test/wire", group: moduleGroup, thirdParty: []string{"*"}}, // Its tests compare framings, which are internal (ADR-0025).
		{folder: "bench/...", group: moduleGroup, thirdParty: []string{"*"}},
		{folder: "tools/...", group: moduleGroup, thirdParty: []string{moduleStatic}},
	}
}
