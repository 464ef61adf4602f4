//go:build !race

package eventloop

func raceRead([]byte)    {}
func raceWritten([]byte) {}
