"""The legal moves, as plain Python: what the store must do, without how."""

from tests.properties.model.caretaking import Caretaking
from tests.properties.model.deciding import Deciding
from tests.properties.model.entering import ParentLost
from tests.properties.model.rows import Call, Job, Outcome, Profile, Run
from tests.properties.model.running import Running


class Model(Deciding, Running, Caretaking):
    pass


__all__ = ["Call", "Job", "Model", "Outcome", "ParentLost", "Profile", "Run"]
