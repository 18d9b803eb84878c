"""Texts as agents write them: two to five sentences with names, code, quotes, paths and the odd character beyond ASCII."""

from random import Random

_SENTENCES = (
    "We keep `{thing}` behind the {place} because {reason}.",
    "{Who} found that {thing} fails when {reason}; see `src/{place}/{thing}.py`.",
    "Never call <{Thing}> from the {place}: it blocks the event loop & hides the error.",
    'The error reads "could not open {thing}", but the cause is that {reason}.',
    "Migrations of {place} run before {thing} starts – otherwise {reason}.",
    "Run `make {thing}` twice and compare; the second run mustn't differ.",
    "Measured on the {place}: {number} ms at the median, {number} ms at the 99th percentile.",
    "{Who} agreed on {thing} over the {place}: fewer moving parts, and {reason}.",
    "Café names such as “{Thing}” have to survive the {place} unchanged (naïve trimming broke them).",
    "When {reason}, retry with back-off: {number} s, {number} s, then give up and say so.",
)
_WORDS = {
    "thing": (
        "outbox",
        "scheduler",
        "ledger",
        "session-store",
        "importer",
        "token-cache",
        "webhook",
        "index",
        "mirror",
    ),
    "place": (
        "gateway",
        "worker-pool",
        "billing",
        "edge-cache",
        "read-replica",
        "admin",
        "search",
        "broker",
        "inbox",
    ),
    "reason": (
        "the broker loses messages when it restarts",
        "two workers write the same row",
        "the clock of the build host runs ahead",
        "nobody owns that table any more",
        "the client retries without an idempotency key",
        "the vendor limits us to 40 calls a minute",
        "rows arrive out of order after a failover",
    ),
    "who": ("the platform team", "Ana", "Bruno", "the nightly run", "Céline", "support"),
}


def texts(count: int, seed: int = 7) -> list[str]:
    """`count` different texts of 120 to 620 characters; the same ones every time."""
    random = Random(seed)
    return [_text(random, number) for number in range(count)]


def _text(random: Random, number: int) -> str:
    sentences = [_sentence(random) for _ in range(random.randint(2, 6))]
    return f"{' '.join(sentences)} (note {number})"


def _sentence(random: Random) -> str:
    chosen = {kind: random.choice(words) for kind, words in _WORDS.items()}
    capital = {kind.capitalize(): word.capitalize() for kind, word in chosen.items()}
    return random.choice(_SENTENCES).format(number=random.randint(3, 900), **chosen, **capital)
