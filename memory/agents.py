"""Finding and naming agents inside an open change (SPEC 3, Agent)."""

from memory.ledger.changes import Change
from memory.models import Agent
from memory.values import agent_key


def agent_named(change: Change, name: str) -> Agent:
    """The agent that a cleaned `name` means, made under the spelling first seen when nobody has named it yet."""
    agent = Agent.objects.filter(project=change.project, key=agent_key(name)).first()
    if agent is not None:
        return agent
    new = Agent(project=change.project, name=name, key=agent_key(name), created_at=change.now)
    return change.insert(new, "agent.create")


def set_charter(change: Change, agent: Agent, charter: str) -> Agent:
    """The agent's charter; an equal text changes nothing."""
    if agent.charter == charter:
        return agent
    return change.update(agent, "agent.charter", {"charter": charter})
