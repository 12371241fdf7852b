"""Names to files: `resolve("smollm2")` gives the path of a whole model file. Start at `lookup.py`."""

from tokenglass.hub.catalogue import DEFAULT_MODEL
from tokenglass.hub.lookup import pull, resolve
from tokenglass.hub.progress import Progress, Stage
from tokenglass.hub.store import store_folder

__all__ = ["DEFAULT_MODEL", "Progress", "Stage", "pull", "resolve", "store_folder"]
