"""Record and replay: tests made from captures of real traffic, which replay the cluster or the application.

A replay either answers an application like the recorded cluster, or sends the recorded requests to a broker.

recording = Recording.from_pcap("talk.pcap", mask=[mask_fields("customer.email")])
recording.save("orders.rec")

with Recording.load("orders.rec").cluster() as servers:
    ...  # the application, with servers.bootstrap_servers

differences = Recording.load("orders.rec").play_to("127.0.0.1:9092")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.lazy_names import lazy_names

if TYPE_CHECKING:
    from penstock.testing.replay.cluster import NotRecordedError as NotRecordedError
    from penstock.testing.replay.cluster import PlayedCluster as PlayedCluster
    from penstock.testing.replay.differences import Difference as Difference
    from penstock.testing.replay.masking import MaskRule as MaskRule
    from penstock.testing.replay.masking import mask_all as mask_all
    from penstock.testing.replay.masking import mask_fields as mask_fields
    from penstock.testing.replay.masking import mask_matches as mask_matches
    from penstock.testing.replay.masking import mask_with as mask_with
    from penstock.testing.replay.recording import Recording as Recording

_HOMES = {
    "Difference": "differences",
    "MaskRule": "masking",
    "NotRecordedError": "cluster",
    "PlayedCluster": "cluster",
    "Recording": "recording",
    "mask_all": "masking",
    "mask_fields": "masking",
    "mask_matches": "masking",
    "mask_with": "masking",
}

__all__ = [
    "Difference",
    "MaskRule",
    "NotRecordedError",
    "PlayedCluster",
    "Recording",
    "mask_all",
    "mask_fields",
    "mask_matches",
    "mask_with",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
