package linkbuf

// What one vectored write takes: 1,024 pieces (IOV_MAX of Linux and the BSDs),
// and less than 2 GiB, beyond which Linux writes a part and others fail.
const (
	vectorPieces = 1 << 10
	vectorBytes  = 1 << 30
)

// Vector returns the start of pieces that one vectored write takes, without
// empty pieces in front, and nothing if there is nothing else. Advance goes on
// behind what was written of it. The list that it returns is a part of pieces,
// unless a single piece is too long.
func Vector(pieces [][]byte) [][]byte {
	for len(pieces) > 0 && len(pieces[0]) == 0 {
		pieces = pieces[1:]
	}
	pieces = pieces[:min(len(pieces), vectorPieces)]
	left := vectorBytes
	for i, piece := range pieces {
		if len(piece) <= left {
			left -= len(piece)
			continue
		}
		if i == 0 {
			return [][]byte{piece[:vectorBytes:vectorBytes]}
		}
		return pieces[:i:i]
	}
	return pieces
}

// Advance removes n bytes, which must be there, from the start of pieces, and
// what is empty then. It shortens a piece that was written in part in the list
// itself.
func Advance(pieces [][]byte, n int64) [][]byte {
	for len(pieces) > 0 && n >= int64(len(pieces[0])) {
		n -= int64(len(pieces[0]))
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}
