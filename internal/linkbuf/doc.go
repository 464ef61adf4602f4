// Package linkbuf holds bytes on their way: a chain of chunks from a
// size-classed pool, written in one pass, handed to a vectored write, read from
// the front, and shared without copying.
//
// A Buffer never moves what was written, so a length can be reserved first and
// filled in later, and it links large byte slices and strings instead of
// copying them. A Pool belongs to an instance (a server, a client, an event
// loop), so that one user's burst does not become every other user's memory.
//
// # Who owns which memory, and until when
//
//   - Appended bytes are copied. The caller keeps its slice.
//   - Reserved bytes belong to the Buffer. The caller may change them until they
//     are consumed (Skip), dropped (Truncate), covered by a Slice or released.
//   - Inserted bytes belong to the caller, who must not change them before the
//     Buffer and all its Slices that cover them are released or have dropped
//     them. A string cannot change, so it only stays in memory until then.
//   - What Slices and Peek return is lent, for reading only: it belongs to the
//     Buffer or Slice, until Truncate or Skip drops it or Release does. What
//     Peek returns ends with the next Peek too.
//   - A Slice owns a share of each chunk that it covers. The chunk goes back to
//     its pool with the last share, the Buffer's among them, so neither has to
//     outlive the other. Each Slice is released once.
//   - What Pool.Get returns belongs to the caller until Put.
//
// Every slice that is returned ends where its capacity does, so an append to it
// makes a copy instead of overwriting the bytes behind it. The exceptions are
// what Get and Room return, empty and made to be appended to: nothing lies
// behind them.
//
// Builds with the tag invariants or the race detector overwrite memory that was
// given back, so that whoever still reads it notices, and panic if something is
// given back twice, if memory is written to after it was given back, or if
// inserted or sliced bytes changed.
package linkbuf
