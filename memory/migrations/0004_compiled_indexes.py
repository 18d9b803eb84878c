"""Indexes whose expression PostgreSQL keeps statistics of, in place of partial ones it cannot judge (`memory.models.compiled`)."""

from django.db import migrations, models
from django.db.models import BigIntegerField, Case, F, Q, UUIDField, When

LEARNED_HIGH = Q(type__in=["learning", "pattern"], importance="high")
LAYER_ONE = Q(status="active", trust_state="approved", type__in=["architectural", "scope"])
OWN = Q(retired_at__isnull=True, trust_state__in=["pending", "approved"]) & (
    Q(type="core_context") | LEARNED_HIGH
)
ACROSS = Q(retired_at__isnull=True, trust_state="approved", cross_team=True) & LEARNED_HIGH


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_same_project")]

    operations = [
        migrations.RemoveIndex("agentmemory", "memory_own_compiled"),
        migrations.RemoveIndex("agentmemory", "memory_cross_team_compiled"),
        migrations.RemoveIndex("decision", "decision_compiled"),
        migrations.AddIndex(
            "agentmemory",
            models.Index(
                Case(When(OWN, then=F("agent_id")), output_field=BigIntegerField()),
                F("type"),
                name="memory_compiled_for",
            ),
        ),
        migrations.AddIndex(
            "agentmemory",
            models.Index(
                Case(When(ACROSS, then=F("project_id")), output_field=UUIDField()),
                name="memory_compiled_across",
            ),
        ),
        migrations.AddIndex(
            "decision",
            models.Index(
                Case(When(LAYER_ONE, then=F("project_id")), output_field=UUIDField()),
                name="decision_compiled_in",
            ),
        ),
    ]
