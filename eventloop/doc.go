// Package eventloop is Fulmar's network library: it accepts and dials
// connections, and calls a handler when bytes arrive.
//
// # Served connections
//
// A Listener calls its Handler once bytes have arrived, one call at a time for
// each connection, and hands it a Reader over the bytes themselves: nothing is
// copied out of the receive buffer. A handler that needs more returns ErrMore
// and sees the same bytes again, and more, in its next call. It may also return
// at once and let another goroutine reply later with Conn.WriteBuffers, which
// is safe for concurrent use; reading goes on meanwhile. While a handler runs,
// its connection is not read, and nobody notices that the peer is gone.
//
// Bytes that a handler leaves unread wait for it. It is called again when more
// arrive or when someone calls Conn.Wake, and never in a loop. When
// Config.ReadBufferBytes wait, or after Conn.PauseReading, nothing more is read
// and the peer is slowed down. A connection without unread bytes keeps no
// large buffer.
//
// # The end of a connection
//
// When the peer stops sending, which it may do while it still waits for
// replies, all bytes that came before are handled first. Then Config.OnEOF is
// called, and the connection closes, unless it is held: Conn.Hold says that
// work is in progress for the connection, a request whose reply is still to be
// written. A held connection stays open for writing after the peer stopped
// sending, and Listener.Shutdown waits for it; Conn.Release ends the hold. A
// reset or a failed write closes a connection whether it is held or not.
//
// TCP does not tell a peer that only stopped sending from one that is gone;
// that shows when something is written to it. A protocol whose clients never
// stop sending before they are done can close the connection in OnEOF.
//
// Config.OnClose is called once for each connection, after the last call of
// the handler has returned.
//
// # Dialled connections
//
// Connections from Dial and NewConn belong to their user: Reader and Read block
// until bytes arrive, like those of any net.Conn.
package eventloop
