package idl

// What front ends for other languages share with this one: the same rules for files and
// for Go packages.

// OperatingSystem returns the file system that Load reads from unless it is given one.
func OperatingSystem() FileSystem { return operatingSystem{} }

// Within reports whether a folder holds a file, or is the file itself. Both names are
// clean, and both absolute or both relative.
func Within(folder, file string) bool { return within(folder, file) }

// CheckNamespace says what keeps a dotted name from being a Go package below the output
// folder, as the end of a sentence; "" if nothing does.
func CheckNamespace(name string) string { return checkNamespace(name) }

// PackageName makes a Go package name of a file's name without folder and extension.
func PackageName(base string) string { return packageName(base) }
