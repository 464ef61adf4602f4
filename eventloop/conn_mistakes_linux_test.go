package eventloop

// connMistake is one that the model can be given.
type connMistake uint8

const (
	noConnMistake connMistake = iota
	// waitsPastDeadline: await does not look at the deadline.
	waitsPastDeadline
	// waitsUnwatched: await does not watch what the poller has unwatched.
	waitsUnwatched
	// watchesOwned: the poller goes on watching a connection that is owned.
	watchesOwned
	// pokesOwned: poke does not look whether somebody owns the connection.
	pokesOwned
	// forgetsWakes: Wake during the handler is forgotten.
	forgetsWakes
	// keepsUnread: Detach on another goroutine leaves unread bytes to it.
	keepsUnread
	// keepsUndrained: it leaves bytes in the socket to it that were reported before.
	keepsUndrained
	// keepsPoked: it leaves what has happened meanwhile to it.
	keepsPoked
	// forgetsFull: the end of a call does not tell a connection that waits for it.
	forgetsFull
	// leavesReplies: the poller takes a connection that has replies to write.
	leavesReplies
	// lingersUnflushed: replies that wait are not written before the end.
	lingersUnflushed
	// seizesWhatever: a connection is seized whether its handler has let go or not.
	seizesWhatever
	// leavesUnread: who lets go after its turn does not ask for what it has not read.
	leavesUnread
	// forgetsEnd: that the end was reported together with the bytes before it is forgotten.
	forgetsEnd
)
