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

// NewZooKeeper returns a ZooKeeper of one member that keeps its data in a folder, encrypted
// if there are files for that. It is not started. Its sessions live for 400 ms at least.
func NewZooKeeper(folder string, files *TLSFiles) (*Server, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("a Java runtime, which ZooKeeper needs: %w", exec.ErrNotFound)
	}
	jars, err := findJars("zookeeper", "zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-nop", "metrics-core", "snappy-java")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Address: "127.0.0.1:" + port, name: "ZooKeeper",
		data: filepath.Join(folder, "data"), log: filepath.Join(folder, "log"), answers: serves,
	}
	settings := fmt.Sprintf(`tickTime=200
minSessionTimeout=400
maxSessionTimeout=60000
dataDir=%s
clientPort=%s
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
`, s.data, port)
	if files != nil {
		netty, err := findJars("netty", "netty-common", "netty-buffer", "netty-codec", "netty-handler", "netty-resolver",
			"netty-transport", "netty-transport-native-epoll", "netty-transport-native-unix-common")
		if err != nil {
			return nil, err
		}
		encryption, err := s.encrypt(folder, files)
		if err != nil {
			return nil, err
		}
		jars, settings = append(jars, netty...), settings+encryption
	}
	file := filepath.Join(folder, "zoo.cfg")
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return nil, err
	}
	// As little Java as it runs with: it starts in a second.
	s.words = []string{
		java, "-Xmx192m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		// What it writes survives its end, and need not survive that of the machine.
		"-Dzookeeper.forceSync=no", "-cp", strings.Join(jars, string(os.PathListSeparator)),
		"org.apache.zookeeper.server.ZooKeeperServerMain", file,
	}
	return s, nil
}

// findJars returns jars of Debian's packages, from the system or from a folder of the cache.
// The first one says which.
func findJars(folder string, names ...string) ([]string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return nil, err
	}
	const library = "usr/share/java"
	first, err := find(folder, filepath.Join("/", library, names[0]+".jar"), filepath.Join(cache, folder, library, names[0]+".jar"))
	if err != nil {
		return nil, err
	}
	var jars []string
	for _, name := range names {
		jars = append(jars, filepath.Join(filepath.Dir(first), name+".jar"))
	}
	return jars, nil
}

// encrypt gives a ZooKeeper another port, with TLS, that is its address from now on, and
// returns the settings for it. On the first one it still says whether it serves.
func (s *Server) encrypt(folder string, files *TLSFiles) (settings string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	key, err := os.ReadFile(files.Key)
	if err != nil {
		return "", err
	}
	certificate, err := os.ReadFile(files.Certificate)
	if err != nil {
		return "", err
	}
	store := filepath.Join(folder, "store.pem")
	if err := os.WriteFile(store, append(key, certificate...), 0o600); err != nil {
		return "", err
	}
	plain := s.Address
	s.Address = "127.0.0.1:" + port
	s.answers = func(ctx context.Context, address string) error {
		if err := serves(ctx, plain); err != nil {
			return err
		}
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	settings = fmt.Sprintf(`secureClientPort=%s
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.type=PEM
ssl.keyStore.location=%s
`, port, store)
	if files.ClientAuthority == "" {
		return settings + "ssl.clientAuth=none\n", nil
	}
	return settings + fmt.Sprintf("ssl.trustStore.type=PEM\nssl.trustStore.location=%s\n", files.ClientAuthority), nil
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
