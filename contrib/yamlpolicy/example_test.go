package yamlpolicy_test

import (
	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/contrib/yamlpolicy"
)

// A client that does not begin without its policy, and follows the file afterwards.
func ExampleRead() {
	connect := func() (*fulmar.Client, error) {
		document, err := yamlpolicy.Read("policy.yaml")
		if err != nil {
			return nil, err
		}
		return fulmar.NewClient(fulmar.ClientConfig{
			Target:       "dns:///orders.internal:8888",
			Policy:       document.Client,
			PolicySource: yamlpolicy.File("policy.yaml"),
		})
	}
	_ = connect
}
