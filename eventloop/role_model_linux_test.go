package eventloop

import "testing"

// roleState is a model of the role of a poller in DispatchAuto: one leader, which
// runs handlers inline, the monitor, and whoever releases the role because a
// handler waits. Each step is one atomic operation of leader.enter, enterAgain,
// leave, release and rescue, and of choice.monitor, rest and judge.
type roleState struct {
	// The leader: what it does, how many calls it began, and what it has read.
	at     roleStep
	calls  uint8
	inline bool // what the choice says
	busy   bool // a monitor runs
	// state is leader.state: parity and number of the call, or lost.
	state uint8
	// leaders is how many goroutines have the role.
	leaders uint8
	// handling: code of the user runs on the goroutine that has the role.
	handling bool

	// The monitor: what it does, and the state that it has seen.
	monitor monitorStep
	saw     uint8
	// The releaser of the role: it has read state, and is about to take it.
	releases  uint8
	releasing bool
	released  uint8
	// judges is how often the choice may still become inline.
	judges uint8
}

const lostRole = 255

type (
	roleStep    uint8
	monitorStep uint8
)

const (
	leaderPolls roleStep = iota
	leaderEntering
	leaderEntered
	leaderHandles
	leaderLeaves
	leaderGone
)

const (
	monitorLooks monitorStep = iota
	monitorTakes
	monitorRests
	monitorGone
)

// roleMistake is one that the model can be given.
type roleMistake uint8

const (
	noRoleMistake roleMistake = iota
	// entersUnseen: enter does not look again whether it may.
	entersUnseen
	// restsUnseen: the monitor ends without a last look.
	restsUnseen
	// takesWhatever: take does not compare.
	takesWhatever
	// leavesUnseen: leave does not compare.
	leavesUnseen
	// entersAgainUnseen: enterAgain does not compare.
	entersAgainUnseen
)

func roleModel(mistake roleMistake) *explorer[roleState] {
	return &explorer[roleState]{
		steps: func(s roleState) []transition[roleState] {
			var all []transition[roleState]
			add := func(name string, outside bool, change func(*roleState)) {
				next := s
				change(&next)
				all = append(all, transition[roleState]{name, next, outside})
			}
			s.leaderSteps(mistake, add)
			s.monitorSteps(mistake, add)
			s.otherSteps(mistake, add)
			return all
		},
		check: func(s roleState, _ bool) string {
			switch {
			case s.leaders != 1:
				return "there is not one leader"
			case s.handling && s.at == leaderHandles && s.state != lostRole && !s.busy:
				return "a handler runs inline and nobody would take the role"
			default:
				return ""
			}
		},
	}
}

type addRole func(name string, outside bool, change func(*roleState))

func (s roleState) leaderSteps(mistake roleMistake, add addRole) {
	switch s.at {
	case leaderPolls:
		if s.inline && s.calls < 4 {
			add("the leader may run a handler", false, func(s *roleState) { s.at = leaderEntering })
		}
	case leaderEntering:
		add("it says so", false, func(s *roleState) {
			s.calls += 2
			s.state = s.calls | 1
			s.at = leaderEntered
		})
	case leaderEntered:
		if s.inline || mistake == entersUnseen {
			add("it may still", false, func(s *roleState) { s.at, s.handling = leaderHandles, true })
		} else {
			add("it may not any more", false, func(s *roleState) {
				if s.state == s.calls|1 {
					s.state, s.at = s.calls, leaderPolls
				} else { // it has lost the role, so it may
					s.at = leaderHandles
				}
			})
		}
	case leaderHandles:
		add("the handler returns", false, func(s *roleState) { s.at = leaderLeaves })
	case leaderLeaves:
		if s.inline && s.calls < 4 {
			add("the leader may run the next one", false, func(s *roleState) {
				s.calls += 2
				switch {
				case s.state == s.calls-2|1:
					s.state, s.at = s.calls|1, leaderHandles
				case mistake == entersAgainUnseen:
					s.state, s.at = s.calls|1, leaderHandles
					s.leaders++
				}
			})
		}
		add("the leader leaves", false, func(s *roleState) {
			s.handling = false
			switch {
			case s.state == s.calls|1:
				s.state, s.at = s.calls, leaderPolls
			case mistake == leavesUnseen: // it leads, and so does its successor
				s.state, s.at = s.calls, leaderPolls
				s.leaders++
			default:
				s.at = leaderGone
			}
		})
	}
}

// take gives the role to a successor, if the leader is in the call that saw is
// about.
func (s *roleState) take(saw uint8, mistake roleMistake) {
	if s.state == saw || mistake == takesWhatever {
		if s.state&1 == 1 && s.state != lostRole {
			s.leaders-- // it does not lead any more
		}
		s.state = lostRole
		s.leaders++
	}
}

func (s roleState) monitorSteps(mistake roleMistake, add addRole) {
	switch s.monitor {
	case monitorLooks:
		add("the monitor looks", false, func(s *roleState) { s.saw, s.monitor = s.state, monitorTakes })
		add("the monitor is idle", false, func(s *roleState) { s.inline, s.monitor = false, monitorRests })
	case monitorTakes:
		if s.saw&1 == 1 && s.saw != lostRole && s.state == s.saw || mistake == takesWhatever && s.saw&1 == 1 && s.saw != lostRole {
			add("it takes the role", false, func(s *roleState) { s.take(s.saw, mistake); s.monitor, s.saw = monitorLooks, 0 })
		}
		add("it has seen nothing", false, func(s *roleState) { s.monitor, s.saw = monitorLooks, 0 })
	case monitorRests: // rest holds the lock that judge needs
		if s.state&1 == 1 && s.state != lostRole && mistake != restsUnseen {
			add("the monitor must go on", false, func(s *roleState) { s.monitor = monitorLooks })
		} else {
			add("the monitor ends", false, func(s *roleState) { s.busy, s.monitor = false, monitorGone })
		}
	}
}

func (s roleState) otherSteps(mistake roleMistake, add addRole) {
	if s.judges > 0 && s.busy && s.monitor != monitorRests {
		add("handlers are judged to be short", true, func(s *roleState) { s.inline = true; s.judges-- })
	}
	switch {
	case s.releasing:
		add("the role is released", true, func(s *roleState) {
			s.take(s.released, mistake)
			s.releasing, s.released = false, 0
		})
	case s.releases > 0 && s.state&1 == 1 && s.state != lostRole:
		add("somebody is about to release the role", true, func(s *roleState) {
			s.released, s.releasing = s.state, true
			s.releases--
		})
	}
}

// TestRole_HasOneHolderAndSomebodyToTakeIt visits all interleavings of a leader's
// calls, the monitor and a release, over the end of the monitor.
func TestRole_HasOneHolderAndSomebodyToTakeIt(t *testing.T) {
	start := roleState{busy: true, leaders: 1, releases: 2, judges: 2}
	expectSound(t, roleModel(noRoleMistake), start)
	expectFound(t, roleModel(entersUnseen), start, "a handler runs inline and nobody would take the role")
	expectFound(t, roleModel(restsUnseen), start, "a handler runs inline and nobody would take the role")
	expectFound(t, roleModel(takesWhatever), start, "there is not one leader")
	expectFound(t, roleModel(leavesUnseen), start, "there is not one leader")
	expectFound(t, roleModel(entersAgainUnseen), start, "there is not one leader")
}
