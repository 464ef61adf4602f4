// Package view is the runtime of generated views: types that check a struct in the Binary
// protocol once, read and change fields where they are, and write the rest as it came.
// Generated code is its usual caller; users meet Numbers, List and Map, which getters
// return, and Lookup.
package view
