// Package eventloop is Fulmar's network library: it accepts and dials
// connections, and calls a handler when bytes arrive. The guide
// docs/guide/eventloop.md begins with a small server.
//
// # Served connections
//
// A Listener calls its Handler once bytes have arrived, one call at a time for
// each connection, and hands it a Reader over the bytes themselves: nothing is
// copied out of the receive buffer. A handler that needs more returns ErrMore
// and sees the same bytes again, and more, in its next call. It may also return
// at once and let another goroutine reply later with Conn.WriteBuffers, which
// is safe for concurrent use; reading goes on meanwhile. While a handler runs,
// its connection is not read, and nobody notices that the peer is gone, unless
// the handler lets go of it: Conn.Detach is for requests of one connection that
// need not wait for each other.
//
// Bytes that a handler leaves unread wait for it. It is called again when more
// arrive or when someone calls Conn.Wake, and never in a loop. When
// Config.ReadBufferBytes wait, or after Conn.PauseReading, nothing more is read
// and the peer is slowed down. A connection without unread bytes keeps no
// large buffer.
//
// # Goroutines and locks
//
// The handler, OnOpen, OnEOF and OnClose of one connection are called one after
// the other, never two at a time, on whatever goroutine runs the connection
// then. Calls that have let go of it (Conn.Detach) do not count: they may go on
// meanwhile, also after OnClose. For different connections they run at the same
// time. Config.Dispatch says what they may wait for.
//
// On a served connection no method calls one of them: Close, a write that
// fails, Wake and Release leave that to the goroutine that runs the connection.
// So no method can deadlock on a lock that the caller holds and that the callbacks
// take. But some wait while it is held: Write, WriteBuffers, Writer.Flush and
// CloseWrite for the peer, and the handler's Read for bytes. The others do not wait,
// except that the Close of a net.Conn that the user brought does what it does.
//
// A panic, and a call of runtime.Goexit, in one of them closes its connection,
// is logged and counted, and reaches no other connection; one that goes on without
// the call (Conn.Detach) stays open after Goexit.
//
// # Writing
//
// A write waits until the system has taken all bytes, or Config.WriteStallTimeout,
// Config.UserTimeout or a deadline ends it; there is no queue that grows. Whoever sends to many
// peers and must not wait for the slowest needs a bounded queue for each, and a
// goroutine while the queue is not empty, as in examples/chat.
//
// Writes of several goroutines come one after the other. On EngineEpoll, once a
// connection had two holds (Conn.Hold) at a time, a write of up to 16 KiB that
// finds another one in progress is copied instead, as long as at most
// 256 KiB (CombinedBytes) wait, and leaves with the next system call of the
// writer that is there. Such a write returns without an error before its bytes
// have left. If they cannot, the connection closes, and OnClose gets the error.
// In any case success means that bytes are on their way, not that the peer has
// them: only a reply says that.
//
// # The end of a connection
//
// When the peer stops sending, which it may do while it still waits for
// replies, all bytes that came before are handled first. Then Config.OnEOF is
// called, and the connection closes, unless it is held: Conn.Hold says that
// work is in progress for the connection, a request whose reply is still to be
// written. A held connection stays open for writing after the peer stopped
// sending, and Listener.Shutdown waits for it; Conn.Release ends the hold. A
// reset, a failed write, a read deadline, an error of the handler and Close
// close a connection whether it is held or not.
//
// TCP does not tell a peer that only stopped sending from one that is gone;
// that shows when something is written to it. A protocol whose clients never
// stop sending before they are done can close the connection in OnEOF.
//
// Ways to close a served connection, the gentlest first:
//
//   - The handler returns an error: its Writer is flushed, writes of others that
//     have begun end, and the peer is told that no more will come. What it still
//     sends is thrown away, up to 500 ms (LingerTimeout) or
//     256 KiB (LingerBytes), so that it can read the last words. A peer that
//     sends more than that may lose them. Another goroutine gets there with
//     Conn.Wake and a flag that the handler looks at.
//   - Conn.CloseWrite: the peer is told that no more will come, and is heard
//     until it stops sending too.
//   - Conn.Close and CloseWithError: at once. Writes that are waiting fail; bytes
//     that the system has taken are sent, unless received ones are unread.
//   - Conn.Abort: a reset. Bytes that have not reached the peer are lost.
//
// Config.OnClose is called once for each connection, after the last call of
// the handler has returned. The socket is closed then. Goroutines of the user
// that still write get an error wherever they are, and whoever calls Hold,
// Release or any other method later does no harm.
//
// # TLS
//
// With Config.TLS all of this holds for plaintext: package crypto/tls encrypts and
// decrypts in memory, and the engine reads and writes the records. A handshake has a
// goroutine while it goes on, an idle connection none on EngineEpoll. Close and the
// gentler ends send close_notify first, as far as the peer takes it at once; a peer that
// ends a connection without one gets ErrTruncated for OnClose, and no OnEOF, because
// somebody on the way may have cut it off. A write that has succeeded may be a record
// that still waits for the socket: if it cannot leave, the connection closes, and OnClose
// gets the error, as with writes that are copied for others. Conn.TLS returns what the
// handshake found out.
//
// # Dialled connections
//
// Connections from Dial and NewConn belong to their user: Reader and Read block
// until bytes arrive, like those of any net.Conn. Nobody reads unless the user
// does, so OnEOF is never called. OnOpen runs inside Dial and NewConn, OnClose
// inside the call that closes the connection: Close, CloseWithError, Abort, or a
// write that fails. The user has to call Close in the end.
package eventloop
