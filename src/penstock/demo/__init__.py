"""The demo, a whole pipeline on real data: departures and weather of New York's airports in 2013.

``penstock demo`` replays the data as CloudEvents through a broker, lets Spark compute the mean delay per
airport, airline and hour, joins the weather, and checks that every input was counted exactly once.

`dataset` reads the data, `events` makes events of them, `malformed` adds invalid records, `replay` writes
them, `pipeline` runs on Spark, `accounts` checks, `picture` and `screen` show.
"""

from __future__ import annotations
