"""Indexes of the memories that wait for a person: every page counts them, and most projects have few among very many."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("memory", "0005_no_replacement")]

    operations = [
        migrations.AddIndex(
            "agentmemory",
            models.Index(
                fields=["project", "created_at", "id"],
                name="memory_legacy_waiting",
                condition=Q(trust_state="legacy", retired_at__isnull=True),
            ),
        ),
        migrations.AddIndex(
            "agentmemory",
            models.Index(
                fields=["project", "created_at", "id"],
                name="memory_asks_cross_team",
                condition=Q(cross_team=True, retired_at__isnull=True),
            ),
        ),
    ]
