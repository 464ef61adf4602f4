package eventloop

// ExpectClose says that the connection will be closed behind what is written next, by
// Close or because Listener.Shutdown was called. Where the system can do it, on Linux
// with TCP, the end of that leaves in one segment with the end of the connection, or
// after a fifth of a second. So a peer that looks before it sends anything else, as CheckIdle does,
// knows that nobody would read it. Elsewhere it does nothing. It does not wait.
func (c *Conn) ExpectClose() {
	socket := c.socket
	if t := c.tlsOf(); t != nil {
		socket = t.Conn
	}
	cork(socket)
}
