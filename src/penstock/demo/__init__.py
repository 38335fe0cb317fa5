"""The demo, a whole pipeline on real data: departures and weather of New York's airports in 2013.

``penstock demo`` replays the data as CloudEvents through a broker, lets Spark compute the mean delay per
airport, airline and hour, joins the weather, and checks that every input was counted exactly once.

The module `dataset` reads the data, `events` converts them to events, `malformed` adds invalid records,
`replay` writes the records, `pipeline` runs on Spark, `accounts` checks the counts, `picture` and `screen`
show results.
"""

from __future__ import annotations
