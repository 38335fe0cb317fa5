"""The main job, end to end, on real data: departures and weather of New York's airports in 2013.

``penstock demo`` replays them as CloudEvents through a broker, lets Spark compute the mean delay per
airport, airline and hour, joins the weather, and checks that everything that went in came out once.

`flights` reads the data, `departures` makes events of them, `malformed` plants records that are none,
`replay` writes them, `pipeline` runs on Spark, `accounts` checks, `picture` and `report` show.
"""

from __future__ import annotations
