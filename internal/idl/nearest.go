package idl

// Looking for similar names stays cheap whatever the input is: at most
// nearestCandidates names, none longer than nearestLength bytes. With one look
// for each of limits.IDLErrors errors these are 10 million steps.
const (
	nearestCandidates = 1000
	nearestLength     = 64
)

// nearest returns the name that differs least from a mistyped one: by less than
// a third of its letters, or in a letter of short names; "" if there is none.
// Of equally near ones the first counts.
func nearest(name string, candidates []string) string {
	if len(name) < 2 || len(name) > nearestLength {
		return ""
	}
	best, found := (len(name)+2)/3, ""
	for _, candidate := range candidates[:min(len(candidates), nearestCandidates)] {
		// What the lengths differ by is a lower bound.
		if len(candidate)-len(name) >= best || len(name)-len(candidate) >= best {
			continue
		}
		if d := edits(name, candidate); d < best {
			best, found = d, candidate
		}
	}
	return found
}

// edits counts the bytes to insert, remove or replace to make b of a. Upper and
// lower case are the same, so that names which differ in it only are nearest.
func edits(a, b string) int {
	var rows [2][2*nearestLength + 1]int
	previous, current := rows[0][:len(b)+1], rows[1][:len(b)+1]
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current[0] = i + 1
		for j := range len(b) {
			replace := previous[j]
			if lower(a[i]) != lower(b[j]) {
				replace++
			}
			current[j+1] = min(replace, previous[j+1]+1, current[j]+1)
		}
		previous, current = current, previous
	}
	return previous[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
