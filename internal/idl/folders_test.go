package idl_test

import (
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/idl"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// TestLoad_NamesOfFilesBecomeFolders has files without a namespace, whose names
// become those of packages and folders.
func TestLoad_NamesOfFilesBecomeFolders(t *testing.T) {
	long := strings.Repeat("x", 240)
	for base, want := range map[string]string{
		"orders":        "orders",
		"Orders-v2":     "orders_v2",
		"con":           "conidl",
		"CON":           "conidl",
		"prn":           "prnidl",
		"aux":           "auxidl",
		"nul":           "nulidl",
		"com0":          "com0idl",
		"com1":          "com1idl",
		"Lpt9":          "lpt9idl",
		"com":           "com",
		"com10":         "com10",
		"console":       "console",
		"null":          "null",
		"vendor":        "vendoridl",
		"testdata":      "testdataidl",
		"internal":      "internalidl",
		"main":          "mainidl",
		"init":          "initidl",
		"documentation": "documentationidl",
		"func":          "funcidl",
		"orders_test":   "orders_testidl",
		"orders_linux":  "orders_linux",
		"orders_amd64":  "orders_amd64",
		"_orders":       "orders",
		".orders":       "orders",
		"_":             "idl",
		".":             "idl",
		"..":            "idl",
		"2020":          "idl2020",
		"\u00e4\u00f6":  "idl",
		long:            long[:limits.GoFileNameBytes-2*len("idl")],
	} {
		name := base + ".thrift"
		program, diagnostics := idl.Load(idl.Options{Files: []string{name}, FileSystem: idl.Memory{name: "struct S {}"}})
		if program == nil {
			t.Errorf("%s: %s", name, diagnostics)
			continue
		}
		if p := program.Packages[0]; p.Path != want || p.Name != want {
			t.Errorf("%s: package %s in folder %s, want %s", name, p.Name, p.Path, want)
		}
	}
}

// TestLoad_NamespacesThatAreNoFolders refuses what Go or an operating system
// takes for something else.
func TestLoad_NamespacesThatAreNoFolders(t *testing.T) {
	long := strings.Repeat("x", limits.GoFileNameBytes)
	for namespace, want := range map[string]string{
		"acme.con":           `component "con" is the name of a device on Windows`,
		"Nul.acme":           `component "Nul" is the name of a device on Windows`,
		"acme.PRN":           `component "PRN" is the name of a device on Windows`,
		"aux":                `component "aux" is the name of a device on Windows`,
		"acme.com1":          `component "com1" is the name of a device on Windows`,
		"acme.LPT9.x":        `component "LPT9" is the name of a device on Windows`,
		"testdata":           `component "testdata" has a meaning of its own to Go`,
		"acme.vendor.x":      `component "vendor" has a meaning of its own to Go`,
		"acme.internal":      `component "internal" would hide the package`,
		"internal.acme":      `component "internal" would hide the package`,
		"_acme":              `component "_acme" begins with an underscore`,
		"acme._orders":       `component "_orders" begins with an underscore`,
		"acme.orders_test":   `component "orders_test" ends in _test`,
		"acme.init":          `no other Go package can import a package "init"`,
		"acme.main":          `no other Go package can import a package "main"`,
		"acme.documentation": `Go ignores the files of a package "documentation"`,
		"acme." + long + "x": `component "` + long[:80] + `..." is too long for a folder (limit 120 bytes, got 121)`,
		"init.main.x":        "",
		"orders_test.acme":   "",
		"acme.orders_linux":  "",
		"acme.console.com":   "",
		"acme." + long:       "",
	} {
		files := idl.Memory{"a.thrift": "namespace go " + namespace + "\nstruct S {}"}
		program, diagnostics := idl.Load(idl.Options{Files: []string{"a.thrift"}, FileSystem: files})
		switch got := diagnostics.String(); {
		case want == "" && (program == nil || program.Packages[0].Path != strings.ReplaceAll(namespace, ".", "/")):
			t.Errorf("%s: %s", namespace, got)
		case want != "" && !strings.HasPrefix(got, `a.thrift:1:14: namespace go "`) || !strings.Contains(got, want):
			t.Errorf("%s: %q, want %q", namespace, got, want)
		}
	}
}
