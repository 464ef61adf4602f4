package eventloop_test

const descriptorLimitChild = "FULMAR_TEST_DESCRIPTOR_LIMIT"

func runDescriptorLimitChild() {}
