package fulmar

// goexit stands in the log where the cause of a panic does.
const goexit = "runtime.Goexit"

// guarded calls f, which is code of a user, and failed if it does not return: with a panic,
// which goes no further, or with nil if f ends the goroutine, which ends behind failed.
func guarded(f func(), failed func(cause any)) {
	returned := false
	defer func() {
		if !returned {
			failed(recover())
		}
	}()
	f()
	returned = true
}
