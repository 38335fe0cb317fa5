"""Draw the states of a consumer group from the broker's own transition table.

    python tools/draw_group_states.py

writes docs/pictures/group-states.svg. A test fails if the picture does not match the transition table.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from penstock.broker.groups.classic.states import TRANSITIONS, State

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "group-states.svg"

WIDTH, HEIGHT = 960, 560
BOX_WIDTH, BOX_HEIGHT = 210, 46
LINE_HEIGHT = 17

PLACES = {
    State.EMPTY: (150, 90),
    State.PREPARING: (480, 250),
    State.COMPLETING: (480, 60),
    State.STABLE: (480, 480),
    State.DEAD: (150, 420),
}
"""A dict from a state to the centre of its box, in SVG units."""

ROUTES: dict[tuple[State, State], tuple[str, tuple[int, int], str]] = {
    (State.EMPTY, State.PREPARING): ("M 200 113 L 372 232", (290, 158), "start"),
    (State.PREPARING, State.EMPTY): ("M 375 256 C 250 250 170 200 150 119", (205, 262), "start"),
    (State.PREPARING, State.COMPLETING): ("M 455 227 L 455 87", (445, 128), "end"),
    (State.COMPLETING, State.PREPARING): ("M 505 83 L 505 223", (517, 124), "start"),
    (State.COMPLETING, State.STABLE): ("M 585 60 C 1010 60 1010 480 591 480", (890, 240), "end"),
    (State.STABLE, State.PREPARING): ("M 480 457 L 480 277", (492, 330), "start"),
    (State.EMPTY, State.DEAD): ("M 110 113 L 110 391", (122, 320), "start"),
}
"""The drawing of each transition: the arrow's SVG path, and its label's position and alignment."""


def draw() -> str:
    """Return the picture as SVG.

    Raises:
        KeyError: the transition table has a transition that ROUTES lacks.
    """
    causes: dict[tuple[State, State], list[str]] = {}
    for (state, cause), follower in TRANSITIONS.items():
        causes.setdefault((state, follower), []).append(cause.value)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" role="img" aria-label="The states of a consumer group">',
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="6" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="#5b7fa3"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for pair, names in causes.items():
        path, (x, y), anchor = ROUTES[pair]
        parts.append(
            f'<path d="{path}" fill="none" stroke="#5b7fa3" stroke-width="1.5" marker-end="url(#tip)"/>'
        )
        parts.extend(
            f'<text x="{x}" y="{y + number * LINE_HEIGHT}" text-anchor="{anchor}" font-size="12.5" '
            f'fill="#35506e" paint-order="stroke" stroke="#ffffff" stroke-width="4">{escape(name)}</text>'
            for number, name in enumerate(names)
        )
    for state, (x, y) in PLACES.items():
        left, top = x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2
        parts.append(
            f'<rect x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" fill="#dbe7f3" '
            'stroke="#5b7fa3"/>'
        )
        parts.append(
            f'<text x="{x}" y="{y + 5}" text-anchor="middle" font-size="16" font-weight="bold" '
            f'fill="#1d3550">{escape(state.value)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
    print(f"{PICTURE.name}: {len(TRANSITIONS)} transitions")
