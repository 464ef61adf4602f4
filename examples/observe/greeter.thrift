namespace go greeter

service Greeter {
  string greet(1: string name)
}
