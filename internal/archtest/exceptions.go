package archtest

import "slices"

// exceptions lists the places where a rule does not hold, and why. An entry
// that is no longer needed fails the test, so the list shrinks by itself;
// making it longer is a matter for review.
func exceptions() []exception {
	return slices.Concat(variableExceptions(), panicExceptions(), goroutineExceptions(), testServerGoroutines(), transportGoroutines(), http2Goroutines(), grpcGoroutines(), discoveryGoroutines(), rootGoroutines(), unsafeExceptions(), sizeExceptions(), sleepExceptions(), endExceptions(), quoteExceptions())
}

// variableExceptions: tables that never change, and little else.
func variableExceptions() []exception {
	const table = "a table that is only read"
	return []exception{
		{rule: "package variable", file: "eventloop/spin_linux.go", what: "spinsHere", reason: "what the machine allows, asked once"},
		{rule: "package variable", file: "eventloop/spin_read_linux.go", what: "readBudget", reason: "bounds what the whole process wastes"},
		{rule: "package variable", file: "observe/code.go", what: "codeNames", reason: table},
		{rule: "package variable", file: "code.go", what: "exceptionCodes", reason: table},
		{rule: "package variable", file: "code.go", what: "streamExceptionCodes", reason: table},
		{rule: "package variable", file: "health/health.go", what: "statusNames", reason: table},
		{rule: "package variable", file: "health/health.go", what: "serviceDesc", reason: "a description, as generated code has them"},
		{rule: "package variable", file: "gen/schema/golang.go", what: "presenceNames", reason: table},
		{rule: "package variable", file: "gen/schema/schema.go", what: "kindNames", reason: table},
		{rule: "package variable", file: "internal/emit/additions.go", what: "reservedSuffixes", reason: table},
		{rule: "package variable", file: "internal/emit/gotype.go", what: "wireTypes", reason: table},
		{rule: "package variable", file: "internal/emit/imports.go", what: "importNames", reason: table},
		{rule: "package variable", file: "internal/emit/imports.go", what: "localNames", reason: table},
		{rule: "package variable", file: "internal/emit/naming.go", what: "structMethods", reason: table},
		{rule: "package variable", file: "internal/emit/words.go", what: "initialisms", reason: table},
		{rule: "package variable", file: "internal/pluginwire/encode.go", what: "valueKinds", reason: table},
		{rule: "package variable", file: "internal/thriftwire/type.go", what: "layouts", reason: table},
		{
			rule: "package variable", file: "internal/linkbuf/linkbuf_invariants.go", what: "outstanding",
			reason: "exists under the tag invariants only: leak checks must see pools whose owner a test never knew",
		},
		{
			rule: "package variable", file: "thrift/codec.go", what: "appendings",
			reason: "memory that Append takes and gives back empty; calls have a pool of their client's or server's",
		},
		{
			rule: "package variable", file: "thrift/kitex.go", what: "fastWritings",
			reason: "memory that FastWrite takes and gives back empty",
		},
		{
			rule: "package variable", file: "thrift/codec.go", what: "readers",
			reason: "memory that Unmarshal takes and gives back empty; calls have a pool of their client's or server's",
		},
		{
			rule: "package variable", file: "thrift/small_map.go", what: "hasSmallMaps",
			reason: "what the toolchain's maps are, which is found out when the program starts",
		},
		{
			rule: "package variable", file: "thrift/codec.go", what: "Binary",
			reason: "a value of a type without state, named as method descriptors read best: assigning to it changes nothing",
		},
		{
			rule: "package variable", file: "protobuf/codec.go", what: "Binary",
			reason: "a value of a type without state, as that of package thrift",
		},
	}
}

// panicExceptions: mistakes of whoever writes the calling code, which no peer
// and no input can cause.
func panicExceptions() []exception {
	const incomplete = "the resolver admits nothing else: an incomplete switch in this package"
	return []exception{
		{
			rule: "panic", file: "hedge.go", what: "Client.hedged",
			reason: "goes on with a panic of code of the user, which encoding runs, on the goroutine of the call: that of an attempt would end the process",
		},
		{
			rule: "panic", file: "interceptor.go", what: "chooseNames",
			reason: "as OnlyFor, for which it looks at the names",
		},
		{
			rule: "panic", file: "stream.go", what: "StreamsOnlyFor",
			reason: "as OnlyFor",
		},
		{
			rule: "panic", file: "interceptor.go", what: "OnlyFor",
			reason: "wrong at the first start of the program or never: no interceptor, or text that names nothing; going on would leave calls unguarded in silence",
		},
		{rule: "panic", file: "internal/assert/assert.go", what: "That", reason: "panicking is what it is for, under the tag invariants"},
		{rule: "panic", file: "internal/emit/gotype.go", what: "printer.plainType", reason: incomplete},
		{rule: "panic", file: "internal/emit/imports.go", what: "imports.generated", reason: incomplete},
		{rule: "panic", file: "internal/emit/value.go", what: "printer.value", reason: incomplete},
		{
			rule: "panic", file: "internal/linkbuf/buffer.go", what: "Buffer.Commit",
			reason: "the caller broke the contract with Room; going on would lose bytes in silence",
		},
		{
			rule: "panic", file: "internal/linkbuf/buffer.go", what: "Buffer.InsertAt",
			reason: "the offset is an earlier Len; going on would send bytes in another order than meant",
		},
		{
			rule: "panic", file: "internal/linkbuf/buffer.go", what: "Buffer.Truncate",
			reason: "the argument is an earlier Len; going on would send bytes that nobody wrote",
		},
		{rule: "panic", file: "internal/linkbuf/linkbuf_invariants.go", what: "contentCheck.verify", reason: "a check under the tag invariants"},
		{rule: "panic", file: "internal/linkbuf/linkbuf_invariants.go", what: "poolChecks.forgotten", reason: "a check under the tag invariants"},
		{rule: "panic", file: "internal/linkbuf/linkbuf_invariants.go", what: "poolChecks.reused", reason: "a check under the tag invariants"},
		{
			rule: "panic", file: "server.go", what: "Server.RegisterService",
			reason: "wrong at the first start of the program or never: registering twice, nil, or too late; an error would be ignored in every main",
		},
		{
			rule: "panic", file: "thrift/kitex.go", what: "Codec.FastWrite",
			reason: "the signature is Kitex's, has no error, and panics there: a union that is not set, a value that contains itself, a buffer shorter than BLength",
		},
		{
			rule: "panic", file: "thrift/methods/clone.go", what: "FailDepth",
			reason: "a value that contains itself, which no message can be; a copy of it would overflow the stack, and part of one is none",
		},
		{rule: "panic", file: "thrift/lease.go", what: "Lease.Check", reason: "a view that its method lends is used when its call has ended; with an error from each getter it would be no view"},
		{rule: "panic", file: "thrift/view/element.go", what: "View.element", reason: "an index that is out of range, as of a slice"},
		{rule: "panic", file: "thrift/view/edit.go", what: "View.patchOf", reason: "a field for which LoadUntil was not asked: whoever wrote the call knows which fields he uses"},
		{rule: "panic", file: "thrift/view/index.go", what: "Indexed.At", reason: "an index that is out of range, as of a slice"},
		{rule: "panic", file: "thrift/view/list.go", what: "List.At", reason: "an index that is out of range, as of a slice"},
		{rule: "panic", file: "thrift/view/changed.go", what: "Numbers.element", reason: "an index that is out of range, as of a slice"},
		{rule: "panic", file: "thrift/uuid.go", what: "MustParseUUID", reason: "the name says so; for constants in source code"},
	}
}

// goroutineExceptions: who owns the goroutines that a file starts, and what
// ends them.
func goroutineExceptions() []exception {
	return []exception{
		{rule: "goroutine", file: "stream_server.go", what: "go", reason: "tells a stream that ends with the server that the stop begins, and runs briefly; the end of the stream takes it back"},
		{rule: "goroutine", file: "stream_reopen.go", what: "go", reason: "opens a stream again for a receiver with a timeout; ends with that, or with the stream, whose end stops it"},
		{
			rule: "goroutine", file: "admission.go", what: "go",
			reason: "the timer of calls that wait to run, which lets them begin and runs briefly; it stops when none waits",
		},
		{
			rule: "goroutine", file: "call_context.go", what: "go",
			reason: "what a user or package context hangs on the end of a call's context; and what watches for that end, which the call takes back when it ends",
		},
		{
			rule: "goroutine", file: "unknown_stream.go", what: "go",
			reason: "ForwardStreams: sends what the caller sends; ends when the handler has returned, because the stream that it receives from ends with that",
		},
		{
			rule: "goroutine", file: "eventloop/listener.go", what: "go",
			reason: "closes the listener when the context of Serve ends; Serve takes it back before it returns. One ends the engine with the last connection",
		},
		{
			rule: "goroutine", file: "eventloop/tls_handshake.go", what: "go",
			reason: "the timer that closes slow handshakes runs once and returns, and is set while others wait only",
		},
		{
			rule: "goroutine", file: "eventloop/tls_write.go", what: "go",
			reason: "ends when a record is written, or cannot be within the stall timeout, LingerTimeout or the life of the socket; the end of the connection waits for it",
		},
		{
			rule: "goroutine", file: "eventloop/choice_linux.go", what: "go",
			reason: "the monitor of handlers that run inline; it ends when there is little to do, or with the engine, which waits for it",
		},
		{
			rule: "goroutine", file: "eventloop/combine.go", what: "go",
			reason: "at most one for each connection, while others leave bytes faster than a writer can stay; it ends when none are left or a write fails",
		},
		{
			rule: "goroutine", file: "eventloop/epoll_linux.go", what: "go",
			reason: "closes the listener when a poller has failed; it ends when the listening socket is closed",
		},
		{
			rule: "goroutine", file: "eventloop/poller_linux.go", what: "go",
			reason: "one for each poller, and one for each role that is taken over; they end with the engine, which waits for who has the role, or with the handler that they run",
		},
		{
			rule: "goroutine", file: "eventloop/socket_linux.go", what: "go",
			reason: "timers of deadlines, which Close stops; one tells the engine that a deadline for reading has passed, and runs briefly",
		},
		{
			rule: "goroutine", file: "internal/workers/workers.go", what: "go",
			reason: "one for each job that nobody was free for; it ends when nobody needs it for a while, and when the owner closes the pool",
		},
		{
			rule: "goroutine", file: "eventloop/std.go", what: "go",
			reason: "one for each served connection; it ends when the connection is closed; Listener.Serve waits for all of them, and after a failed accept Shutdown",
		},
		{
			rule: "goroutine", file: "fulmartest/server.go", what: "go",
			reason: "Serve of a server; Stop and Kill wait for it, and the end of the test does",
		},
		{
			rule: "goroutine", file: "fulmartest/faults.go", what: "go",
			reason: "ends a fault and runs briefly; the end of the test takes it back",
		},
		{
			rule: "goroutine", file: "internal/loadgen/loadgen.go", what: "go",
			reason: "one for each caller; it ends with the window or the context, and Run waits for all of them",
		},
	}
}

// discoveryGoroutines are those of registries and of targets that are looked up.
func discoveryGoroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "announce.go", what: "go",
			reason: "registers the server, and ends when that has succeeded; the stop ends it and waits for it. One takes it out, which must not hold up the stop; it ends when the registry returns",
		},
		{
			rule: "goroutine", file: "lists.go", what: "go",
			reason: "one for each client whose target is looked up, which runs its resolver; Close ends it and waits for it. A timer for what is due later, which Close stops; it runs briefly",
		},
		{
			rule: "goroutine", file: "cluster/directory.go", what: "go",
			reason: "one for each registered instance, which keeps its file fresh; Withdraw ends it and waits for it",
		},
	}
}

// testServerGoroutines are those around servers of others that tests start.
func testServerGoroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "internal/testservers/server.go", what: "go",
			reason: "waits for a process that the tests started; Kill ends that and waits",
		},
		{
			rule: "goroutine", file: "internal/testservers/proxy.go", what: "go",
			reason: "accepts connections and carries bytes; Close ends all and waits",
		},
		{
			rule: "goroutine", file: "internal/testservers/zookeeper.go", what: "go",
			reason: "closes a connection whose time is over; it is taken back when the answer has come",
		},
		{
			rule: "goroutine", file: "internal/registrytest/lookups.go", what: "go",
			reason: "resolves until Stop, which waits for it, or the test ends",
		},
		{
			rule: "goroutine", file: "internal/registrytest/calls.go", what: "go",
			reason: "serves until stop, which waits for it, or the test ends",
		},
	}
}

// http2Goroutines are those of connections that speak HTTP/2.
func http2Goroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "internal/transport/http2_server.go", what: "go",
			reason: "at most one for each connection, while its peer does not take what is sent at once; it ends when nothing is left or a write fails",
		},
		{
			rule: "goroutine", file: "internal/transport/stream_messages.go", what: "go",
			reason: "a timer makes a stream's handler wait no longer when the call's time is over; it is stopped when that returns",
		},
		{
			rule: "goroutine", file: "internal/transport/grpc_stream.go", what: "go",
			reason: "cancels a stream when its context ends; Release of the stream ends that",
		},
		{
			rule: "goroutine", file: "internal/transport/stream_ending.go", what: "go",
			reason: "what a user or package context hangs on the end of a call's context",
		},
	}
}

// grpcGoroutines are those of clients that speak gRPC.
func grpcGoroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "internal/transport/grpc_conn.go", what: "go",
			reason: "as that of mux_conn.go, in HTTP/2; one for each connection reads it, and ends when it is closed",
		},
		{
			rule: "goroutine", file: "internal/transport/stream_peer.go", what: "go",
			reason: "at most one for each server, which opens a connection, and ends with that, the connect timeout or the client; a timer that closes idle connections, which Close stops",
		},
		{
			rule: "goroutine", file: "internal/transport/grpc_write.go", what: "go",
			reason: "as that of sender.go, in HTTP/2",
		},
		{
			rule: "goroutine", file: "internal/transport/batch_writer.go", what: "go",
			reason: "as that of sender.go, for streams over TTHeader",
		},
		{
			rule: "goroutine", file: "internal/transport/ttstream_conn.go", what: "go",
			reason: "one for each connection reads it, and ends when it is closed",
		},
		{
			rule: "goroutine", file: "internal/transport/ttstream_client.go", what: "go",
			reason: "cancels a stream when its context ends, or its time is over; Release of the stream ends that",
		},
	}
}

// rootGoroutines are those of clients and servers.
func rootGoroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "stop.go", what: "go",
			reason: "calls the user's BeforeStop, which must not hold up the stop; it ends when that returns",
		},
		{
			rule: "goroutine", file: "server.go", what: "go",
			reason: "begins the stop when the context of Serve ends; Serve waits for it",
		},
		{
			rule: "goroutine", file: "client.go", what: "go",
			reason: "one for each server that WarmUp connects to, some at a time; WarmUp waits for them",
		},
		{
			rule: "goroutine", file: "hedge.go", what: "go",
			reason: "one for each attempt of a hedged call, which cancels those that go on and waits for all of them before it returns",
		},
		{
			rule: "goroutine", file: "policy_source.go", what: "go",
			reason: "one for a policy file and one for a source; Client.Close, or the end of Server.Serve, ends both and waits for them",
		},
	}
}

// transportGoroutines are those of calls and their connections.
func transportGoroutines() []exception {
	return []exception{
		{
			rule: "goroutine", file: "internal/transport/peer.go", what: "go",
			reason: "one for each connection that calls share, which reads it; it ends when the connection is closed",
		},
		{
			rule: "goroutine", file: "internal/transport/ping.go", what: "go",
			reason: "at most one for each connection that calls share, while a server is asked for a sign of life; it ends with the answer, its time, or the connection",
		},
		{
			rule: "goroutine", file: "internal/transport/local.go", what: "go",
			reason: "ends the calls of a client that is closed, and runs briefly",
		},
		{
			rule: "goroutine", file: "internal/transport/local_stream.go", what: "go",
			reason: "cancels a stream when its context, its time, its server or its client ends; the end of the stream ends that",
		},
		{
			rule: "goroutine", file: "internal/transport/local_context.go", what: "go",
			reason: "what hangs on the end of a local call's context; the call ends that with itself",
		},
		{
			rule: "goroutine", file: "internal/transport/mux_conn.go", what: "go",
			reason: "the timer of a connection's deadlines, which ends calls and runs briefly; it stops when the connection ends",
		},
		{
			rule: "goroutine", file: "internal/transport/client_conn.go", what: "go",
			reason: "interrupts an exchange whose context ends; the exchange takes it back, and gives the connection up if it came too late",
		},
		{
			rule: "goroutine", file: "internal/transport/pool.go", what: "go",
			reason: "a timer that closes idle connections, which Close stops; it runs briefly",
		},
		{
			rule: "goroutine", file: "internal/transport/pool_dial.go", what: "go",
			reason: "one for each dial, so that a user's Dial cannot hold a call past its deadline; it holds the connection's slot and ends when Dial returns. A timer ends the waiting of a call and one that of a dial; both run briefly",
		},
		{
			rule: "goroutine", file: "internal/transport/sender.go", what: "go",
			reason: "at most one for each connection, while a write has to wait for the peer; it ends when nothing is left to write or the connection fails",
		},
		{
			rule: "goroutine", file: "internal/transport/rest.go", what: "go",
			reason: "a timer that ends the rest of a connection, which is held meanwhile and so outlives it; it runs briefly",
		},
		{
			rule: "goroutine", file: "internal/transport/server_stop.go", what: "go",
			reason: "a timer that lets go of a connection whose peer was told to close it; it is stopped when the connection ends",
		},
		{
			rule: "goroutine", file: "internal/transport/server.go", what: "go",
			reason: "the accept loop, which Serve ends and waits for",
		},
		{
			rule: "goroutine", file: "internal/transport/sweep.go", what: "go",
			reason: "the sweep, which Serve ends and waits for",
		},
	}
}

// unsafeExceptions: why each use is sound. go vet and the race builds, which
// switch on checkptr, agree so far.
func unsafeExceptions() []exception {
	return []exception{
		{
			rule: "unsafe", file: "internal/byteswap/byteswap.go", what: "unsafe",
			reason: "a slice of numbers is looked at as the bytes that it consists of: as many as its length has, for the time of a call, and bytes need no alignment",
		},
		{
			rule: "unsafe", file: "internal/linkbuf/pool.go", what: "unsafe",
			reason: "a pooled slice is kept as the pointer to its first byte, because a slice in an interface would cost an allocation; its capacity is that of its class",
		},
		{
			rule: "unsafe", file: "internal/linkbuf/buffer.go", what: "unsafe",
			reason: "a string is linked as a slice of its bytes (StringData), which the package never writes to and lends for reading only",
		},
		{rule: "unsafe", file: "internal/linkbuf/linkbuf_invariants.go", what: "unsafe", reason: "the address of a chunk is its identity; it is never turned back into a pointer"},
		{
			rule: "unsafe", file: "eventloop/poller_linux.go", what: "unsafe",
			reason: "the address of an array of events, for a system call that is not in package unix: epoll_pwait without telling the scheduler",
		},
		{
			rule: "unsafe", file: "eventloop/raw_linux.go", what: "unsafe",
			reason: "addresses of slices' first bytes, passed to a system call within the expression as package unsafe asks for; a list of them is on the stack and typed, and the slices are kept alive",
		},
		{rule: "unsafe", file: "eventloop/raw_race_linux.go", what: "unsafe", reason: "addresses of slices' first bytes, passed to the race detector"},
		{
			rule: "unsafe", file: "thrift/kitex.go", what: "unsafe",
			reason: "numbers are in memory that was made for numbers, of their size and alignment; a list of pointers is in memory that was made for pointers; Sizeof",
		},
		{
			rule: "unsafe", file: "thrift/structs.go", what: "unsafe",
			reason: "structs are parts of a slice of their type, which is kept with that type, within its length; Sizeof",
		},
		{
			rule: "unsafe", file: "thrift/view/list.go", what: "unsafe",
			reason: "a value of a type of one to 16 bytes without pointers, as its constraint says, is written as one of the same size; lists of those are written as lists of numbers of that size",
		},
		{rule: "unsafe", file: "thrift/view/pass.go", what: "unsafe", reason: "four bytes at a place that the callers have compared with the length; see wordAt for what a slice costs there"},
		{rule: "unsafe", file: "thrift/view/edit.go", what: "unsafe", reason: "a pointer to bytes of a string, or to an interface, is read as what the form beside it says; both are set together; a pointer to the first of patches and their number, set together as well, are a slice in half the space"},
		{rule: "unsafe", file: "thrift/view/view.go", what: "unsafe", reason: "bytes that nobody changes, as a string and the other way round"},
		{rule: "unsafe", file: "thrift/small_map.go", what: "unsafe", reason: "a Go map is a pointer to its header: memory that is laid out as the runtime's is one, where the version and a map of the runtime's say that it is (docs/adr/0075-small-maps-in-pieces.md)"},
		{rule: "unsafe", file: "thrift/map_bytes.go", what: "unsafe", reason: "Sizeof only"},
		{rule: "unsafe", file: "thrift/reader.go", what: "unsafe", reason: "Sizeof only"},
		{
			rule: "unsafe", file: "thrift/read_list.go", what: "unsafe",
			reason: "lists of numbers are parts of words, which hold no pointers and are aligned for all of them; each part is of one list only",
		},
		{rule: "unsafe", file: "thrift/write_list.go", what: "unsafe", reason: "a list of enums is a list of i32, which it is only read as"},
		{
			rule: "unsafe", file: "thrift/write_string.go", what: "unsafe",
			reason: "short strings are copied in words, after a look at the capacity of the slice that they go to",
		},
		{
			rule: "unsafe", file: "thrift/strings.go", what: "unsafe",
			reason: "strings of bytes that nobody writes to: of a copy that only the Reader has, or of a message of which the caller has promised that",
		},
	}
}

// sizeExceptions: files and functions that are longer than a reader likes.
func sizeExceptions() []exception {
	return []exception{
		{
			rule: "size", file: "internal/limits/limits.go", what: "file", max: 1000,
			reason: "the one list of what anybody may ask for: reviewing what a peer can cost means reading it, and it is all comments and numbers",
		},
	}
}

// sleepExceptions: clocks in tests outside synctest bubbles.
func sleepExceptions() []exception {
	return []exception{
		{
			rule: "sleep", file: "call_test.go", what: "TestCall_DeadlinesAndCancellation",
			reason: "cancels a call on a real connection; whether that finds it waiting or not yet begun, the outcome that is checked is the same",
		},
		{
			rule: "clock of the day", file: "admission.go", what: "shedding.refuse",
			reason: "asks whether two refusals are in the same stretch of time; a clock that is set begins another one",
		},
		{rule: "sleep", file: "policy_server_test.go", what: "eventually", reason: "bounds the wait for what must happen: a file is looked at once in a second"},
		{rule: "sleep", file: "multiplex_server_test.go", what: "napper", reason: "its handlers run in bubbles only, which its callers make"},
		{rule: "sleep", file: "docs/guide/discovery_test.go", what: "addressFile.Resolve", reason: "code that the guide shows to users"},
		{rule: "sleep", file: "admission_test.go", what: "sleeper", reason: "its handlers run in bubbles only, which its callers make"},
		{rule: "sleep", file: "eventloop/main_test.go", what: "receive", reason: "bounds the wait for what must happen; also used in bubbles"},
		{rule: "sleep", file: "internal/testkit/leak.go", what: "Baseline.Check", reason: "bounds the wait for what closes by itself, and looks again meanwhile: nothing announces the end of a goroutine"},
		{
			rule: "sleep", file: "internal/testkit/leak_test.go", what: "TestBaseline_WaitsForWhatIsOnItsWayOut",
			reason: "what Check waits for has to end after Check began; if it ends before, the test passes as well",
		},
		{rule: "sleep", file: "test/grpc/interop/service_test.go", what: "respond", reason: "the pause that a request of the test service asks for; no case of the suite does, and the service has it"},
		{rule: "sleep", file: "test/interop/calls/server_test.go", what: "rules.Pause", reason: "the method of the service that pauses, for callers that give up"},
		{rule: "sleep", file: "multiplex_server_test.go", what: "napper", reason: "what it returns is called in bubbles only"},
		{rule: "sleep", file: "internal/loadgen/loadgen_test.go", what: "callers", reason: "what it returns is called in bubbles only"},
	}
}

// quoteExceptions: numbers that are the value of a limit by chance.
func quoteExceptions() []exception {
	const chaos = "a figure of a scenario"
	const another = "a size of memory that is as large as the headers of HTTP/2 may be"
	return []exception{
		{rule: "quoted limit", file: "docs/guide/error-catalogue.md", what: "16,384", reason: "a text that a test compares with what is said"},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "1,000", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "4 MiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "1 KiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "16 MiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "64 MiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "128 MiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "1 MiB", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "200 ms", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "2 s", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "5 ms", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "5 s", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "50 ms", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "20 s", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/chaos.md", what: "100 ms", reason: chaos},
		{rule: "quoted limit", file: "docs/guide/generated-code.md", what: "16 KiB", reason: another},
		{rule: "quoted limit", file: "docs/guide/idl.md", what: "5 B", reason: "a field that is called B"},
		{rule: "quoted limit", file: "docs/guide/benchmarks.md", what: "20", reason: "what Netpoll does with fewer processors"},
		{rule: "quoted limit", file: "docs/guide/network-figures.md", what: "8", reason: "a figure"},
		{rule: "quoted limit", file: "docs/guide/network-figures.md", what: "2", reason: "a figure"},
		{rule: "quoted limit", file: "eventloop/doc.go", what: "16 KiB", reason: another},
		{rule: "quoted limit", file: "eventloop/served.go", what: "16 KiB", reason: another},
		{rule: "quoted limit", file: "thrift/strings.go", what: "16 KiB", reason: another},
		{rule: "quoted limit", file: "README.md", what: "5 ms", reason: "a promise, P7"},
		{rule: "quoted limit", file: "README.md", what: "5 s", reason: "a promise, P11"},
		{rule: "quoted limit", file: "README.md", what: "50 ms", reason: "a promise, P3"},
	}
}

// endExceptions: what may print and end the process.
func endExceptions() []exception {
	const main = "the body of every TestMain: it ends the test binary, and says why"
	return []exception{
		{rule: "exit", file: "internal/testkit/testkit.go", what: "Main", reason: main},
		{rule: "print", file: "internal/testkit/testkit.go", what: "Main", reason: main},
	}
}
