package http2

// headerBlock takes a whole header block. It is decoded first, because the table
// changes with it whatever happens to the stream.
func (c *Conn) headerBlock(f *Frame, block []byte, now Nanoseconds) (Event, error) {
	fields, tooLarge, err := c.reader.Read(block)
	if err != nil {
		return Event{}, err
	}
	c.excuse()
	if c.streams[f.Stream] == nil && !c.isPast(f.Stream) {
		return c.begin(f, fields, tooLarge, now)
	}
	s, err := c.streamFor(f)
	if s == nil {
		return c.told(err)
	}
	if f.Invalid != nil {
		return c.invalidFrame(f)
	}
	event := Event{Kind: EventHeaders, Stream: s.id, Value: s.value, Fields: fields, TooLarge: tooLarge, End: f.Ends()}
	if tooLarge {
		if err := c.countLong(); err != nil {
			return Event{}, err
		}
	}
	if c.config.client && !s.answered {
		err = c.response(s, &event)
	} else {
		err = c.trailers(s, &event)
	}
	if err != nil {
		return c.told(err)
	}
	if event.End {
		c.step(s, s.state.remoteEnded())
	}
	return event, nil
}

// begin takes the HEADERS of a stream that is idle: a request.
func (c *Conn) begin(f *Frame, fields []Field, tooLarge bool, now Nanoseconds) (Event, error) {
	if c.config.client || f.Stream%2 == 0 {
		// RFC 9113, 5.1.1: servers begin streams with PUSH_PROMISE only.
		return Event{}, connectionError(ProtocolError, "HEADERS on stream %d, which is idle", f.Stream)
	}
	if c.goneAway {
		// Above the last stream of our GOAWAY: the client knows that nobody looks at it. It
		// may have sent many before it knew.
		c.pass(f.Stream)
		return Event{}, c.countRefusal()
	}
	if len(c.streams) >= c.config.streams {
		// Released ones do not count, so a client that resets its streams gets no more
		// handlers than one that does not (CVE-2023-44487).
		c.pass(f.Stream)
		c.refuse(f.Stream, RefusedStream)
		return Event{}, c.countRefusal()
	}
	m, problem := checkFields(fields, partRequest, tooLarge)
	switch {
	case f.Invalid != nil:
		problem = f.Invalid.Detail
	case problem == "" && f.Ends() && m.length > 0:
		problem = "body is not as long as content-length"
	}
	err := error(nil)
	switch {
	case problem != "":
		err = c.countBreach()
	case tooLarge:
		err = c.countLong()
	}
	if err != nil {
		return Event{}, err
	}
	if problem != "" {
		c.pass(f.Stream)
		c.refuse(f.Stream, ProtocolError)
		return Event{}, nil
	}
	s := c.add(f.Stream, now)
	s.length = m.length
	if f.Ends() {
		c.step(s, s.state.remoteEnded())
	}
	return Event{Kind: EventHeaders, Stream: s.id, Fields: fields, TooLarge: tooLarge, End: f.Ends()}, nil
}

// pass remembers a stream that nobody sees.
func (c *Conn) pass(id uint32) {
	c.history.begin(id)
	c.history.pass(id)
	c.counts.streams++
	c.counts.ourResets++
}

func (c *Conn) refuse(id uint32, code ErrorCode) {
	c.control++
	appendRSTStream(c.out, id, code)
}

// response checks the first header block of a response, or an interim one.
func (c *Conn) response(s *stream, event *Event) error {
	m, problem := checkFields(event.Fields, partResponse, event.TooLarge)
	switch {
	case problem != "":
		return c.breach(s, ProtocolError, "%s", problem)
	case event.TooLarge:
		s.answered = true
		return nil
	case m.status < 200 && event.End:
		// RFC 9113, 8.1.
		return c.breach(s, ProtocolError, "interim response that ends the stream")
	case m.status < 200:
		event.Interim = true
		return c.countOther()
	}
	s.answered = true
	if !event.End {
		// Responses without a body say how long it would be (RFC 9113, 8.1.1).
		s.length = m.length
	}
	return nil
}

// trailers checks a header block behind the data.
func (c *Conn) trailers(s *stream, event *Event) error {
	event.Trailers = true
	_, problem := checkFields(event.Fields, partTrailers, event.TooLarge)
	switch {
	case !event.End:
		// RFC 9113, 8.1.
		return c.breach(s, ProtocolError, "trailers that do not end the stream")
	case problem != "":
		return c.breach(s, ProtocolError, "%s", problem)
	case s.length > 0:
		return c.breach(s, ProtocolError, "body is not as long as content-length")
	}
	return nil
}
