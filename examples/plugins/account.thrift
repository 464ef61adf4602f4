namespace go account

struct Account {
  1: string name (validate.required)
  2: string password (secret)
}

struct Team {
  1: map<string, Account> members
}
