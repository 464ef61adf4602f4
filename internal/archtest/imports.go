package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// placeOf returns the policy's entry for folder: the most specific one.
func placeOf(policy []place, folder string) (place, bool) {
	var best place
	found := false
	for _, p := range policy {
		subtree, recursive := strings.CutSuffix(p.folder, "/...")
		if folder != subtree && !(recursive && within(folder, subtree)) {
			continue
		}
		if !found || len(p.folder) > len(best.folder) {
			best, found = p, true
		}
	}
	return best, found
}

// checkPlaces wants every package to stand in the policy.
func checkPlaces(t *tree) []finding {
	policy := packagePolicy()
	seen := map[string]bool{}
	var findings []finding
	for _, file := range t.goFiles {
		if seen[file.folder] {
			continue
		}
		seen[file.folder] = true
		if _, ok := placeOf(policy, file.folder); !ok {
			findings = append(findings, finding{
				file: file.path, line: 1, what: file.folder,
				message: fmt.Sprintf("package %s is not in the layer table: a new package needs a decision record in docs/adr and an entry in internal/archtest/policy.go", file.folder),
			})
		}
	}
	return findings
}

// checkImports wants every import to be an edge that the policy allows.
func checkImports(t *tree) []finding {
	policy := packagePolicy()
	var findings []finding
	for _, file := range t.goFiles {
		from, ok := placeOf(policy, file.folder)
		if !ok {
			continue // checkPlaces reports it.
		}
		for _, spec := range file.syntax.Imports {
			if spec.Name != nil && spec.Name.Name == "." {
				findings = append(findings, finding{
					file: file.path, line: file.position(spec.Pos()), what: spec.Path.Value,
					message: fmt.Sprintf("import . %s: nobody, and no rule, sees where its names come from", spec.Path.Value),
				})
			}
		}
		for name, line := range file.imports() {
			if reason := refuseImport(policy, file, from, name); reason != "" {
				findings = append(findings, finding{
					file: file.path, line: line, what: name,
					message: fmt.Sprintf("edge %s -> %s: %s", importPath(file.folder), name, reason),
				})
			}
		}
	}
	return findings
}

func importPath(folder string) string { return path.Join(modulePath, folder) }

// refuseImport returns why file must not import name, or "".
func refuseImport(policy []place, file *goFile, from place, name string) string {
	if !file.test {
		for _, banned := range from.without {
			if within(name, banned) {
				return fmt.Sprintf("%s must do without %s: %s", from.folder, banned, from.why)
			}
		}
	}
	if target, ok := strings.CutPrefix(name+"/", modulePath+"/"); ok {
		return refuseEdge(policy, file, from, path.Clean("./"+target))
	}
	if first, _, _ := strings.Cut(name, "/"); !strings.Contains(first, ".") {
		return refuseStandard(file, from, name)
	}
	return refuseThirdParty(file, from, name)
}

// refuseStandard judges an import of the standard library.
func refuseStandard(file *goFile, from place, name string) string {
	if file.test || from.standard == nil || slices.Contains(from.standard, name) {
		return ""
	}
	return fmt.Sprintf("of the standard library, the only packages that %s may import are %s: %s", from.folder, strings.Join(from.standard, ", "), from.why)
}

func refuseThirdParty(file *goFile, from place, name string) string {
	allowed := from.thirdParty
	if file.test {
		allowed = append(slices.Clone(allowed), from.testThirdParty...)
	}
	for _, module := range allowed {
		if module == "*" || within(name, module) {
			return ""
		}
	}
	return fmt.Sprintf("third-party imports of %s are limited to %v (D3)", from.folder, allowed)
}

// refuseEdge judges an import inside the repository.
func refuseEdge(policy []place, file *goFile, from place, target string) string {
	to, ok := placeOf(policy, target)
	subtree := strings.TrimSuffix(from.folder, "/...")
	switch {
	case !ok:
		return "the imported package is not in the layer table"
	case target == file.folder, to.folder == from.folder && within(target, subtree):
		return "" // A test of its own package, or one subtree.
	case target == "internal/limits":
		return "" // Limits may be used everywhere: they import nothing and decide nothing.
	case from.group == moduleGroup:
		return refuseModuleEdge(file, from, to, target)
	case to.group == moduleGroup:
		return "nested modules are not imported by the rest"
	case to.group == testGroup:
		return refuseTestEdge(file, from, to)
	case from.group == testGroup:
		return refuseHelperEdge(file, from, to, target)
	case from.group != to.group:
		if to.public && from.group == generatorGroup && (file.test || from.folder == "cmd/fulmar/...") {
			return "" // For calls, and to try out what was generated, it is a user.
		}
		return fmt.Sprintf("the %s and the %s share no packages", from.group, to.group)
	case file.test && (to.line <= from.line || target == "internal/simnet"):
		return "" // A test may use its neighbours and the simulated network.
	case to.line < from.line:
		return ""
	case to.line == from.line:
		return fmt.Sprintf("both stand on line %d of the %s: packages of one line do not import each other", to.line, to.group)
	}
	return fmt.Sprintf("imports point down, but this goes up from line %d to line %d of the %s", from.line, to.line, to.group)
}

func refuseModuleEdge(file *goFile, from, to place, target string) string {
	switch {
	case to.public:
		return ""
	case target == "internal/loadgen" && from.folder == "bench/...":
		return ""
	case target == "internal/testkit" && (file.test || from.folder == "bench/..."):
		return ""
	case (target == "internal/testservers" || target == "internal/registrytest") && file.test:
		return ""
	case from.folder == "test/grpc/..." && target == "internal/protoservice" && file.test:
		return ""
	case file.folder == "test/kitex/proxied" && file.test && (to.folder == "internal/wire/..." || target == "internal/linkbuf"):
		return ""
	case from.folder == "test/wire" && file.test && (to.folder == "internal/wire/..." || target == "internal/thriftwire"):
		return ""
	}
	return fmt.Sprintf("%s uses the public packages only", from.folder)
}

func refuseTestEdge(file *goFile, from, to place) string {
	if file.test || from.group == testGroup && to.line < from.line {
		return ""
	}
	return fmt.Sprintf("%s is imported by tests only", to.folder)
}

// refuseHelperEdge judges what the test helpers import. The lowest packages
// use them in their tests, so they themselves stand on almost nothing.
func refuseHelperEdge(file *goFile, from, to place, target string) string {
	switch {
	case file.test && (to.public || to.line <= 1):
		return ""
	case to.public && (from.folder == "internal/loadgen" || from.folder == "internal/testservice" || from.folder == "internal/protoservice"):
		return ""
	case to.public && from.folder == "internal/registrytest": // it is for modules only, which use all that is public
		return ""
	case to.group == runtimeGroup && to.line == 0, target == "internal/linkbuf":
		return ""
	}
	return fmt.Sprintf("%s is used by the tests of the lowest packages, so it imports only internal/assert, internal/limits and internal/linkbuf", from.folder)
}

// checkRequirements bounds what the root module requires, and wants nested
// modules to find the root through a replace directive.
func checkRequirements(t *tree) []finding {
	allowed := rootRequirements()
	var findings []finding
	for _, module := range t.modules {
		name := path.Join(module, "go.mod")
		direct, replaced := readRequirements(string(t.texts[name]))
		if module != "." {
			if _, ok := direct[modulePath]; ok && !replaced[modulePath] {
				findings = append(findings, finding{
					file: name, line: direct[modulePath], what: modulePath,
					message: "requires the root module without a replace directive to the work tree",
				})
			}
			continue
		}
		for requirement, line := range direct {
			if !slices.Contains(allowed, requirement) {
				findings = append(findings, finding{
					file: name, line: line, what: requirement,
					message: fmt.Sprintf("the root module may require %v only, not %s (D3, ADR-0017)", allowed, requirement),
				})
			}
		}
		if len(direct) > rootRequirementsMax {
			findings = append(findings, finding{
				file: name, line: 1, what: "count",
				message: fmt.Sprintf("%d direct requirements, at most %d (D3)", len(direct), rootRequirementsMax),
			})
		}
	}
	return findings
}

// readRequirements returns the direct requirements of a go.mod with their
// lines, and the modules that it replaces.
func readRequirements(content string) (direct map[string]int, replaced map[string]bool) {
	direct, replaced = map[string]int{}, map[string]bool{}
	block, number := "", 0
	for line := range strings.Lines(content) {
		number++
		code, comment, _ := strings.Cut(line, "//")
		words := strings.Fields(code)
		switch {
		case len(words) == 0:
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case words[0] == ")":
			block = ""
			continue
		}
		verb := block
		if block == "" {
			verb, words = words[0], words[1:]
		}
		switch {
		case len(words) == 0:
		case verb == "replace":
			replaced[words[0]] = true
		case verb == "require" && !strings.Contains(comment, "indirect"):
			direct[words[0]] = number
		}
	}
	return direct, replaced
}
