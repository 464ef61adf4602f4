typedef Self Self
typedef B A
typedef list<C> B
typedef map<i32, A> C
struct S { 1: A a = [], 2: Self s }
typedef i32 D00
typedef list<list<list<list<list<list<list<list<D00>>>>>>>> D08
typedef list<list<list<list<list<list<list<list<D08>>>>>>>> D16
typedef list<list<list<list<list<list<list<list<D16>>>>>>>> D24
typedef list<list<list<list<list<list<list<list<D24>>>>>>>> D32
typedef list<list<list<list<list<list<list<list<D32>>>>>>>> D40
typedef list<list<list<list<list<list<list<list<D40>>>>>>>> D48
typedef list<list<list<list<list<list<list<list<D48>>>>>>>> D56
typedef list<list<list<list<list<list<list<list<D56>>>>>>>> D64
