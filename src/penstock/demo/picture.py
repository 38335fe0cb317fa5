"""Draws a picture of the year: the mean departure delay for each hour of each day, and the rain below."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.common.atomic_files import write_whole

FIRST_HOUR, LAST_HOUR = 5, 23
"""The first and last hour of the day in the picture, local time: no flight is scheduled outside of them."""

COOL_MINUTES, HOT_MINUTES = -10, 90
"""The ends of the colour scale, in minutes of delay. Delays beyond an end have the colour of that end."""

INK, FAINT, PAPER, BLUE = "#22303c", "#8a97a3", "#fbfaf7", "#3a78a8"
COLOURS = ["#2b6a99", "#9cc3d5", "#f4eeda", "#f3b562", "#d9542b", "#7a1233"]
COLOUR_STOPS = [0.0, 0.08, 0.13, 0.35, 0.65, 1.0]


def draw_year(cells: pa.Table, path: Path) -> None:
    """Draw the table of delays as a heat map of days and hours, and write it to `path` as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.colors import LinearSegmentedColormap

    days, delay, rain = _grids(cells)
    colours = LinearSegmentedColormap.from_list("delay", list(zip(COLOUR_STOPS, COLOURS, strict=True)))
    with pyplot.rc_context(
        {"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "font.family": "DejaVu Sans"}
    ):
        figure, (heat, wet) = pyplot.subplots(
            2, 1, figsize=(13, 6.2), height_ratios=[5, 1], sharex=True, layout="constrained", facecolor=PAPER
        )
        image = heat.imshow(
            delay,
            aspect="auto",
            interpolation="nearest",
            cmap=colours,
            vmin=COOL_MINUTES,
            vmax=HOT_MINUTES,
            extent=(-0.5, len(days) - 0.5, LAST_HOUR + 0.5, FIRST_HOUR - 0.5),
        )
        _dress(heat)
        wet.bar(range(len(days)), rain, width=1.0, color=BLUE)
        _dress(wet)
        _label(heat, wet, days)
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.15, h_pad=0.15)
        bar = figure.colorbar(image, ax=heat, pad=0.01, extend="both", aspect=22)
        bar.outline.set_visible(False)
        bar.set_label("mean delay, minutes")
        write_whole(path, lambda hidden: figure.savefig(hidden, dpi=130, format="png", facecolor=PAPER))
        pyplot.close(figure)


def _grids(cells: pa.Table) -> tuple[list[datetime], Any, Any]:
    """Return (days, array of mean delays by hour and day with NaN for no flight, rain per day in inches)."""
    hours = (
        cells["hour"].cast(pa.timestamp("s", tz="UTC")).cast(pa.int64()).combine_chunks().dictionary_encode()
    )
    local = [_local(seconds) for seconds in hours.dictionary.to_pylist()]
    first = min(local).date()
    count = (max(local).date() - first).days + 1
    indices = hours.indices.to_numpy()
    day = np.array([(moment.date() - first).days for moment in local])[indices]
    hour = np.array([moment.hour - FIRST_HOUR for moment in local])[indices]
    shown = (hour >= 0) & (hour <= LAST_HOUR - FIRST_HOUR)

    departed = cells["departed"].to_numpy()
    minutes = pc.fill_null(cells["mean_dep_delay"], 0.0).to_numpy() * departed
    shape = (LAST_HOUR - FIRST_HOUR + 1, count)
    total, flights = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (hour[shown], day[shown]), minutes[shown])
    np.add.at(flights, (hour[shown], day[shown]), departed[shown])
    with np.errstate(invalid="ignore"):
        delay = total / flights

    # Every carrier's cell repeats the weather of its airport and hour: count each once.
    airports = cells["origin"].combine_chunks().dictionary_encode()
    _, once = np.unique(
        indices.astype(np.int64) * len(airports.dictionary) + airports.indices.to_numpy(), return_index=True
    )
    rain = np.bincount(
        day[once],
        pc.fill_null(cells["precip"], 0.0).to_numpy()[once] / len(airports.dictionary),
        minlength=count,
    )
    return (
        [datetime(first.year, first.month, first.day) + timedelta(days=n) for n in range(count)],
        delay,
        rain,
    )


def _local(seconds: int) -> datetime:
    """Return a moment in New York's local time, or five hours behind UTC if time zones are not installed."""
    moment = datetime.fromtimestamp(seconds, UTC)
    try:
        return moment.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)
    except ZoneInfoNotFoundError:
        return (moment - timedelta(hours=5)).replace(tzinfo=None)


def _dress(axes: Any) -> None:
    axes.set_facecolor(PAPER)
    axes.tick_params(colors=FAINT, length=3, labelcolor=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _label(heat: Any, wet: Any, days: list[datetime]) -> None:
    """Set titles and ticks: one tick per month if there are more than 60 days, otherwise days as ticks."""
    heat.set_yticks(range(6, LAST_HOUR + 1, 3), [f"{hour}:00" for hour in range(6, LAST_HOUR + 1, 3)])
    span = f"in {days[0]:%Y}" if len(days) > 60 else f"from {days[0]:%-d %B} to {days[-1]:%-d %B %Y}"
    heat.set_title(
        f"Departure delays at EWR, JFK and LGA {span}", loc="left", fontsize=15, pad=12, fontweight="bold"
    )
    heat.set_ylabel("scheduled hour")
    wet.set_ylabel("rain, inches")
    if len(days) > 60:
        starts = [number for number, day in enumerate(days) if day.day == 1]
        wet.set_xticks(starts, [f"{days[number]:%b}" for number in starts], ha="left")
    else:
        step = 1 + len(days) // 16
        wet.set_xticks(range(0, len(days), step), [f"{day:%-d %b}" for day in days[::step]])
    wet.set_xlim(-0.5, len(days) - 0.5)
