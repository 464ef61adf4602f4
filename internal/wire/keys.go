package wire

// Flags of a TTHeader.
const (
	// FlagOutOfOrder says that the sender matches replies by sequence id and
	// takes them in any order. It is set on requests; replies have no flags.
	FlagOutOfOrder uint16 = 0x0001
	// FlagStreaming marks a frame of a stream.
	FlagStreaming uint16 = 0x0002
	// FlagDuplexReverse and FlagSASL are reserved by Kitex and used by nothing
	// that is open.
	FlagDuplexReverse uint16 = 0x0008
	FlagSASL          uint16 = 0x0010
)

// Int keys of a TTHeader. Values are text. Every one of them can be missing,
// and those without a comment are reserved for meshes and infrastructure that
// is not open: passed on, never needed.
const (
	KeyMeshVersion uint16 = 0
	// KeyTransportType says "framed" or "unframed"; the payload itself decides.
	KeyTransportType uint16 = 1
	KeyLogID         uint16 = 2
	// KeyFromService is the name of the calling service.
	KeyFromService uint16 = 3
	KeyFromCluster uint16 = 4
	KeyFromIDC     uint16 = 5
	// KeyToService is the name that the called service is found under, which is
	// not the name of the service in the IDL.
	KeyToService uint16 = 6
	KeyToCluster uint16 = 7
	KeyToIDC     uint16 = 8
	// KeyToMethod repeats the method name of the payload; frames of streams have
	// it nowhere else.
	KeyToMethod           uint16 = 9
	KeyEnvironment        uint16 = 10
	KeyDestinationAddress uint16 = 11
	// KeyTimeout is the time for the call in milliseconds, decimal. Kitex writes
	// the configured time, not what is left of it.
	KeyTimeout        uint16 = 12
	KeyReadTimeout    uint16 = 13
	KeyRingHash       uint16 = 14
	KeyDDPTag         uint16 = 15
	KeyWithMeshHeader uint16 = 16
	// KeyConnectTimeout is the time for connecting in milliseconds, decimal.
	KeyConnectTimeout  uint16 = 17
	KeySpanContext     uint16 = 18
	KeyShortConnection uint16 = 19
	// KeyFromMethod is the name of the method that makes the call.
	KeyFromMethod uint16 = 20
	KeyStressTag  uint16 = 21
	// KeyMessageType repeats the message type of the payload, decimal.
	KeyMessageType     uint16 = 22
	KeyHTTPContentType uint16 = 23
	KeyRawRingHash     uint16 = 24
	KeyLoadBalancer    uint16 = 25
	KeyClusterShardID  uint16 = 26
	// KeyStreamFrameType is the kind of a stream's frame, "1" to "5".
	KeyStreamFrameType uint16 = 27
)

// String keys of a TTHeader.
const (
	// IDLServiceName is the service as the IDL calls it, for servers that have
	// several.
	IDLServiceName = "isn"
	// RealAddress is the address of the caller, written by a proxy.
	RealAddress = "rip"
	ToCluster   = "tc"
	ToIDC       = "ti"
	// CloseConnection with the value CloseConnectionValue says that the sender
	// closes the connection: no new call may be sent on it.
	CloseConnection      = "crrst"
	CloseConnectionValue = "1"
	// Checksum is the CRC-32C of everything behind the header, as 8 hexadecimal
	// digits.
	Checksum = "crc32c"
	// ValidatorPrefix stands in front of what users add to check a payload.
	ValidatorPrefix = "PV_"

	// BusinessStatus is a decimal int32; not 0 makes the reply a business error,
	// with BusinessMessage and BusinessExtra, a JSON object of texts.
	BusinessStatus  = "biz-status"
	BusinessMessage = "biz-message"
	BusinessExtra   = "biz-extra"

	// PersistentPrefix and TransientPrefix stand in front of the keys of
	// metadata. UpstreamPrefix marks transient metadata that has made its one
	// hop; as it begins with TransientPrefix, it is to be looked for first. So no
	// key of transient metadata can begin with UpstreamKeys.
	PersistentPrefix = "RPC_PERSIST_"
	TransientPrefix  = "RPC_TRANSIT_"
	UpstreamPrefix   = TransientPrefix + UpstreamKeys
	UpstreamKeys     = "UPSTREAM_"
	// TokenKey is the string key under which a reader finds the ACL token,
	// although the token has a block of its own.
	TokenKey = TransientPrefix + tokenName

	tokenName = "gdpr-token"

	// Capabilities tells a peer what the sender can do besides what Kitex can.
	Capabilities = "fulmar-caps"
	// Executed on an exception says whether the handler ran: "no" or "yes".
	Executed = "fulmar-executed"
	// Code on an exception is the number of the error's code, which Thrift has
	// no place for.
	Code = "fulmar-code"
	// PushBack on a failure says how many milliseconds to wait before another attempt, or,
	// with what is no such number, that there should be none. It is gRPC's (proposal A6),
	// and means the same with TTHeader.
	PushBack = "grpc-retry-pushback-ms"
	// Refused on a failure says in a word why a server has refused the call unexecuted:
	// "rate", "running" or "adaptive" for a limit of its policy, "load" for all else that it
	// has no room for.
	Refused = "fulmar-refused"

	// StreamCancelPath is who cancelled a stream.
	StreamCancelPath = "ttscp"
	// StreamWindow is how many bytes of a stream the sender takes, or takes besides,
	// decimal, StreamMessage the longest message that it takes, and StreamCount how many
	// streams of a connection a server takes. Only peers of ours have them.
	StreamWindow  = "fulmar-window"
	StreamMessage = "fulmar-message"
	StreamCount   = "fulmar-streams"
)

// The control packet by which a server says on a multiplexed connection that it
// stops: an ordinary reply in TTHeader with these two and CloseConnection.
const (
	ControlSequence int32 = 0
	ControlMethod         = "none"
)

// PingMethod is the method of a call by which one of our clients asks one of our
// servers for a sign of life. No definition can contain the name.
const PingMethod = "fulmar-ping"

// IsToken reports whether prefix followed by key is TokenKey.
func IsToken(prefix, key string) bool {
	return len(prefix)+len(key) == len(TokenKey) && TokenKey[:len(prefix)] == prefix && TokenKey[len(prefix):] == key
}
