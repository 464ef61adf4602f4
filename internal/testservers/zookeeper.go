package testservers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// NewZooKeeper returns a ZooKeeper of one member that keeps its data in a folder. It is
// not started. Its sessions live for 400 ms at least.
func NewZooKeeper(folder string) (*Server, error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("a Java runtime, which ZooKeeper needs: %w", exec.ErrNotFound)
	}
	const library = "usr/share/java"
	first, err := find("ZooKeeper", filepath.Join("/", library, "zookeeper.jar"), filepath.Join(cache, "zookeeper", library, "zookeeper.jar"))
	if err != nil {
		return nil, err
	}
	var jars []string
	for _, name := range []string{"zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "metrics-core", "snappy-java"} {
		jars = append(jars, filepath.Join(filepath.Dir(first), name+".jar"))
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	data, settings := filepath.Join(folder, "data"), filepath.Join(folder, "zoo.cfg")
	text := fmt.Sprintf(`tickTime=200
minSessionTimeout=400
maxSessionTimeout=60000
dataDir=%s
clientPort=%s
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
`, data, port)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return &Server{
		Address: "127.0.0.1:" + port, name: "ZooKeeper", data: data, log: filepath.Join(folder, "log"), answers: serves,
		// As little Java as it runs with: it starts in a second.
		words: []string{
			java, "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			// What it writes survives its end, and need not survive that of the machine.
			"-Dzookeeper.forceSync=no", "-cp", strings.Join(jars, string(os.PathListSeparator)),
			"org.apache.zookeeper.server.ZooKeeperServerMain", settings,
		},
	}, nil
}

// serves asks a ZooKeeper whether it does.
func serves(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	// It answers before it serves, and says so.
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<10))
	if err == nil && !strings.Contains(string(answer), "Mode:") {
		err = fmt.Errorf("it does not serve yet (got %q)", answer)
	}
	return err
}
