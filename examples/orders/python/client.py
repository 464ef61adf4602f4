"""Calls every method of a running order service from Python.

    client.py --port 8888

Two runtimes, thriftpy2 and Apache Thrift, each over bare and framed Binary.
Prints one JSON line a call: what was called, over which protocol, the result,
how many milliseconds it took, and whether the result is what orders.json and
the rules in orders.thrift make it. The exit code is 1 if one was not.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent
# The code that puts thriftpy2 and Apache Thrift behind one face is shared with
# the interoperability tests.
sys.path.insert(0, str(FOLDER.parent.parent / "test" / "interop" / "python"))

from peers import apache, thriftpy  # noqa: E402

PLACED, PAID, SHIPPED, DELIVERED, CANCELLED, RETURNED = range(1, 7)
FREE_SHIPPING_FROM = {"EUR": 5000, "USD": 5500, "GBP": 4500, "SEK": 55000}
SHIPPING = {"EUR": 490, "USD": 590, "GBP": 390, "SEK": 4900}
TAX_PERCENT = 19
UNKNOWN_ORDER = 1
PATIENT_SECONDS = 10.0
IMPATIENT_SECONDS = 0.15


class Difference(Exception):
    """The service answered something else than it should."""


class Visit:
    """One connection to the shop, and what the file says about it."""

    def __init__(self, runtime: Any, connect: Callable[[float], Any], file: dict[str, Any]) -> None:
        self.types = runtime.classes
        self.file = file
        self._connect = connect
        self._client = connect(PATIENT_SECONDS)

    def call(self, method: str, **arguments: Any) -> Any:
        return self._client.call(method, arguments)

    def fails(self, exception: str, method: str, **arguments: Any) -> Any:
        """Returns the declared exception that the call has to end with."""
        try:
            result = self.call(method, **arguments)
        except self.types[exception] as error:
            return error
        raise Difference(f"{method} returned {result!r} and should have thrown {exception}")

    def times_out(self, method: str, **arguments: Any) -> None:
        """Makes a call on a connection that waits for a short time only."""
        client = self._connect(IMPATIENT_SECONDS)
        try:
            client.call(method, arguments)
        except TimeoutError:
            return
        finally:
            client.close()
        raise Difference(f"{method} returned in time")

    def basket(self, **changes: Any) -> Any:
        """Returns a request for two enamel mugs and a notebook, with changes."""
        fields = {
            "customerId": self.file["customers"][0]["id"],
            "basket": {"NOTEBOOK-A5": 1, "MUG-ENAMEL-B": 2},
            "payment": self.types["Payment"](invoice=self.types["InvoicePayment"](dueDays=30)),
            "currency": "EUR",
            "wishes": {"note": "für Åsa"},
        }
        return self.types["PlaceRequest"](**(fields | changes))

    def close(self) -> None:
        self._client.close()


def same(expected: Any, actual: Any, what: str) -> None:
    if expected != actual:
        raise Difference(f"{what}: expected {expected!r}, got {actual!r}")


def totals(struct: Any) -> dict[str, int]:
    return {name: getattr(struct, name) for name in ("items", "shipping", "tax", "total")}


def totals_of(lines: list[Any], currency: str) -> dict[str, int]:
    items = sum(line.quantity * line.unitPrice for line in lines)
    shipping = 0 if items >= FREE_SHIPPING_FROM[currency] else SHIPPING[currency]
    total = items + shipping
    return {"items": items, "shipping": shipping, "tax": total * TAX_PERCENT // (100 + TAX_PERCENT), "total": total}


def lines(order: Any) -> list[tuple[str, int, int]]:
    return [(line.sku, line.quantity, line.unitPrice) for line in order.lines]


def get(visit: Visit) -> str:
    wanted = next(order for order in visit.file["orders"] if order["status"] == DELIVERED and len(order["lines"]) > 2)
    order = visit.call("get", id=wanted["id"])
    for name in ("id", "customerId", "status", "currency", "placedAt", "trackingCode"):
        same(wanted[name], getattr(order, name), name)
    same([(line["sku"], line["quantity"], line["unitPrice"]) for line in wanted["lines"]], lines(order), "lines")
    same(wanted["totals"], totals(order.totals), "totals")
    same({int(status): moment for status, moment in wanted["history"].items()}, order.history, "history")
    return f"order {order.id}, {len(order.lines)} lines, {order.totals.total} {order.currency} cents"


def get_unknown(visit: Visit) -> str:
    return f"NotFound: {visit.fails('NotFound', 'get', id=UNKNOWN_ORDER).what}"


def search(visit: Visit) -> str:
    customer = visit.file["customers"][7]["id"]
    wanted = [
        order["id"]
        for order in reversed(visit.file["orders"])
        if order["customerId"] == customer and order["status"] in (DELIVERED, RETURNED)
    ]
    request = visit.types["SearchRequest"](customerId=customer, statuses={DELIVERED, RETURNED}, limit=100)
    found = [order.id for order in visit.call("search", request=request)]
    same(wanted, found, "ids")
    return f"{len(found)} orders of customer {customer}"


def search_with_limit(visit: Visit) -> str:
    wanted = [order["id"] for order in reversed(visit.file["orders"]) if order["status"] == RETURNED][:5]
    request = visit.types["SearchRequest"](statuses={RETURNED}, limit=5)
    found = [order.id for order in visit.call("search", request=request)]
    same(wanted, found, "ids")
    return f"{len(found)} orders, the last returned"


def product(visit: Visit) -> str:
    wanted = visit.file["products"][3]
    found = visit.call("product", sku=wanted["sku"])
    for name in ("sku", "title", "category", "prices", "weightGrams"):
        same(wanted[name], getattr(found, name), name)
    same(set(wanted["tags"]), set(found.tags), "tags")
    return f"{found.title}, {found.prices['EUR']} cents"


def place(visit: Visit) -> str:
    before, sold = visit.call("stock", sku="MUG-ENAMEL-B"), visit.call("turnover")["EUR"]
    order = visit.call("place", request=visit.basket())
    same(PLACED, order.status, "status")
    same([("MUG-ENAMEL-B", 2, 1290), ("NOTEBOOK-A5", 1, 1450)], lines(order), "lines")
    same(totals_of(order.lines, "EUR"), totals(order.totals), "totals")
    same({"note": "für Åsa"}, order.wishes, "wishes")
    same(30, order.payment.invoice.dueDays, "days until the invoice is due")
    same(before - 2, visit.call("stock", sku="MUG-ENAMEL-B"), "stock")
    now = visit.call("turnover")["EUR"]
    same((sold.orders + 1, sold.totals.total + order.totals.total), (now.orders, now.totals.total), "turnover")
    return f"order {order.id}, {order.totals.total} cents, stock {before} -> {before - 2}"


def place_too_many(visit: Visit) -> str:
    left = visit.call("stock", sku="OAT-BISCUITS")
    error = visit.fails("OutOfStock", "place", request=visit.basket(basket={"OAT-BISCUITS": left + 1}))
    same(("OAT-BISCUITS", left), (error.sku, error.left), "exception")
    return f"OutOfStock: {error.left} of {error.sku} left"


def place_nothing(visit: Visit) -> str:
    error = visit.fails("InvalidOrder", "place", request=visit.basket(basket={}))
    return f"InvalidOrder: {error.field}: {error.reason}"


def turnover(visit: Visit) -> str:
    sold = visit.call("turnover")
    same({"EUR", "USD", "GBP", "SEK"}, set(sold), "currencies")
    wanted = [
        order
        for order in visit.file["orders"]
        if order["currency"] == "SEK" and order["status"] not in (CANCELLED, RETURNED)
    ]
    same(len(wanted), sold["SEK"].orders, "orders")
    same(sum(order["totals"]["total"] for order in wanted), sold["SEK"].totals.total, "total")
    return ", ".join(f"{sold[currency].orders} in {currency}" for currency in sorted(sold))


def advance(visit: Visit) -> str:
    order = visit.call("place", request=visit.basket())
    visit.call("advance", id=order.id, status=PAID)
    visit.call("advance", id=order.id, status=CANCELLED)
    same(CANCELLED, visit.call("get", id=order.id).status, "status")
    visit.fails("InvalidOrder", "advance", id=order.id, status=PLACED)
    visit.fails("NotFound", "advance", id=UNKNOWN_ORDER, status=PAID)
    return f"order {order.id} is cancelled and stays so"


def viewed(visit: Visit) -> str:
    order = visit.file["orders"][-1]["id"]
    before = visit.call("views", id=order)
    visit.call("viewed", id=order)
    end = time.monotonic() + PATIENT_SECONDS
    while (now := visit.call("views", id=order)) != before + 1:
        if time.monotonic() > end:
            raise Difference(f"views: expected {before + 1}, got {now}")
        time.sleep(0.01)
    return f"oneway, seen {before} -> {now} times"


def stocktake(visit: Visit) -> str:
    skus = ["KETTLE-12", "BUTTER-DISH"]
    request = visit.types["StocktakeRequest"](skus=skus, millisecondsPerArticle=1)
    report = visit.call("stocktake", request=request)
    same({sku: visit.call("stock", sku=sku) for sku in skus}, report.pieces, "pieces")
    same([sku for sku in skus if report.pieces[sku] == 0], report.empty, "empty")
    return f"{len(report.pieces)} articles counted, {len(report.empty)} with nothing left"


def stocktake_in_a_hurry(visit: Visit) -> str:
    visit.times_out("stocktake", request=visit.types["StocktakeRequest"](skus=[]))
    return f"gave up after {IMPATIENT_SECONDS} s"


CALLS: dict[str, Callable[[Visit], str]] = {
    "Orders.get": get,
    "Orders.get unknown": get_unknown,
    "Orders.search": search,
    "Orders.search with limit": search_with_limit,
    "Orders.product": product,
    "Orders.place": place,
    "Orders.place too many": place_too_many,
    "Orders.place nothing": place_nothing,
    "Orders.turnover": turnover,
    "Orders.advance": advance,
    "Orders.viewed": viewed,
    "Orders.stocktake": stocktake,
    "Orders.stocktake in a hurry": stocktake_in_a_hurry,
}


def run(runtime: Any, host: str, port: int, protocol: str, file: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Makes all calls over one protocol and yields a line for each."""

    def connect(timeout: float) -> Any:
        return runtime.connect(host, port, protocol, timeout)

    visit = Visit(runtime, connect, file)
    for what, check in CALLS.items():
        begin = time.monotonic()
        try:
            result, ok = check(visit), True
        except Exception as error:  # the line says what it was, and the rest goes on
            result, ok = f"{type(error).__name__}: {error}", False
        milliseconds = round((time.monotonic() - begin) * 1000, 1)
        yield {"what": what, "protocol": protocol, "result": result, "ok": ok, "milliseconds": milliseconds}
    visit.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Calls every method of a running order service.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--runtime", choices=("thriftpy2", "apache"), action="append")
    parser.add_argument("--protocol", choices=("bare", "framed"), action="append")
    options = parser.parse_args()
    file = json.loads((FOLDER / "data" / "orders.json").read_text(encoding="utf-8"))
    idl = str(FOLDER / "orders.thrift")
    ok = True
    for name in options.runtime or ("thriftpy2", "apache"):
        runtime = thriftpy.Runtime(idl, "Orders") if name == "thriftpy2" else apache.Runtime(idl, "Orders")
        for protocol in options.protocol or ("bare", "framed"):
            for line in run(runtime, options.host, options.port, protocol, file):
                print(json.dumps({"runtime": name} | line, ensure_ascii=False), flush=True)
                ok = ok and line["ok"]
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
