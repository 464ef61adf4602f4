package eventloop

// outsideSteps are those of the user, the peer and the clock.
func (m *combineModel) outsideSteps(s combineState, add addCombine) {
	may := func(what uint8, possible bool, name string, change func(*combineState)) {
		if s.outside&what != 0 && possible {
			add(name, true, func(s *combineState) { s.outside &^= what; change(s) })
		}
	}
	may(combineClose, true, "Close", func(s *combineState) { s.closes() })
	may(combineAbort, true, "Abort", func(s *combineState) { s.aborted, s.aborting = true, true })
	may(combineCloseWrite, true, "CloseWrite", func(s *combineState) { s.closesWrite = true })
	may(combineReset, !s.shut, "the peer resets", func(s *combineState) { s.reset = true })
	may(combineDeadline, !s.closed, "the deadline passes", func(s *combineState) {
		s.expired = true
		s.outside |= combineExtend
	})
	may(combineExtend, !s.closed, "the deadline is lifted", func(s *combineState) { s.expired = false })
	if s.aborting {
		add("Abort closes", false, func(s *combineState) { s.aborting = false; s.closes() })
	}
	if s.closesWrite && s.holders == 0 {
		// It has the token meanwhile, and gives it back.
		add("CloseWrite has its turn", false, func(s *combineState) {
			s.closesWrite, s.shutWrite = false, !s.shut
			s.ending = s.ending || m.mistake != leavesBehindEnd
		})
	}
	if s.restCloses {
		add("writeRest closes", false, func(s *combineState) { s.restCloses = false; s.closes() })
	}
	if s.lingers && !s.expired && !s.shut {
		add("LingerTimeout passes", false, func(s *combineState) { s.expired = true })
	}
}

// closerSteps are shutSocket, outbound.close and finish.
func (m *combineModel) closerSteps(s combineState, add addCombine) {
	switch s.closer {
	case closerBegins:
		add("it begins to close", false, func(s *combineState) {
			s.ending = s.ending || m.mistake != leavesLate
			s.closer = closerLooks
			if s.aborted || m.mistake == closesAtOnce {
				s.closer = closerShuts
			}
		})
	case closerLooks:
		add("it looks what is left", false, func(s *combineState) {
			s.closer = closerShuts
			if s.made && s.writing && (s.left != 0 || !s.spare && m.mistake != closesTaken) {
				s.closing, s.ended, s.waitsEnd, s.closer = true, true, true, closerLingers
			}
		})
	case closerShuts:
		add("it closes the socket", false, func(s *combineState) { s.shutNow(); s.closer = closerDone })
	case closerLingers:
		add("it sets LingerTimeout", false, func(s *combineState) {
			s.closer = closerDone
			switch {
			case !s.shut && m.mistake != closesForEver:
				s.lingers, s.expired = true, false
			case s.shut && m.mistake == closesWithError:
				s.fault("Close fails")
			}
		})
	case closerDone:
		if !s.finished && (!s.waitsEnd || s.told) {
			add("it finishes", false, func(s *combineState) { s.finished = true })
		}
	}
}

// writerSteps are WriteBuffers and outbound.write, up to the token and from it.
func (m *combineModel) writerSteps(s combineState, writer uint8, add addCombine) {
	name := string('A'+rune(writer)) + " "
	switch s.at[writer] {
	case writerIdle:
		if s.next[writer] < m.pieces[writer] {
			add(name+"writes", false, func(s *combineState) { m.write(s, writer) })
		}
	case writerMakes:
		add(name+"makes combined", false, func(s *combineState) { s.made, s.at[writer] = true, writerLocks })
	case writerLocks:
		if s.holders > 0 && m.mistake != locksWhatever {
			return
		}
		if s.broken != noFailure {
			add(name+"sees that it is broken", false, func(s *combineState) {
				s.at[writer] = writerIdle
				if s.broken != failsDeadline {
					s.at[writer] = writerCloses
				}
				s.returned(s.own(writer), false)
			})
			return
		}
		add(name+"has its turn", false, func(s *combineState) {
			s.holders++
			s.at[writer], s.holder, s.rounds = writerHolds, writer, 0
			s.first, s.taken, s.lost, s.failure = true, false, false, noFailure
			s.current, s.half = pieceQueue(0).with(s.own(writer)), false
			s.plain, s.does = !s.made, holderBegins
			if s.plain {
				s.does = holderCalls
			}
		})
	case writerCloses:
		add(name+"closes", false, func(s *combineState) {
			s.at[writer] = writerIdle
			if s.closes() {
				s.at[writer] = writerWaits
			}
		})
	case writerWaits:
		if s.closer == closerDone {
			add(name+"has closed", false, func(s *combineState) { s.at[writer] = writerIdle })
		}
	}
}

// write is the beginning of outbound.write: combined.leave, if there is one.
func (m *combineModel) write(s *combineState, writer uint8) {
	p := s.own(writer)
	if s.over() {
		s.late |= 1 << p
	}
	switch {
	case !s.made:
		s.at[writer] = writerMakes
	case !s.writing && m.mistake != leavesToNobody,
		s.ending,
		s.left.length() >= m.room || m.long&(1<<p) != 0:
		s.at[writer] = writerLocks
	case m.mistake == leavesFirst:
		s.left = s.left.behind(p)
		s.returned(p, true)
	default:
		s.left = s.left.with(p)
		s.returned(p, true)
	}
}

// writingSteps are outbound.writeAll and socket.writeBuffers.
func (m *combineModel) writingSteps(s combineState, add addCombine) {
	switch s.does {
	case holderCalls:
		add("a system call begins", false, func(s *combineState) {
			switch {
			case s.shut:
				m.wrote(s, failsClosed)
			case s.expired:
				m.wrote(s, failsDeadline)
			default:
				s.does = holderInCall
			}
		})
	case holderInCall:
		if s.reset || s.shutWrite {
			add("the kernel fails", false, func(s *combineState) {
				failure := failsEnded
				if s.reset {
					failure = failsReset
				}
				m.wrote(s, failure)
			})
			return
		}
		add("the kernel takes all", false, func(s *combineState) {
			for s.current != 0 && s.wrong == "" {
				s.sendUnit()
			}
			m.wrote(s, noFailure)
		})
		if s.current.length() > 1 || !s.half {
			add("the kernel takes a part", false, func(s *combineState) { s.sendUnit(); s.does = holderCalls })
		}
		add("the kernel takes nothing", false, func(s *combineState) { s.does = holderWaits })
	case holderWaits:
		switch {
		case s.shut:
			add("the wait ends with the socket", false, func(s *combineState) { m.wrote(s, failsClosed) })
		case s.expired:
			add("the wait ends with the deadline", false, func(s *combineState) { m.wrote(s, failsDeadline) })
		case s.reset:
			add("the wait ends with a reset", false, func(s *combineState) { s.does = holderCalls })
		default:
			add("the socket has room", true, func(s *combineState) { s.does = holderCalls })
		}
	}
}

// wrote is the end of writeAll.
func (m *combineModel) wrote(s *combineState, failure combineFailure) {
	s.failure = failure
	if s.taken && failure != noFailure {
		others := s.current
		if s.first && others != 0 && others.first() == s.own(s.holder) {
			others = others.rest()
		}
		s.drop(others)
	}
	s.does = holderWrote
	if !s.taken || failure != noFailure && m.mistake == keepsTaken {
		m.goOn(s)
	}
}

// goOn is what the holder does behind writeAll and written.
func (m *combineModel) goOn(s *combineState) {
	if s.first {
		p := s.own(s.holder)
		if s.units[p] < pieceUnits && (s.units[p] > 0 || s.failure != failsDeadline) && m.mistake != failsTorn {
			s.broken = s.failure
		}
	}
	switch {
	case s.plain:
		s.does = holderUnlocks
	case s.failure != noFailure:
		s.lost, s.does = s.taken, holderFails
	case !s.first && s.holder != holderRest && s.rounds == m.rounds:
		s.does = holderHands
	default:
		s.does = holderEnds
	}
}

// holderSteps are writeCombined, writeLeft, writeRest and endCombined.
func (m *combineModel) holderSteps(s combineState, add addCombine) {
	switch s.does {
	case holderBegins:
		add("begin", false, func(s *combineState) { s.writing, s.does = true, holderTakes })
	case holderTakes:
		add("take", false, m.take)
	case holderWrote:
		add("written", false, func(s *combineState) {
			if s.spare {
				s.fault("a buffer is given back twice")
			}
			s.spare = true
			m.goOn(s)
		})
	case holderEnds:
		add("end", false, func(s *combineState) {
			if s.left == 0 || m.mistake == endsUnseen {
				m.end(s)
				return
			}
			if s.holder != holderRest {
				s.rounds++
			}
			// The own piece is written: what follows are pieces of others.
			s.first, s.does = false, holderTakes
		})
	case holderHands:
		add("a goroutine writes the rest", false, func(s *combineState) {
			s.at[s.holder] = writerIdle
			s.returned(s.own(s.holder), true)
			s.holder, s.does = holderRest, holderEnds
			if m.mistake == unlocksEarly {
				s.holders--
			}
		})
	case holderFails:
		add("fail", false, func(s *combineState) {
			s.lost = s.lost || s.left != 0
			if m.mistake != failsKeeping {
				s.drop(s.left)
				s.left = 0
			}
			m.end(s)
		})
	case holderShuts:
		add("closing is called", false, func(s *combineState) { s.shutNow(); s.does = holderTells })
	case holderTells:
		add("ended is closed", false, func(s *combineState) {
			if s.told {
				s.fault("ended is closed twice")
			}
			s.told, s.does = true, holderUnlocks
		})
	case holderUnlocks:
		add("unlock", false, m.unlock)
	}
}

func (m *combineModel) take(s *combineState) {
	s.does = holderCalls
	if s.left == 0 {
		s.taken = false
		return
	}
	if !s.spare {
		s.fault("there is no buffer to leave bytes in")
	}
	if !s.first {
		s.current = 0
	}
	for q := s.left; q != 0; q = q.rest() {
		s.current = s.current.with(q.first())
	}
	s.half, s.taken, s.spare = false, true, false
	if m.mistake != takesCopy {
		s.left = 0
	}
}

// end is endAndUnlock.
func (m *combineModel) end(s *combineState) {
	s.writing = m.mistake == failsOnWriting && s.failure != noFailure
	s.does = holderUnlocks
	if s.ended && (m.mistake != failsUntold || s.failure == noFailure) {
		s.does, s.ended = holderShuts, m.mistake == endsAgain
	}
}

// unlock gives the token back, and tells the writer its result.
func (m *combineModel) unlock(s *combineState) {
	holder := s.holder
	closes := s.failure != noFailure && s.lost
	if closes && s.broken == noFailure && m.mistake != failsOn {
		s.broken = s.failure
	}
	if holder == holderRest {
		s.restCloses = closes
	} else {
		p := s.own(holder)
		success := s.units[p] == pieceUnits
		gap := s.units[p] > 0 || s.failure != failsDeadline
		s.at[holder] = writerIdle
		if closes || !success && gap {
			s.at[holder] = writerCloses
		}
		s.returned(p, success)
	}
	if holder != holderRest || m.mistake != restKeeps {
		s.holders--
	}
	// What is over makes no difference any more.
	s.holder, s.rounds, s.does, s.failure, s.current = 0, 0, holderNone, noFailure, 0
	s.first, s.plain, s.taken, s.lost, s.half = false, false, false, false, false
}
