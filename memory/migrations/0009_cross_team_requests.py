"""The index of the requests to cross teams holds them alone.

It held every live memory tagged so, granted ones too, and PostgreSQL read a whole project to count the few that wait.
"""

from django.db import migrations, models
from django.db.models import Q

WAITING = Q(cross_team=True, retired_at__isnull=True) & (
    Q(trust_state="pending") | Q(approved_by__startswith="scribe:")
)


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_text_search")]

    operations = [
        migrations.RemoveIndex("agentmemory", "memory_asks_cross_team"),
        migrations.AddIndex(
            "agentmemory",
            models.Index(
                fields=["project", "created_at", "id"], name="memory_asks_cross_team", condition=WAITING
            ),
        ),
    ]
