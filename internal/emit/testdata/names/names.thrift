namespace go names

// Names that are spelled in more than one way, taken, or mean something in Go.
struct user { 1: string id, 2: string userId, 3: string user_id, 4: string URL, 5: string homeUrl, 6: list<i64> order_ids }
struct NewUser { 1: string type, 2: string func, 3: string error, 4: i32 _, 5: i32 _1, 6: i32 v1_2, 7: i32 v12 }
struct User_ { 1: optional string name, 2: string get_name, 3: optional string getName }
struct WriteThrift { 1: i32 WriteThrift, 2: i32 readThrift, 3: i32 string, 4: i32 s, 5: i32 w, 6: i32 r }
struct HTTPServer { 1: string http_url, 2: string x509Cert, 3: i32 MAX_SIZE, 4: i32 utf8 }
struct OrdersServer {}
struct OrdersPlaceArgs {}
struct thrift { 1: i32 fulmar, 2: thrift2 context }
struct thrift2 { 1: i32 key, 2: list<i32> list, 3: map<i32, i32> value }

struct renamed { 1: i32 a (go.name = "Alpha"), 2: i32 b (go.tag = 'json:"bee" db:"b,pk"'), 3: i32 c (go.tag = "yaml:\"`c`\"") } (go.name = "Given")

exception error { 1: string error, 2: string Error, 3: string message }
exception Failed { 1: required string message }

enum Parse { Status, parse, String }
enum status { new, NEW, New, _x }
enum ParseStatus { A }

const i32 status_NEW = 1
const i32 MAX_SIZE = 3
const string http_url = "x"

typedef string string_
typedef i64 Int64

service Orders {
  i32 place(1: i32 ctx, 2: i32 options, 3: i32 args, 4: i32 err, 5: i32 c, 6: i32 result, 7: i32 fulmar)
  i32 Place(1: i32 func, 2: i32 type, 3: i32 string, 4: i32 nil, 5: i32 URLPath, 6: i32 url_path, 7: i32 urlPath)
  void register(1: thrift thrift, 2: i32 context, 3: i32 _)
  void get_x()
  void getX() throws (1: error success, 2: error Success, 3: Failed replyError)
}
service OrdersPlace { void it(), void other(1: i32 ordersPlaceOtherMethod, 2: i32 ordersPlaceClient) }
service orders { void PlaceIt() }
service URLShortener { string shorten(1: string url) }
