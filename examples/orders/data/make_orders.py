"""Writes orders.json: what the shop of the example starts with.

    python3 make_orders.py > orders.json

The same version of this script writes the same bytes on every Python: it
draws only from random.random(), whose sequence Python guarantees for a seed.

The file holds one object with the members

    products   list of Product
    stock      pieces left by SKU
    customers  list of Customer
    orders     list of Order, the lowest number first

in the names of orders.thrift; enums are numbers, and a field that is not there
is not set. An order without shipTo goes to the address of its customer. Names,
addresses and numbers are made up.
"""

import json
import random
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")

SEED = 20260821
ORDERS = 300
CUSTOMERS = 60
FIRST_ORDER_ID = 480_100
FIRST_CUSTOMER_ID = 7_001
START = 1_767_225_600_000  # 2026-01-01T00:00:00Z in milliseconds
MINUTE = 60_000
DAY = 24 * 60 * MINUTE

PLACED, PAID, SHIPPED, DELIVERED, CANCELLED, RETURNED = range(1, 7)

TAX_PERCENT = 19
FREE_SHIPPING_FROM = {"EUR": 5000, "USD": 5500, "GBP": 4500, "SEK": 55000}
SHIPPING = {"EUR": 490, "USD": 590, "GBP": 390, "SEK": 4900}

# SKU, title, category, price in euro cents, tags, grams (0: not known)
CATALOGUE = [
    ("MUG-ENAMEL-W", "Enamel mug, white", "kitchen", 1290, "enamel gift", 310),
    ("MUG-ENAMEL-B", "Enamel mug, blue", "kitchen", 1290, "enamel gift", 310),
    ("KETTLE-12", "Stove-top kettle, 1.2 l", "kitchen", 4990, "steel", 940),
    ("BREAD-BOARD", "Bread board, oak", "kitchen", 3450, "wood gift", 1150),
    ("KNIFE-PARING", "Paring knife", "kitchen", 1890, "steel", 80),
    ("TEA-TOWEL-3", "Tea towels, set of three", "kitchen", 2200, "linen", 260),
    ("BUTTER-DISH", "Butter dish, stoneware", "kitchen", 2790, "stoneware gift", 720),
    ("COFFEE-FILTER", "Coffee filter, porcelain", "kitchen", 2390, "porcelain", 480),
    ("HONEY-500", "Heather honey, 500 g", "pantry", 990, "food local", 760),
    ("SALT-FLAKES", "Sea salt flakes", "pantry", 650, "food", 180),
    ("TEA-EARLY", "Breakfast tea, loose", "pantry", 850, "food tea", 140),
    ("TEA-ROOIBOS", "Rooibos, loose", "pantry", 790, "food tea", 140),
    ("CHOC-DARK-85", "Dark chocolate 85 %", "pantry", 450, "food gift", 105),
    ("OIL-OLIVE-1L", "Olive oil, 1 l", "pantry", 1790, "food", 1480),
    ("JAM-APRICOT", "Apricot jam", "pantry", 620, "food local", 390),
    ("OAT-BISCUITS", "Oat biscuits", "pantry", 520, "food", 230),
    ("HAT-WOOL-G", "Wool hat, grey", "clothing", 2990, "wool", 90),
    ("HAT-WOOL-R", "Wool hat, rust", "clothing", 2990, "wool", 90),
    ("SCARF-LAMB", "Lambswool scarf", "clothing", 4590, "wool gift", 170),
    ("SOCKS-HIKE-M", "Hiking socks, M", "clothing", 1690, "wool outdoor", 75),
    ("SOCKS-HIKE-L", "Hiking socks, L", "clothing", 1690, "wool outdoor", 80),
    ("GLOVES-FELT", "Felted gloves", "clothing", 3290, "wool", 110),
    ("RAINCOAT-M", "Raincoat, M", "clothing", 11900, "outdoor", 620),
    ("RAINCOAT-L", "Raincoat, L", "clothing", 11900, "outdoor", 650),
    ("SHIRT-FLANNEL", "Flannel shirt", "clothing", 5990, "cotton", 340),
    ("LANTERN-LED", "Camping lantern", "outdoor", 3990, "outdoor electric", 410),
    ("FLASK-750", "Vacuum flask, 750 ml", "outdoor", 3490, "steel outdoor", 380),
    ("BLANKET-PICNIC", "Picnic blanket", "outdoor", 5490, "wool outdoor", 1320),
    ("COMPASS", "Baseplate compass", "outdoor", 2490, "outdoor", 60),
    ("ROPE-20", "Rope, 20 m", "outdoor", 2890, "outdoor", 1500),
    ("BINOCULARS-8", "Binoculars 8x32", "outdoor", 18900, "outdoor optics", 530),
    ("MAP-COAST", "Map of the coast 1:50,000", "paper", 1250, "paper outdoor", 95),
    ("BOOK-SEABIRDS", "Seabirds, a field guide", "paper", 2800, "book", 560),
    ("BOOK-BREAD", "Bread at home", "paper", 3200, "book", 980),
    ("NOTEBOOK-A5", "Notebook A5, dotted", "paper", 1450, "paper", 300),
    ("NOTEBOOK-A6", "Notebook A6, plain", "paper", 1090, "paper", 160),
    ("PENCILS-12", "Pencils, twelve", "paper", 1190, "paper gift", 90),
    ("CARDS-BIRDS", "Bird postcards, ten", "paper", 890, "paper gift", 70),
    ("CALENDAR", "Tide calendar", "paper", 1590, "paper", 0),
    ("GIFT-CARD", "Gift card", "paper", 2500, "gift", 0),
]

# What one euro is in each currency, and what prices are rounded to, in cents.
RATES = {"EUR": (1.0, 1), "USD": (1.09, 10), "GBP": (0.86, 10), "SEK": (11.3, 100)}

FIRST_NAMES = {
    "DE": ["Anna", "Jonas", "Lea", "Felix", "Katharina", "Björn", "Sophie", "Jürgen", "Mia", "Lukas"],
    "FR": ["Camille", "Hugo", "Chloé", "Théo", "Inès", "Louis"],
    "NL": ["Sanne", "Daan", "Femke", "Bram"],
    "AT": ["Johanna", "Maximilian", "Theresa", "Stefan"],
    "IT": ["Giulia", "Lorenzo", "Chiara", "Niccolò"],
    "ES": ["Lucía", "José", "Carmen", "Álvaro"],
    "GB": ["Olivia", "Harry", "Isla", "George", "Freya", "Callum"],
    "US": ["Emma", "Mason", "Ava", "Ethan", "Grace", "Logan"],
    "SE": ["Åsa", "Erik", "Linnéa", "Oskar"],
}
LAST_NAMES = {
    "DE": ["Müller", "Schmidt", "Weiß", "Hoffmann", "Koch", "Schäfer", "Vogel", "Lehmann"],
    "FR": ["Lefèvre", "Moreau", "Girard", "Bonnet"],
    "NL": ["Jansen", "Bakker", "Visser"],
    "AT": ["Gruber", "Huber", "Pichler"],
    "IT": ["Rossi", "Conti", "Ferrari"],
    "ES": ["García", "Núñez", "Romero"],
    "GB": ["Taylor", "Hughes", "Campbell", "Wright"],
    "US": ["Johnson", "Miller", "Nguyen", "Ramirez"],
    "SE": ["Lindqvist", "Nyström", "Björk"],
}
STREETS = {
    "DE": ("Lindenstraße {}", "Am Hafen {}", "Goethestraße {}", "Bergweg {}"),
    "FR": ("{} rue des Écoles", "{} avenue Victor Hugo", "{} quai de la Loire"),
    "NL": ("Prinsengracht {}", "Kerkstraat {}", "Molenweg {}"),
    "AT": ("Mariahilfer Straße {}", "Seegasse {}"),
    "IT": ("Via Garibaldi {}", "Corso Italia {}"),
    "ES": ("Calle Mayor {}", "Avenida del Puerto {}"),
    "GB": ("{} Church Lane", "{} Harbour Road", "{} Station Road"),
    "US": ("{} Maple Avenue", "{} 5th Street", "{} Ocean Drive"),
    "SE": ("Storgatan {}", "Skeppsbron {}"),
}
CITIES = {
    "DE": (("Hamburg", "20457"), ("Leipzig", "04109"), ("Köln", "50667"), ("Bremen", "28195")),
    "FR": (("Nantes", "44000"), ("Lyon", "69002"), ("Brest", "29200")),
    "NL": (("Amsterdam", "1016 GV"), ("Utrecht", "3511 AB")),
    "AT": (("Wien", "1070"), ("Graz", "8010")),
    "IT": (("Genova", "16121"), ("Trieste", "34121")),
    "ES": (("Bilbao", "48001"), ("València", "46024")),
    "GB": (("Whitby", "YO21 3PU"), ("Bristol", "BS1 4RN"), ("Oban", "PA34 4AJ")),
    "US": (("Portland", "97205"), ("Duluth", "55802"), ("Boston", "02116")),
    "SE": (("Göteborg", "411 06"), ("Malmö", "211 20")),
}
COUNTRIES = ("DE", "DE", "DE", "FR", "NL", "AT", "IT", "ES", "GB", "GB", "US", "US", "SE")
CURRENCIES = {"GB": "GBP", "US": "USD", "SE": "SEK"}
CARDS = ("Visa", "Mastercard", "Amex")
WISHES = (
    ("gift", "yes"),
    ("note", "Leave it with the neighbours, please."),
    ("note", "Ring twice."),
    ("note", "Für Oma – bitte ohne Rechnung"),
    ("delivery", "after 17:00"),
)


class Dice:
    """Seeded choices that do not depend on the Python version."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def number(self, low: int, high: int) -> int:
        """Returns an integer from low to high, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def percent(self, chance: int) -> bool:
        return self.number(1, 100) <= chance

    def sample(self, choices: Sequence[T], count: int) -> list[T]:
        """Returns count different choices in the order of choices."""
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(self.number(0, len(choices) - 1))
        return [choices[index] for index in sorted(chosen)]


def price(euro_cents: int, currency: str) -> int:
    rate, step = RATES[currency]
    return int(euro_cents * rate / step + 0.5) * step


def make_products() -> list[dict[str, Any]]:
    products = []
    for sku, title, category, cents, tags, grams in CATALOGUE:
        product: dict[str, Any] = {
            "sku": sku,
            "title": title,
            "category": category,
            "prices": {currency: price(cents, currency) for currency in RATES},
            "tags": tags.split(),
        }
        if grams:
            product["weightGrams"] = grams
        products.append(product)
    return products


def make_stock(dice: Dice) -> dict[str, int]:
    """Most articles are there in numbers; some are scarce or sold out."""
    stock = {}
    for index, (sku, *_) in enumerate(CATALOGUE):
        stock[sku] = index // 9 if index % 9 == 6 else dice.number(40, 400)
    return stock


def make_address(dice: Dice, country: str) -> dict[str, str]:
    city, postal_code = dice.pick(CITIES[country])
    street = dice.pick(STREETS[country]).format(dice.number(1, 148))
    return {"street": street, "postalCode": postal_code, "city": city, "country": country}


def ascii_name(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    return decomposed.encode("ascii", "ignore").decode().lower()


def make_customer(dice: Dice, number: int) -> dict[str, Any]:
    country = dice.pick(COUNTRIES)
    first, last = dice.pick(FIRST_NAMES[country]), dice.pick(LAST_NAMES[country])
    customer: dict[str, Any] = {
        "id": number,
        "name": f"{first} {last}",
        "email": f"{ascii_name(first)}.{ascii_name(last)}{number % 100}@example.org",
        "address": make_address(dice, country),
    }
    if dice.percent(40):
        customer["phone"] = f"555-01{dice.number(10, 99)}"
    return customer


def make_lines(dice: Dice, currency: str) -> list[dict[str, Any]]:
    count = dice.pick((1, 1, 1, 2, 2, 3, 4))
    return [
        {
            "sku": sku,
            "quantity": dice.pick((1, 1, 1, 2, 2, 3, 6)),
            "unitPrice": price(cents, currency),
        }
        for sku, _, _, cents, _, _ in dice.sample(CATALOGUE, count)
    ]


def make_totals(lines: list[dict[str, Any]], currency: str) -> dict[str, int]:
    items = sum(line["quantity"] * line["unitPrice"] for line in lines)
    shipping = 0 if items >= FREE_SHIPPING_FROM[currency] else SHIPPING[currency]
    total = items + shipping
    tax = total * TAX_PERCENT // (100 + TAX_PERCENT)
    return {"items": items, "shipping": shipping, "tax": tax, "total": total}


def make_payment(dice: Dice) -> dict[str, Any]:
    kind = dice.number(1, 10)
    if kind <= 6:
        return {"card": {"brand": dice.pick(CARDS), "lastDigits": f"{dice.number(0, 9999):04}"}}
    if kind <= 9:
        return {"invoice": {"dueDays": dice.pick((7, 14, 14, 30))}}
    return {"voucher": f"THANKS-{dice.number(1000, 9999)}"}


def make_history(dice: Dice, placed_at: int, path: Sequence[int]) -> dict[str, int]:
    history, moment = {}, placed_at
    for status in path:
        history[str(status)] = moment
        moment += dice.number(20, 2 * 24 * 60) * MINUTE
    return history


PATHS = (
    (PLACED,),
    (PLACED, PAID),
    (PLACED, PAID, SHIPPED),
    (PLACED, PAID, SHIPPED, DELIVERED),
    (PLACED, PAID, SHIPPED, DELIVERED),
    (PLACED, PAID, SHIPPED, DELIVERED),
    (PLACED, CANCELLED),
    (PLACED, PAID, SHIPPED, DELIVERED, RETURNED),
)


def make_order(dice: Dice, number: int, placed_at: int, customer: dict[str, Any]) -> dict[str, Any]:
    currency = CURRENCIES.get(customer["address"]["country"], "EUR")
    path = dice.pick(PATHS)
    lines = make_lines(dice, currency)
    order: dict[str, Any] = {
        "id": number,
        "customerId": customer["id"],
        "status": path[-1],
        "currency": currency,
        "lines": lines,
        "totals": make_totals(lines, currency),
        "payment": make_payment(dice),
        "placedAt": placed_at,
        "history": make_history(dice, placed_at, path),
    }
    if dice.percent(10):
        order["shipTo"] = make_address(dice, customer["address"]["country"])
    if dice.percent(15):
        order["wishes"] = dict([dice.pick(WISHES)])
    if SHIPPED in path:
        order["trackingCode"] = f"FL{dice.number(10**8, 10**9 - 1)}"
    return order


def make_orders(dice: Dice, customers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    orders, placed_at = [], START
    for number in range(FIRST_ORDER_ID, FIRST_ORDER_ID + ORDERS):
        placed_at += dice.number(5, 1100) * MINUTE
        orders.append(make_order(dice, number, placed_at, dice.pick(customers)))
    return orders


def write(shop: dict[str, Any]) -> None:
    """Prints one product, customer or order a line, so that changes show in a diff."""
    members = []
    for name, content in shop.items():
        if isinstance(content, list):
            rows = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in content)
            members.append(f"{json.dumps(name)}:[\n{rows}\n]")
        else:
            members.append(f"{json.dumps(name)}:{json.dumps(content, separators=(',', ':'))}")
    text = "{\n" + ",\n".join(members) + "\n}\n"
    sys.stdout.buffer.write(text.encode())


def main() -> None:
    dice = Dice(SEED)
    stock = make_stock(dice)
    customers = [make_customer(dice, FIRST_CUSTOMER_ID + index) for index in range(CUSTOMERS)]
    orders = make_orders(dice, customers)
    write({"products": make_products(), "stock": stock, "customers": customers, "orders": orders})


if __name__ == "__main__":
    main()
