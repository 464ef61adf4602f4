// Package limits is the one list of what Fulmar allows a peer, a file or a
// configuration to ask for. Each constant gives a default, its unit and its
// reason; the configuration structs refer to them. Reviewing what one peer can
// cost means reading this file.
//
// In every configuration 0 means the default from here and a negative value
// switches the limit off; Or applies that rule.
package limits

import "time"

// Messages and what decoding them may cost.
const (
	// MessageBytes is the longest message, header and body, without a frame's
	// own length field. 16 MiB: Apache Thrift's frame limit is 16,384,000 bytes,
	// so everything that its peers accept fits.
	MessageBytes = 16 << 20

	// Depth is how deep structs and containers may nest when read, written or
	// skipped. Apache Thrift uses 64 as well.
	Depth = 64

	// DecodeBytesBase and DecodeBytesPerWireByte bound the memory that decoding
	// one message may allocate: base + factor x message length, never more than
	// DecodeBytesMax. ADR-0018 derives the factor from the Go shape.
	DecodeBytesBase        = 64 << 10
	DecodeBytesPerWireByte = 64
	DecodeBytesMax         = 256 << 20

	// MethodNameBytes bounds a method name on the wire (Apache Thrift, 2026: the same).
	MethodNameBytes = 1 << 10

	// LinkedStringBytes is from where on a string, or a raw body, is sent from where it
	// is instead of being copied into the message: that saves 9 % of sending 32 KiB, and
	// nothing of 8 KiB (suite paper-net). Who still sends it after its call keeps it.
	LinkedStringBytes = 32 << 10

	// LinkedPartBytes is the same for parts of a view's message, which nobody changes:
	// copying 4 KiB takes 2 % less of an echo's processor time than sending a piece more, 8
	// KiB as much, and 14 KiB 1 % more (suite view, AMD Zen 5).
	LinkedPartBytes = 8 << 10

	// SpareBytes is how much memory for long messages, in pieces that are longer than what
	// one read of a socket brings, a server or a client keeps while nobody uses it: for
	// what it reads, and as much for messages that it puts together. What was not used for
	// SpareAge goes to the garbage collector when that runs.
	SpareBytes = 8 << 20
	SpareAge   = time.Second

	// ErrorMessageBytes bounds the text of an error that leaves for a peer.
	ErrorMessageBytes = 4 << 10

	// ErrorDetailsBytes bounds the details of an error in gRPC. Longer ones are left out: they
	// would be headers, which no window holds back, and most clients take 8 to 16 KiB of those.
	ErrorDetailsBytes = 16 << 10

	// HeaderInfoBytes bounds the part of a TTHeader behind its fixed 14 bytes,
	// read or written, HeaderPairs the keys and values in it, and
	// HeaderTransforms the transform ids, none of which is known. The format
	// allows 262,140 bytes, 65,535 pairs a block and 255 ids, and Kitex takes
	// all of that; HTTP/2 implementations allow 8 to 16 KiB for the same purpose.
	HeaderInfoBytes  = 64 << 10
	HeaderPairs      = 512
	HeaderTransforms = 16

	// DescriptorDepth is how deep what describes a definition nests: types as deep as
	// IDLTypeDepth, in a field of a method of a service.
	DescriptorDepth = IDLTypeDepth + 8

	// ValueDepth is how deep structs that can contain themselves may nest when they
	// are compared, copied or measured: no message that is within Depth comes near
	// it, and a value that does contain itself ends there and not with the stack.
	ValueDepth = 1000

	// JSONDepth is how deep objects and lists may nest in the JSON of structs that
	// write and read it themselves: twice what a message within Depth becomes, in which
	// an entry of a map can be two levels. Reading takes the length times this.
	JSONDepth = 256

	// TextBytes bounds the text of a generated struct, as String and Error return it;
	// TextStringBytes each string within it, TextElements the elements of a
	// container, and TextDepth how deep structs nest. It is a line of a log.
	TextBytes       = 4 << 10
	TextStringBytes = 1 << 10
	TextElements    = 32
	TextDepth       = 10

	// FrameLengthMax is where a frame's length field stops being plausible:
	// above it the four bytes are some other protocol's.
	FrameLengthMax = 0x3fffffff
)

// Connections of a server.
const (
	// DetectTimeout closes a connection whose protocol is unknown this long
	// after its first byte. No protocol needs more than 9 bytes to be told.
	DetectTimeout = 5 * time.Second

	// FirstByteTimeout closes connections that never say anything.
	FirstByteTimeout = 10 * time.Second

	// FrameTimeout and FrameBytesPerSecond: a message must be complete this
	// long after its first byte, plus the time its length takes at this rate. Streams of a
	// connection in gRPC take turns: time in which it brings so much of others does not count.
	FrameTimeout        = 5 * time.Second
	FrameBytesPerSecond = 64 << 10

	// ServerIdleTimeout closes connections without a call. It must stay above
	// ClientIdleTimeout, or clients would reuse connections that are closing.
	ServerIdleTimeout = 10 * time.Minute

	// ServerPingAfter is how long a connection with streams may say nothing until its peer
	// is asked for a sign of life. A process that is stopped answers TCP's own questions.
	ServerPingAfter = time.Minute

	// ServerConnectionAge is how long a connection of HTTP/2 takes new streams, give or take
	// ConnectionAgeJitterPercent: longer than clients of ours use one (ConnectionAge).
	// ServerAgeGrace is how long those that there are may go on then.
	ServerConnectionAge = 2 * time.Hour
	ServerAgeGrace      = time.Hour

	// HandshakeTimeout closes connections whose TLS handshake is not complete: it takes
	// two round trips and a few milliseconds of computing.
	HandshakeTimeout = 10 * time.Second

	// Handshakes bounds the TLS handshakes of a listener at one time, each of which has
	// a goroutine.
	Handshakes = 256

	// HandshakePatience is how long a TLS handshake may take while others wait to
	// begin theirs: clients that begin and do not go on must not keep others out. For half
	// of it they may be silent if twice as many wait as may begin.
	HandshakePatience = time.Second

	// CertificateCheckInterval is how often files of certificates are looked at, at most,
	// when connections begin.
	CertificateCheckInterval = 10 * time.Second

	// WriteStallTimeout closes a connection whose peer reads none of what waits for so long.
	WriteStallTimeout = 30 * time.Second

	// WriteBytesPerSecond is how fast the peer of a write that takes longer than
	// WriteStallTimeout must read: slower than any link, and a peer that takes a
	// byte now and then keeps no goroutine waiting.
	WriteBytesPerSecond = 1 << 10

	// LingerTimeout and LingerBytes bound what is read and thrown away after the
	// server gave up on a connection and said so: closing with unread bytes
	// would reset it, and the peer might lose the last reply. net/http waits
	// 500 ms as well; 256 KiB is what a peer's socket buffer holds.
	LingerTimeout = 500 * time.Millisecond
	LingerBytes   = 256 << 10

	// ReadAheadBytes is how much a connection may receive beyond the message
	// in work before the server stops reading from it.
	ReadAheadBytes = 64 << 10

	// StopGrace is how long a graceful stop still accepts new calls on open
	// connections. Peers that answer in order cannot be told to send no more: their
	// connections close when they have been idle for so long, or with the next answer.
	StopGrace = time.Second

	// BufferedBytesMax bounds the bytes of messages that a server holds for its
	// peers, unless the process has a memory limit: then it is that divided by
	// BufferedShare.
	BufferedBytesMax = 512 << 20
	BufferedShare    = 4

	// ServerCalls bounds calls in progress. A call whose connection is gone
	// counts until its handler returns.
	ServerCalls = 100000

	// ConnectionCalls is how many calls of one connection run at a time where
	// replies may come in any order; then the server stops reading from it.
	ConnectionCalls = 1000

	// QueuedCalls is how many calls of a server may wait to run where fewer run than
	// are in progress: each takes a goroutine and its request. QueueTime is how long
	// one may wait: two tries fit into half a second. CoDel, which queues of networks
	// use, allows as long for a burst.
	QueuedCalls = 1000
	QueueTime   = 100 * time.Millisecond

	// WaitPercent is how much of its time a call may wait to run while a server is
	// overloaded that nobody has told how many calls to run. The rest is for running:
	// of a caller's 5 s more than 2 are left.
	WaitPercent = 45

	// LateCall is how long a call that is late waited for a processor: CoDel's 5 ms. A
	// server is overloaded if in a LateInterval (CoDel's, too) LatePercent of the calls
	// that begin are late, and LateCallsMin of them. Many, not all as with CoDel: the
	// runtime lets some of the newest calls run first.
	LateCall     = 5 * time.Millisecond
	LateInterval = 100 * time.Millisecond
	LatePercent  = 45
	LateCallsMin = 4

	// ShedRefusals within ShedWindow are how many calls a server may refuse because
	// it has no room for them, before it stops reading for ShedPause from
	// connections that bring more. Refusing takes 10 µs of a processor, so 2,000 in
	// 100 ms are a fifth of one.
	ShedRefusals = 2000
	ShedWindow   = 100 * time.Millisecond
	ShedPause    = 20 * time.Millisecond

	// UnsentBytes is how much may wait for a peer to read it before the server
	// stops reading its requests. A short answer counts as 2.5 KiB, which it takes.
	UnsentBytes = 1 << 20

	// PeerTimeout is the longest time for a call that a peer's word counts for.
	PeerTimeout = time.Hour

	// PeerStreamTimeout is the same for a stream, which may last for ever without a word.
	PeerStreamTimeout = 30 * 24 * time.Hour

	// DrainTimeout is how long a graceful stop waits for running calls.
	DrainTimeout = 30 * time.Second

	// ConnectionsReserve is kept back from the process's file descriptors, for
	// files, clients and logs; a listener keeps open connections for at most
	// ConnectionsPercent of the rest.
	ConnectionsReserve = 64
	ConnectionsPercent = 90

	// AcceptBackoffMin and AcceptBackoffMax bound the pause after an accept
	// that failed, for example because no file descriptor was free.
	AcceptBackoffMin = 5 * time.Millisecond
	AcceptBackoffMax = time.Second

	// AcceptRest is how long a listener that stops still accepts, for handshakes
	// that have begun: a round trip, and what a busy machine adds. AcceptRestPause is
	// for how long nothing may be accepted then until nothing waits, AcceptRestMax
	// ends it.
	AcceptRest      = 20 * time.Millisecond
	AcceptRestPause = 3 * time.Millisecond
	AcceptRestMax   = 200 * time.Millisecond

	// UserTimeout is how long sent bytes may stay without acknowledgement until
	// their peer counts as dead. gRPC takes 20 s as well.
	UserTimeout = 20 * time.Second

	// KeepAlive is after how long without a byte a peer is asked whether it is there
	// still. One that has vanished is missed after twice that, which is UserTimeout.
	KeepAlive = 10 * time.Second

	// SpinTime is how long a poller looks for events before it waits: twice what
	// waking up takes on a virtual machine.
	SpinTime = 50 * time.Microsecond

	// SpinTimeAlone is the most where Go has one processor and the machine has others:
	// streams whose ends take turns made 1.2 to 1.4 times as many messages as with 15 us
	// for as much of the processor. 50 us gave them a few percent more, and one caller took
	// 1.4 times the processor.
	SpinTimeAlone = 30 * time.Microsecond

	// CoalesceTime is how long a busy poller of many connections sleeps so that requests
	// gather. Linux adds up to 50 us; 1, 30 and 100 us in its place made no difference beyond
	// noise.
	CoalesceTime = 10 * time.Microsecond

	// Pollers bounds the goroutines that poll for a listener: more than processors are no use.
	Pollers = 256

	// CombinedBytes is how many bytes goroutines leave to the one that writes to
	// their connection before they have to wait for it: four reads of a fast peer.
	CombinedBytes = 256 << 10

	// PollerBuffers is how many read buffers of 64 KiB a poller keeps for
	// goroutines that take its role over, beyond the one in use.
	PollerBuffers = 4

	// DetachedCalls is how many calls that have let go of a connection it goes on
	// without. Each takes a goroutine, 3 to 8 KiB, and what its request and its reply
	// take.
	DetachedCalls = 1024

	// LeftBuffers is how many read buffers of 64 KiB a listener's handlers may keep
	// that their pollers have left behind, one each until it returns and its
	// connection has nothing more to do. With so many no handlers run on pollers.
	LeftBuffers = 64

	// PeerLogsPerSecond bounds log lines that peers can cause, per kind.
	PeerLogsPerSecond = 10
)

// Configurations.
const (
	// ConfigDurationMin is the shortest duration that a configuration may set. A
	// connection over loopback takes longer to open, so what is shorter has lost
	// its unit.
	ConfigDurationMin = 10 * time.Microsecond
)

// Clients.
const (
	// CallTimeout is how long a call may take unless the caller's context or a
	// call option says less or something else.
	CallTimeout = 5 * time.Second

	// ConnectTimeout bounds one connection attempt. Kitex's 50 ms fail when one
	// SYN is lost; 500 ms leave room for trying again elsewhere.
	ConnectTimeout = 500 * time.Millisecond

	// ClientIdleTimeout closes pooled connections, well before ServerIdleTimeout.
	ClientIdleTimeout = 30 * time.Second

	// BeforeStopTimeout is how long a server that stops waits for what takes it out of a
	// registry: a lease there has rarely less, so it runs out by itself then.
	BeforeStopTimeout = 10 * time.Second

	// ConnectionAge is how long a client uses a connection for new calls, give or take
	// ConnectionAgeJitterPercent: behind a balancer of connections, and after servers
	// were added, old ones lead to the same few for ever. A new one costs a round trip
	// or, with TLS, a millisecond; once in half an hour that is nothing.
	ConnectionAge              = 30 * time.Minute
	ConnectionAgeJitterPercent = 10

	// WarmUpsAtOnce is how many servers a client that warms up connects to at a time.
	WarmUpsAtOnce = 16

	// ClientConnections bounds exclusive connections per client: one call each.
	ClientConnections = 512

	// DialsAtOnce is how many of them are opened at a time. A TLS handshake takes both
	// sides a millisecond or two of computing: if 200 calls with 50 ms begin one each,
	// none is done in time. With 4 on two busy cores more than 99 % of the calls succeed,
	// with 16 hardly any (ADR-0051).
	DialsAtOnce = 4

	// ClientWaiting bounds the calls that wait for one of them.
	ClientWaiting = 10000

	// MultiplexedConnections is how many connections to one address calls share.
	// The design's prototype made 607,000 calls/s of 1 KiB over one and 725,000
	// over four.
	MultiplexedConnections = 4

	// MultiplexedGrow is how many calls wait on every one of them before the
	// next is opened.
	MultiplexedGrow = 64

	// GrowPauseMin and GrowPauseMax bound the pause after a further connection
	// could not be opened, or a server of gRPC took no streams on it, which doubles
	// with every failure.
	GrowPauseMin = time.Second
	GrowPauseMax = time.Minute

	// SilenceTimeout and SilentCalls: a shared connection takes no new calls
	// after one that timed out and during which no byte arrived for this long, or
	// after as many that timed out one after the other without any reply. In gRPC the
	// server is asked first whether it lives, and has this long for an answer.
	SilenceTimeout = time.Second
	SilentCalls    = 3

	// RetryPercent and RetriesPerSecond bound how many calls that an overloaded instance
	// refused are tried at another one, in percent of all calls and besides: if all are
	// overloaded, a tenth more is what they have to refuse, not twice as much.
	// RetriesSaved is how many of them quiet times may leave for later. A client that
	// makes a call now and then may try each of them again: ten in a second are load for
	// no server.
	RetryPercent     = 10
	RetriesPerSecond = 10
	RetriesSaved     = 64

	// PingAfter is how long calls wait on a shared connection on which nothing arrives
	// until the server is asked for a sign of life, and how long that may take. Twice
	// that is the 20 s in which a peer that is gone must be noticed (UserTimeout).
	PingAfter = 10 * time.Second

	// TargetInstances is how many addresses a target may list. With
	// MultiplexedConnections to each they take 1,024 file descriptors, as many as
	// a process may open where nobody raised the limit.
	TargetInstances = 256

	// EjectPauseMin and EjectPauseMax bound the pause in which an instance of a
	// target that refused a connection gets no calls. It doubles with every
	// further failure: 1 s costs a server that restarts little, and one that is
	// gone for good costs one call in 30 s a second attempt.
	EjectPauseMin = time.Second
	EjectPauseMax = 30 * time.Second

	// EjectFailurePercent of the calls to an instance within EjectWindow, of EjectMinCalls
	// at least, that fail by its fault eject it: half, so that one which answers most calls
	// goes on, and 20, so that three failures of five say nothing.
	EjectFailurePercent = 50
	EjectMinCalls       = 20
	EjectWindow         = 10 * time.Second
	// EjectConsecutive failures in a row eject it as well, as in Envoy. Those of an instance
	// that fails one call in ten come once in 100,000 calls.
	EjectConsecutive = 5

	// EjectMaxPercent is how many of the instances may be ejected because their calls fail:
	// if more than half do, the fault is elsewhere more often than not, and half of the
	// instances can rarely take all calls. Envoy stops at half too.
	EjectMaxPercent = 50

	// EjectTrialTime is how long the call that finds out whether an ejected instance is back
	// keeps others from trying: a call may take as long as its caller likes. It is that of a
	// breaker's.
	EjectTrialTime = BreakerProbeTime

	// InstanceWeight is the weight of an instance of which nothing is said, that of Kitex's
	// registries, and InstanceWeightMax the most that counts.
	InstanceWeight    = 10
	InstanceWeightMax = 10000

	// LatencyHalfLife is in what time what is known of the latency of an instance halves in
	// which no call ends there. One that was ten times as slow as others is tried again
	// after half a minute.
	LatencyHalfLife = 10 * time.Second

	// HashPoints is how many points an instance of InstanceWeight has on the circle of
	// hashes: with 64 the shares of the keys differ by an eighth, and the bound makes up for
	// that. HashPointsMax bounds all of them, 16 MiB; with 10,000 instances there are 640,000.
	HashPoints    = 64
	HashPointsMax = 1 << 20

	// HashLoadPercent of its share of the calls in flight is how many an instance takes that
	// is chosen by hash; the next on the circle takes the others. HashCallsMin it takes in
	// any case, so that two calls at a time with one key do not part.
	HashLoadPercent = 125
	HashCallsMin    = 4

	// TargetBytes bounds the name of a service that is looked up: as long as a name in DNS
	// may be, with some room for a folder.
	TargetBytes = 1 << 10

	// ListPause is how long a client stays with a list of instances at most before it uses
	// the next one, and half of it at least. Registries that come back deliver an instance
	// at a time, which would be as many lists.
	ListPause = time.Second

	// EmptyListPatience is how long the last list of instances stays in use when the source
	// says that there are none, and does not fail meanwhile. That is what a registry says
	// that has lost its data, and servers that are really gone refuse connections.
	// Announcements that expired because a registry was away are there again within half a
	// minute.
	EmptyListPatience = time.Minute

	// LeavePause is how long connections to an instance stay that is in the list no more,
	// and as long again by chance: who is back within it finds them, and of all connections
	// a tenth is closed in a second if all instances are others.
	LeavePause = 10 * time.Second

	// ResolvePauseMin and ResolvePauseMax bound the pause after which a resolver that failed
	// is asked again. It doubles, and up to half of it is left out by chance: clients that
	// have lost one registry do not ask for it at one moment when it is back.
	ResolvePauseMin = 100 * time.Millisecond
	ResolvePauseMax = 10 * time.Second

	// TroubleLogs is how often the log says at once that something is wrong with a source of
	// instances or policies, TroubleLogPause after how long once more: what comes and goes
	// many times a second would fill it. The same trouble is said again if it was away for a
	// TroubleLogPause, six times the longest pause of a resolver that fails.
	TroubleLogs     = 3
	TroubleLogPause = time.Minute

	// DNSRefresh is how long a client stays with an answer of DNS that does not say how
	// long it holds, give or take a tenth: those of names that change mostly say 30 s to
	// 60 s. Others are used for as long as they say, DNSRefreshMin at least, which a time
	// of 0 means as well, and DNSRefreshMax at most: new instances should get calls
	// although somebody has said a day. DNSTimeout bounds one question.
	DNSRefresh    = 30 * time.Second
	DNSRefreshMin = 5 * time.Second
	DNSRefreshMax = 5 * time.Minute
	DNSTimeout    = 5 * time.Second

	// DirectoryPoll is how often a client looks whether a folder of instances has changed,
	// which takes one system call, DirectoryLook how often at the files in it.
	DirectoryPoll = 500 * time.Millisecond
	DirectoryLook = 2500 * time.Millisecond

	// DirectoryRefresh is how often a server that is registered in a folder says that it is
	// still there, and DirectoryDead after how long without that it counts as dead: after
	// three times. A file that is older than DirectoryForget, or from the future, is removed
	// by the next one that registers when it has looked DirectoryForgetLooks times at it, a
	// DirectoryRefresh apart, and found that nobody has touched it: the clock alone may have
	// jumped. Looks are counted, and not the time, because processes that are stopped
	// together go on together, and none has lived meanwhile.
	DirectoryRefresh     = 5 * time.Second
	DirectoryDead        = 16 * time.Second
	DirectoryForget      = time.Hour
	DirectoryForgetLooks = 4

	// DirectoryFileBytes bounds the file of an instance, DirectoryFiles how many files of a
	// service are looked at, and DirectoryEntries how many names in its folder are read,
	// whatever they are of: that takes 9 ms.
	DirectoryFileBytes = 16 << 10
	DirectoryFiles     = Instances
	DirectoryEntries   = 4 * DirectoryFiles

	// RegisterTimeout is how long announcing a server may take until it is tried again,
	// after RegisterPauseMin, which doubles up to RegisterPauseMax.
	RegisterTimeout  = 10 * time.Second
	RegisterPauseMin = time.Second
	RegisterPauseMax = 30 * time.Second

	// WithdrawTimeout is how long taking a server out of its registry may take when it
	// stops, and WithdrawPause how long it serves as before then: registries that tell
	// clients do so within milliseconds, and of a folder they know within DirectoryPoll.
	// Calls that come still later are refused unexecuted, and made elsewhere.
	WithdrawTimeout = 5 * time.Second
	WithdrawPause   = time.Second

	// Instances is how many instances a target may have by what a registry says. More are
	// left out: each takes 300 bytes, and connections when calls go there.
	Instances = 10000

	// ReadyPauseMin and ReadyPauseMax bound the pause after which a call that waits for
	// a connection asks for one again. It doubles: calls of a server that restarts lose
	// little, and one that is gone is asked once a second.
	ReadyPauseMin = 20 * time.Millisecond
	ReadyPauseMax = time.Second

	// DialPatience is how long a connection attempt must have lasted to count
	// against an instance when it ended because half of the call's time was over.
	// With less time it says more about the call than about the instance. Kitex
	// gives up connecting after as long.
	DialPatience = 50 * time.Millisecond

	// CapabilityWait is how long calls wait for the first call on a connection
	// to show whether they can share it, before they open their own.
	CapabilityWait = 20 * time.Millisecond

	// LastWordsTimeout is how long a client waits for the reason after a server
	// stopped reading in the middle of a request. The server has written it
	// before it closed the connection, so it is there or it will not come.
	LastWordsTimeout = 200 * time.Millisecond
)

// Documents that say what becomes of calls: retries, breakers, limits.
const (
	// ExplainEvery is how many calls there are for one that is explained: an explanation
	// takes a kilobyte, which would be a third of what a call takes otherwise.
	ExplainEvery = 1000

	// PolicyFileInterval is how often a policy file is looked at. A stat costs 2 us, and
	// nobody who has just changed one waits for longer than this.
	PolicyFileInterval = time.Second

	// PolicyBytes bounds a document, and PolicyMethods the services and methods in it that
	// have values of their own. 1,000 of them with every value set take 600 KiB.
	PolicyBytes   = 1 << 20
	PolicyMethods = 1000

	// PolicyDepth is how deep objects and lists may nest in a document. Five levels are
	// used: client, methods, a name, retry, codes.
	PolicyDepth = 16

	// PolicyErrors is how many problems of a document are listed.
	PolicyErrors = 100

	// PolicyDurationMax is the longest duration in a document. What is longer than a day
	// has lost its unit, and no call lasts so long.
	PolicyDurationMax = 24 * time.Hour

	// PolicyWindowMin is the shortest time in which calls can be counted, and an open
	// breaker can wait: in less there are too few calls to say anything.
	PolicyWindowMin = 100 * time.Millisecond

	// PolicyCountMax bounds numbers of calls, and calls in a second: more than a process
	// makes.
	PolicyCountMax = 10_000_000

	// PolicyTextBytes bounds names of zones and of metadata in a document.
	PolicyTextBytes = 256
)

// Policies: their defaults, and what their state may cost.
const (
	// RetryAttempts is how many attempts a call may have, the first one included, unless
	// its policy says something else: what the second instance cannot do either, a third
	// one rarely can. RetryAttemptsMax is how many a policy may ask for.
	RetryAttempts    = 2
	RetryAttemptsMax = 10

	// RetryBackoffMin and RetryBackoffMax bound the longest wait before a further attempt:
	// the first one's, which is ReadyPauseMin for the same reason, and that of all.
	RetryBackoffMin = 20 * time.Millisecond
	RetryBackoffMax = time.Second

	// HedgeAttempts is how many attempts of a call may run beside each other.
	HedgeAttempts = 2

	// BreakerCalls within BreakerWindow are how many it takes to open a breaker. Kitex has
	// the same figures, and users of it know what they do.
	BreakerCalls  = 200
	BreakerWindow = 10 * time.Second

	// BreakerPause is how long a breaker stays open until it lets a call through. One that
	// does not say what became of it within BreakerProbeTime keeps others from trying no
	// longer: that is twice CallTimeout.
	BreakerPause     = 5 * time.Second
	BreakerProbeTime = 10 * time.Second

	// ClockSlack is how much earlier than another time a later one may seem, because two
	// goroutines look at the clock and then wait for each other. What is more is a clock
	// that was set back.
	ClockSlack = time.Second

	// BurstPercent of what may begin in a second may begin at once.
	BurstPercent = 10

	// Callers is how many callers a server knows apart while it limits each. Each takes
	// 200 bytes. CallerNameBytes of a name are kept, to be shown; CallersShown of them are,
	// so that whoever asks often does not get a list of all.
	Callers         = 10_000
	CallerNameBytes = 64
	CallersShown    = 10

	// AdaptiveRunningMin and AdaptiveRunningMax bound how many calls may run where that is
	// found out: with fewer than four a slow one says little about the others.
	AdaptiveRunningMin = 4
	AdaptiveRunningMax = 1000

	// AdaptiveInterval, and AdaptiveCalls in it, are what an adaptive limit is changed by.
	AdaptiveInterval = 100 * time.Millisecond
	AdaptiveCalls    = 24

	// AdaptiveTolerancePercent is how long calls may take until there are fewer of them, in
	// percent of how long they take undisturbed. Below 150 noise would do it.
	AdaptiveTolerancePercent = 150

	// AdaptiveBaseAge is how long it is believed how long calls take undisturbed. Then it
	// is measured again, for AdaptiveBaseTime with half the calls: a hundredth of the time.
	AdaptiveBaseAge  = 30 * time.Second
	AdaptiveBaseTime = 300 * time.Millisecond

	// ExplainedAttempts is how many attempts of a call an explanation has room for
	// without memory of its own: two of nearly all calls that have more than one.
	ExplainedAttempts = 3
)

// HTTP/2.
const (
	// HTTP2HeaderListBytes bounds the headers of a message, each name and value and 32
	// bytes, as RFC 9113 counts. grpc-go, since 2026, and Netty allow 8 KiB, Go 1 MiB.
	HTTP2HeaderListBytes = 16 << 10

	// HTTP2Continuations is how many frames a header block may go on in. It ends the
	// connection, as four times HTTP2HeaderListBytes on the wire do.
	HTTP2Continuations = 8

	// HTTP2LongLists, and half of the streams begun in HTTP2Period, may have headers that are
	// longer than HTTP2HeaderListBytes. If the first 16th of that on the wire is enough to
	// make one so, it was made to be, and ends the connection.
	HTTP2LongLists = 50

	// HTTP2TableBytes is the table of header compression, each way: what every peer has.
	HTTP2TableBytes = 4 << 10

	// HTTP2Streams is how many streams a peer may have, handlers that still run for
	// streams that it reset among them. Go allows as many.
	HTTP2Streams = 250

	// HTTP2StreamWindowBytes is how much a stream may receive that was not used yet, at first,
	// HTTP2StreamWindowBytesMax how far that grows while the peer is faster, and
	// HTTP2ConnectionWindowBytes how much may be on its way for all streams of a connection
	// together.
	HTTP2StreamWindowBytes     = 64 << 10
	HTTP2StreamWindowBytesMax  = 4 << 20
	HTTP2ConnectionWindowBytes = 1 << 20

	// HTTP2GrownWindowBytes is by how much the windows of a connection's streams may grow, all
	// together: so many bytes beside those of windows that have not grown can a peer make a
	// connection hold.
	HTTP2GrownWindowBytes = 8 << 20

	// HTTP2Period is for how long what a peer does is counted; then counting begins anew.
	HTTP2Period = 30 * time.Second

	// HTTP2Resets in HTTP2Period, and half of the streams begun in it, may be reset by the
	// peer before anything was sent on them and within HTTP2ResetSoon, or when they are
	// complete: callers that give up in masses are honest, and have got something, or waited,
	// before they do.
	HTTP2Resets    = 1000
	HTTP2ResetSoon = 3 * time.Millisecond

	// HTTP2Refusals is how many streams a peer may begin in HTTP2Period while it has as many
	// as it may have: clients do not know of handlers that go on when a call was given up. Or
	// behind our last GOAWAY, which others of them may have crossed.
	HTTP2Refusals = 60_000

	// HTTP2PeerErrors is how many streams the peer may make us reset in HTTP2Period by
	// breaking rules.
	HTTP2PeerErrors = 100

	// HTTP2ControlFrames is how many frames that answer the peer's may wait to be sent
	// before no more is read. grpc-go has the same.
	HTTP2ControlFrames = 100

	// HTTP2Settings is how many settings a frame may have. There are seven.
	HTTP2Settings = 32

	// HTTP2EmptyData is how many DATA frames without data and end may come in HTTP2Period.
	HTTP2EmptyData = 100

	// HTTP2TinyData is how many DATA frames of less than HTTP2TinyDataBytes may come in
	// HTTP2Period, and a quarter of all others: messages of gRPC have five at least. One behind
	// a frame of HTTP2DataBeforeTiny is what was left of a message.
	HTTP2TinyData       = 1000
	HTTP2TinyDataBytes  = 5
	HTTP2DataBeforeTiny = 1 << 10

	// HTTP2WindowUpdates is how many WINDOW_UPDATEs may come in HTTP2Period, one for each
	// HTTP2WindowUpdateBytes that were sent, as Go sends two for 4 KiB, and two for each
	// frame that windows did not cut short.
	HTTP2WindowUpdates     = 1000
	HTTP2WindowUpdateBytes = 1 << 10

	// HTTP2OtherFrames is how many frames that do nothing may come in HTTP2Period, and one
	// for each stream, three at a client: settings, priorities, unknown types, what concerns
	// closed streams, and pings that come too soon at a client.
	HTTP2OtherFrames = 1000

	// HTTP2PingInterval is how long a peer waits between pings without messages in
	// between, or HTTP2PingEarlyPercent less: it is the least that clients of grpc-go wait, and
	// networks do not delay each ping as long. Those of HTTP2PingStrikes that do not in
	// HTTP2Period, or until we send a message, are forgiven, the next one ends the connection.
	HTTP2PingInterval     = 10 * time.Second
	HTTP2PingEarlyPercent = 10
	HTTP2PingStrikes      = 2

	// HTTP2PingAfterMost is how long a client waits at most before it pings a server that
	// has complained of its pings: each time it waits twice as long. Servers of gRPC wait as long
	// before they ping.
	HTTP2PingAfterMost = 2 * time.Hour

	// HTTP2UnreadPause is how much of the time in which a server reads nothing does not count for a
	// message of which it has a part: who takes UnsentBytes at 9 KiB/s needs as long.
	HTTP2UnreadPause = 2 * time.Minute

	// HTTP2AnswerTimeout is how long our settings and pings wait for an answer.
	HTTP2AnswerTimeout = 10 * time.Second

	// GRPCBombErrors is how many of HTTP2PeerErrors a message counts as that is 32 KiB and
	// more when it is inflated, and then too long or no gzip, which takes up to 40 ms. Who says
	// how long a message is, as gzip does, is refused before that.
	GRPCBombErrors = 34

	// GRPCEncodings bounds the ways to compress besides gzip, and GRPCEncodingNameBytes their
	// names: each request says them all.
	GRPCEncodings         = 8
	GRPCEncodingNameBytes = 32

	// GRPCRetries is how often a call is made again that its gRPC server certainly did not see.
	GRPCRetries = 5

	// HealthListServices is how many services a server may know of that lists the health of
	// all of them. grpc-go lists as many.
	HealthListServices = 100
)

// Streams, the first of any protocol, the others over TTHeader.
const (
	// StreamSendTimeout ends a stream on which a message waits and the other side has made
	// no room for so long: it may never receive again. Room is made for half a window at a
	// time: who works on each message of 100 bytes for 5 seconds makes some every half hour.
	StreamSendTimeout = time.Hour

	// StreamsPerConnection is how many streams of a connection there may be, handlers that
	// still run for streams that their peer gave up among them: as many as of HTTP/2.
	StreamsPerConnection = 250

	// StreamWindowBytes is how much a stream may receive that was not used yet, from peers
	// of ours. Each message counts 64 bytes more than it has, and the last one may be
	// longer than what is left.
	StreamWindowBytes = 256 << 10

	// StreamBufferBytes is the same for peers that know no windows, as Kitex: beyond it
	// nothing is read from their connection. StreamConnectionBytes is for all streams of a
	// connection, of any peer, beside what the windows of peers of ours allow: with as many
	// streams as there may be, a connection holds 79 MiB and a message at most.
	StreamBufferBytes     = 1 << 20
	StreamConnectionBytes = 16 << 20

	// StreamReplayBytes is how much of what a client has sent on a stream is kept until something
	// comes of it, to open it again if its server has not looked at it. grpc-go: 256 KiB.
	StreamReplayBytes = 64 << 10

	// StreamPause is how long a connection is not read because of streams that nobody
	// receives from, while others wait for it. Then the one that holds most ends: the others
	// would wait for ever. If none is known to wait it is StreamPauseAlone: others, a
	// cancellation and the end of the connection may be behind what is not read.
	StreamPause      = 10 * time.Second
	StreamPauseAlone = 2 * time.Minute

	// StreamPathBytes bounds the list of services through which a stream was cancelled.
	StreamPathBytes = 1 << 10

	// StreamPeriod is for how long what a peer does is counted; then counting begins anew.
	StreamPeriod = 30 * time.Second

	// StreamResets in StreamPeriod, and half of the streams begun in it, may be reset by
	// the peer before anything was sent on them and within StreamResetSoon. StreamRefusals may
	// be begun while there are as many as there may be.
	StreamResets    = 1000
	StreamResetSoon = 3 * time.Millisecond
	StreamRefusals  = 60_000

	// StreamPeerErrors is how many streams may break rules in StreamPeriod.
	StreamPeerErrors = 100

	// StreamOtherFrames is how many frames that do nothing may come in StreamPeriod, and
	// two for each stream; as many may change windows, and one for each stream and message.
	StreamOtherFrames = 1000

	// StreamControlFrames is how many answers may wait to be sent before no more is read.
	StreamControlFrames = 100
)

// Observers.
const (
	// Observers bounds how many of them a server or a client has: each call has
	// room for what they keep of it.
	Observers = 6

	// MetricSeries and MetricUndefinedSeries bound how many methods are counted
	// apart, of definitions and of names that peers may have made up. Each takes 5
	// KiB. The rest is counted together.
	MetricSeries          = 1000
	MetricUndefinedSeries = 100

	// SlowCall is how long a call must take that is logged although it succeeded.
	SlowCall = time.Second

	// LogTextBytes bounds each text that observe.Log writes.
	LogTextBytes = 512
)

// The generator.
const (
	// IDLBytes bounds all interface definitions of one run together.
	IDLBytes = 16 << 20
	// IDLIncludeDepth bounds chains of includes.
	IDLIncludeDepth = 64
	// IDLTypeDepth bounds list<list<...>> and nested constant values.
	IDLTypeDepth = 64
	// IDLNodes bounds the declarations, fields, types and values of one run,
	// first as the files have them, then written out: constants that name
	// constants and typedefs of typedefs can double with every line. A million
	// are 20,000 structs of 20 fields, and stay below 1 GiB of memory.
	IDLNodes = 1 << 20
	// IDLWords bounds the words, marks and comments of all .proto files of one run: a field
	// takes six, so that they are some 15,000 messages of 20 fields. What compiles them takes
	// 200 bytes and more for each.
	IDLWords = 2 << 20
	// ProtoColumns bounds the sum of the columns at which the words, marks and comments of
	// all .proto files of one run begin. What compiles them counts the column of a word from
	// the start of its line, several times: 2 ns for each byte before it, 1 s for so many.
	// Files of IDLWords in lines of 80 bytes have a sixth of it, and one line of 60 KiB has
	// all of it.
	ProtoColumns = 512 << 20
	// ProtoDescriptionLines bounds the lines that the description of one .proto file has in
	// its code: the official generator begins one behind each byte 10 of it. Names of
	// messages, fields, values of enums and services have such a byte before them, and some
	// numbers and lengths have it in them. All lines are one expression, which takes Go's
	// printer time by the square: 6 s for so many.
	ProtoDescriptionLines = 20_000
	// ProtoDescriptionFiles is how many files with ProtoDescriptionLines may be printed in
	// one run, and as many shorter ones as take that time. A file that is imported publicly
	// from another Go package is printed once more for each that imports it.
	ProtoDescriptionFiles = 4
	// ProtoDescriptionLinesLeast is how many lines a short file counts for at least: what
	// is printed beside them takes half a millisecond.
	ProtoDescriptionLinesLeast = 200
	// IDLTextBytes of a string that is written out count as one more node: a
	// short definition can name a long constant any number of times.
	IDLTextBytes = 16
	// IDLNameBytes bounds an identifier: a method's name must fit MethodNameBytes.
	IDLNameBytes = MethodNameBytes
	// GoStructBytes is how long a generated Go struct may be with the structs
	// that it holds by value: two fields of the next type each, 30 times over,
	// would be a gigabyte, and the Go compiler would not finish.
	GoStructBytes = 1 << 20
	// GoDefaultBytes is how much memory the defaults of a generated Go struct may
	// take: what needs more than DecodeBytesMax could never be decoded, and what needs
	// more than DecodeBytesBase not in a short message, so that is warned of.
	GoDefaultBytes = DecodeBytesMax
	// GoDeclarationBytes is how long one declaration of generated code may be, or
	// one group of constants: go/format takes 30 times as much memory. An enum
	// with 300,000 values takes 12 MiB.
	GoDeclarationBytes = 16 << 20
	// GoBytes bounds what one run generates, all files together: it is in memory
	// before it is written. A short definition can ask for much, because every
	// service repeats what it inherits, and every method names its service 25
	// times. 20,000 structs of ten fields take 159 MiB, with views 363 MiB.
	GoBytes = 512 << 20
	// GoFileNameBytes is how long the name of a generated folder may be, and of
	// a file before its ending. File systems allow 255 bytes, those that
	// encrypt names 143.
	GoFileNameBytes = 120
	// IDLLostNames is how many names are kept of a file that cannot be read in
	// places, because what they mean may be declared there. If there are more,
	// no name is said to be missing in that file: 101 files with errors, after
	// which a run ends, keep a few megabytes.
	IDLLostNames = 1000
	// IDLErrors is how many errors one run reports.
	IDLErrors = 100
)

// Plugins of the generator.
const (
	// PluginTime is how long a plugin program may take (--plugin-timeout). One in
	// Go reads a model of 20,000 structs in 5 s; a minute is for slower languages.
	PluginTime = time.Minute
	// PluginExitTime is how long a plugin program may hold its output open after
	// it ended or was told to: what it started may still have it.
	PluginExitTime = 2 * time.Second
	// PluginRequestBytes bounds the model as a plugin program gets it: 20,000
	// structs of ten fields take 57 MiB.
	PluginRequestBytes = 512 << 20
	// PluginResponseBytes bounds the answer of a plugin program. It is more than
	// PluginBytes because JSON escapes text.
	PluginResponseBytes = 128 << 20
	// PluginStderrBytes is how much of what a plugin program says on standard
	// error is shown.
	PluginStderrBytes = 64 << 10
	// PluginItems bounds the files, insertions and messages of an answer, each:
	// one for every declaration and field that IDLNodes allows.
	PluginItems = IDLNodes
	// PluginImportBytes bounds the list of imports of one addition, as JSON.
	PluginImportBytes = 64 << 10
	// PluginTextBytes is how long one insertion or added file may be: checking
	// takes 30 times as much memory.
	PluginTextBytes = 8 << 20
	// PluginBytes bounds what all plugins of a run add.
	PluginBytes = 64 << 20
	// PluginNameBytes is how long the name of a plugin may be, and that of an
	// option and of a file's ending.
	PluginNameBytes = 64
	// PluginOptions bounds the options of one plugin.
	PluginOptions = 64
)

// Registries.
const (
	// RegistryRequestTimeout is how long one request to a registry may take. An answer
	// takes milliseconds; within a third of a lease there has to be time for another one.
	RegistryRequestTimeout = 3 * time.Second

	// RegistryPauseMin and RegistryPauseMax bound the pause after which something that a
	// registry did not do is tried again. It doubles, and a part is drawn by chance:
	// nobody is away for long once the registry is back, and not all come at once.
	RegistryPauseMin = 100 * time.Millisecond
	RegistryPauseMax = 5 * time.Second

	// RegistryCheck is how often what is known is compared with a registry that pushes
	// changes, give or take a tenth. It finds one that has lost its data, and watches that
	// died in silence, and costs one small request.
	RegistryCheck = 30 * time.Second

	// RegistryListPause is how far apart lists of a service are: a thousand changes at
	// once make few.
	RegistryListPause = 100 * time.Millisecond

	// RegistryHold is how long instances stay in lists that vanished in numbers: as long
	// as a lease of Kitex. By then everybody who lives has announced itself again.
	RegistryHold = time.Minute

	// RegistryValueBytes bounds what a registry has of one instance. Values have a hundred
	// bytes; a list of Instances hostile ones stays below 100 MiB.
	RegistryValueBytes = 8 << 10

	// RegistryNameBytes bounds the name of a service, which is a part of every key, and
	// RegistryAddressBytes an address: longer than any name of a host with its port, and
	// any path of a socket.
	RegistryNameBytes    = 256
	RegistryAddressBytes = 300

	// RegistryWeightMax is the most that a registry may say of a weight: sums of them must
	// not overflow.
	RegistryWeightMax = 1_000_000

	// RegistryLogPause is how far apart two lines of a log are that say the same of the
	// same thing, and RegistryLogSubjects how many things are kept in mind for that.
	RegistryLogPause    = 10 * time.Second
	RegistryLogSubjects = 1000
)
