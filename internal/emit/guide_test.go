package emit_test

import (
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/emit"
	"github.com/fulmar-rpc/fulmar/internal/idl"
)

// guideRow is a row of a table whose first column is headed "definition".
type guideRow struct {
	line int
	// section is the heading above the table.
	section string
	// definition and result are the code of the first two columns, said is the
	// second column as a whole.
	definition, result []string
	said               string
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// codeOf returns the code in a cell of a table, where bars are escaped.
func codeOf(cell string) []string {
	var list []string
	for _, match := range codeSpan.FindAllStringSubmatch(cell, -1) {
		list = append(list, strings.ReplaceAll(match[1], `\|`, "|"))
	}
	return list
}

// guideRows reads the tables of definitions.
func guideRows(text string) []guideRow {
	var rows []guideRow
	section, inTable := "", false
	for number, line := range strings.Split(text, "\n") {
		if heading, found := strings.CutPrefix(line, "## "); found {
			section = heading
		}
		if !strings.HasPrefix(line, "| ") {
			inTable = inTable && strings.HasPrefix(line, "|--")
			continue
		}
		cells := splitCells(line)
		if cells[0] == "definition" {
			inTable = true
			continue
		}
		if inTable {
			rows = append(rows, guideRow{number + 1, section, codeOf(cells[0]), codeOf(cells[1]), cells[1]})
		}
	}
	return rows
}

// splitCells cuts a row at the bars that are not escaped.
func splitCells(line string) []string {
	const escaped = "\x00"
	line = strings.Trim(strings.ReplaceAll(line, `\|`, escaped), "| ")
	cells := strings.Split(line, "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, escaped, `\|`))
	}
	return cells
}

var (
	otherFile = regexp.MustCompile(`^([\w/-]+\.thrift): (.*)$`)
	header    = regexp.MustCompile(`^(namespace|include|cpp_include|xsd_namespace)\b`)
)

// generateRow generates what the first column of a row says: flags, other
// files, headers, and declarations.
func generateRow(t *testing.T, row guideRow) (files []emit.File, said string) {
	t.Helper()
	memory := idl.Memory{}
	options := idl.Options{Files: []string{"main.thrift"}, FileSystem: memory}
	output := emit.Options{ImportPrefix: "example.com/gen"}
	var headers, declarations strings.Builder
	named := false
	for _, code := range row.definition {
		switch match := otherFile.FindStringSubmatch(code); {
		case match != nil:
			memory[match[1]] += match[2] + "\n"
		case code == "--allow-negative-ids":
			options.AllowNegativeIDs = true
		case code == "--implicit-ids=apache":
			options.ImplicitIDs = idl.ImplicitIDsApache
		case code == "--implicit-ids=thriftgo":
			options.ImplicitIDs = idl.ImplicitIDsThriftgo
		case code == "--ignore-initialisms":
			output.IgnoreInitialisms = true
		case code == "--keep-unknown":
			output.KeepUnknown = true
		case code == "--unique-sets":
			output.UniqueSets = true
		case code == "--shape=kitex":
			output.Kitex = true
		case strings.HasPrefix(code, "--namespace "):
			old, other, _ := strings.Cut(strings.TrimPrefix(code, "--namespace "), "=")
			options.Namespaces = map[string]string{old: other}
		case strings.HasPrefix(code, "--"):
			t.Fatalf("unknown flag %s", code)
		case header.MatchString(code):
			named = named || strings.HasPrefix(code, "namespace go ")
			headers.WriteString(code + "\n")
		default:
			declarations.WriteString(code + "\n")
		}
	}
	if !named {
		headers.WriteString("namespace go shop\n")
	}
	if declarations.Len() == 0 {
		declarations.WriteString("struct Placeholder {}\n")
	}
	memory["main.thrift"] = headers.String() + declarations.String()
	program, diagnostics := idl.Load(options)
	if program == nil {
		return nil, diagnostics.String()
	}
	files, more := emit.Generate(program, output)
	return files, diagnostics.String() + more.String()
}

// TestGuide_EveryRowIsTrue generates every definition that the guide shows. The
// code in the second column has to be in what is printed, or, behind the word
// "refused" or "warning", in the messages. What is generated has to compile,
// and only rows that say so may have messages.
func TestGuide_EveryRowIsTrue(t *testing.T) {
	content, err := os.ReadFile(filepath.FromSlash("../../docs/guide/idl.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := guideRows(string(content))
	if len(rows) < 100 {
		t.Errorf("only %d rows were found", len(rows))
	}
	runtime := newChecker(t)
	for _, row := range rows {
		t.Run(row.section+"/"+strings.Join(row.definition, " "), func(t *testing.T) {
			checkRow(t, row, &checker{fileSet: runtime.fileSet, runtime: runtime.runtime, checked: map[string]*types.Package{}})
		})
	}
}

func checkRow(t *testing.T, row guideRow, c *checker) {
	files, messages := generateRow(t, row)
	refused := strings.Contains(row.said, "refused")
	warned := strings.Contains(row.said, "warning")
	if refused != (files == nil) || warned != (files != nil && messages != "") || len(row.result) == 0 {
		t.Errorf("idl.md:%d: says %q, but %d files were generated, with these messages:\n%s", row.line, row.said, len(files), messages)
		return
	}
	var printed strings.Builder
	for _, file := range files {
		printed.WriteString("// file " + file.Path + "\n")
		printed.Write(file.Content())
	}
	code := dense(printed.String())
	before, _, _ := strings.Cut(strings.ReplaceAll(row.said, "refused", "warning"), "warning")
	inGo := len(codeOf(before))
	for i, part := range row.result {
		if i < inGo && !strings.Contains(code, dense(part)) {
			t.Errorf("idl.md:%d: %q is not in the code:\n%s", row.line, part, printed.String())
		}
		if i >= inGo && !strings.Contains(messages, part) {
			t.Errorf("idl.md:%d: %q is not in the messages:\n%s", row.line, part, messages)
		}
	}
	mustCheck(t, c, files, "example.com/gen")
}

// dense removes what gofmt adds to align lines.
func dense(code string) string { return strings.Join(strings.Fields(code), " ") }
