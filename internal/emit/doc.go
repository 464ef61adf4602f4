// Package emit prints Go code from the model of gen/schema.
//
// Generate names everything first, then prints three files for each interface
// definition: types, codec and services. Printing is plain Go with a writer,
// one function for each kind of Go declaration; there are no templates.
//
// A definition may come from a stranger. What it says reaches the output in
// three ways only: identifiers are put together from ASCII letters, digits and
// underscores, texts are quoted by strconv, and comments lose everything that
// is not text and always keep a space behind the slashes. What holds
// comments or values of definitions is parsed before it is returned; of codecs,
// which hold neither, brackets and quotes are checked.
package emit
