package guide_test

import (
	"fmt"
	"log"

	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/thrift/descriptor"
)

// printFields says what fields a generated struct has.
func printFields(s descriptor.Described) error {
	described, file, err := descriptor.Of(s)
	if err != nil {
		return err
	}
	for _, field := range described.Fields {
		text := fmt.Sprintf("%d: %v %s", field.ID, field.Type.Kind, field.Name)
		if field.Type.Kind == descriptor.Kind_LIST && field.Type.Element.Kind == descriptor.Kind_STRUCT {
			element, _, err := file.StructOf(field.Type.Element)
			if err != nil {
				return err
			}
			text += " of " + element.Name
		}
		fmt.Println(text)
	}
	return nil
}

func Example_describe() {
	if err := printFields(&testservice.Message{}); err != nil {
		log.Fatal(err)
	}
	service, err := testservice.TestserviceDescriptor.Service("Echo")
	if err != nil {
		log.Fatal(err)
	}
	method, _, err := testservice.TestserviceDescriptor.Method(service, "version") // inherited
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(service.Name, "extends", service.Parent, "with", method.Name, "of", method.Result.Kind)
	// Output:
	// 1: STRING text
	// 2: I64 number
	// 3: LIST parts of Message
	// 4: MAP labels
	// Echo extends Base with version of STRING
}
