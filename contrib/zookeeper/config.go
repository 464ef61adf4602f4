package zookeeper

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fulmar-rpc/fulmar/cluster/registries"
)

const (
	defaultSessionTimeout = 30 * time.Second
	// rootBytesMax bounds the root, which is a part of every path.
	rootBytesMax = 256
)

// Secret is a text that is neither printed nor logged, whatever it is a part of.
type Secret = registries.Secret

// Config is how a Registry reaches ZooKeeper and what it does there. 0 is the default of
// a field, negative switches off what can be switched off.
type Config struct {
	// Servers are those of the ensemble, as host:port. One at least. Names are looked up
	// at every connection.
	Servers []string
	// TLS, unless it is nil, encrypts the connections.
	TLS *tls.Config `json:"-"`
	// User and Password, unless both are empty, are a digest identity: nodes that are
	// made belong to it alone, as with Kitex, so readers need the same one.
	User     string
	Password Secret `json:"-"`
	// Root is the path below which services are, such as "/prod". Default: services are
	// at the top, as with Kitex.
	Root string
	// SessionTimeout is how long an instance stays known whose server has vanished
	// without a word; ZooKeeper bounds it. A sign of life goes out three times within
	// it. Default 30 s: shorter ones lose instances in shorter outages, longer ones keep
	// dead instances in lists. At least 100 ms.
	SessionTimeout time.Duration
	// Common is what all registries have. RequestTimeout is that of connecting as well, of
	// which the pauses are a second longer than BackoffMin and BackoffMax say. Lists are
	// compared every CheckInterval, announcements three times within SessionTimeout.
	registries.Common
}

// Validate reports all that is wrong with a Config.
func (c Config) Validate() error {
	var problems []error
	add := func(field, format string, arguments ...any) {
		problems = append(problems, fmt.Errorf("zookeeper config: %s: %s", field, fmt.Sprintf(format, arguments...)))
	}
	if len(c.Servers) == 0 {
		add("Servers", "none is given")
	}
	for i, server := range c.Servers {
		if err := registries.CheckHostPort(server); err != nil {
			add("Servers", "number %d: %v", i+1, err)
		}
	}
	if (c.User == "") != (c.Password == "") {
		add("User", "it goes with Password, and one of them is empty")
	}
	if strings.Contains(c.User, ":") {
		add("User", "a colon ends it")
	}
	if err := checkRoot(c.Root); err != nil {
		add("Root", "%v", err)
	}
	if c.SessionTimeout != 0 && c.SessionTimeout < 100*time.Millisecond {
		add("SessionTimeout", "it is at least 100 ms (got %v)", c.SessionTimeout)
	}
	registries.CheckCommon(c.Common, add)
	return errors.Join(problems...)
}

// withDefaults returns the Config with what 0 stands for.
func (c Config) withDefaults() Config {
	c.Root = strings.TrimRight(c.Root, "/")
	c.Common = registries.CommonDefaults(c.Common)
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultSessionTimeout
	}
	c.Servers = append([]string(nil), c.Servers...)
	return c
}

// checkRoot wants nothing, or an absolute path of names.
func checkRoot(root string) error {
	if root == "" {
		return nil
	}
	if root[0] != '/' || len(root) > rootBytesMax {
		return fmt.Errorf("it is an absolute path of at most %d bytes (got %.80q)", rootBytesMax, root)
	}
	for _, name := range strings.Split(strings.Trim(root, "/"), "/") {
		if err := registries.CheckService(name); err != nil {
			return fmt.Errorf("part of %.80q: %w", root, err)
		}
	}
	return nil
}
