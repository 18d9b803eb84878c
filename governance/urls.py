"""Addresses of the pages. Every view carries its policy (`governance.views.access`)."""

from django.urls import include, path

from governance.views import decisions, home, inbox, legacy, memories

app_name = "governance"

of_a_project = [
    path("inbox", inbox.inbox, name="inbox"),
    path("inbox/bulk", inbox.bulk, name="inbox-bulk"),
    path("inbox/<int:entry_id>", inbox.entry, name="inbox-entry"),
    path("inbox/<int:entry_id>/impact", inbox.impact, name="inbox-impact"),
    path("inbox/<int:entry_id>/merge", inbox.merge, name="inbox-merge"),
    path("inbox/<int:entry_id>/reject", inbox.reject, name="inbox-reject"),
    path("legacy", legacy.legacy, name="legacy"),
    path("legacy/bulk", legacy.bulk, name="legacy-bulk"),
    path("memory", memories.memories, name="memory"),
    path("memory/bulk", memories.bulk, name="memory-bulk"),
    path("memory/<int:memory_id>", memories.memory, name="memory-row"),
    path("memory/<int:memory_id>/edit", memories.edit, name="memory-edit"),
    path("memory/<int:memory_id>/approve", memories.approve, name="memory-approve"),
    path("memory/<int:memory_id>/retire", memories.retire, name="memory-retire"),
    path("decisions", decisions.decisions, name="decisions"),
    path("decisions/new", decisions.create, name="decision-new"),
    path("decisions/<int:decision_id>", decisions.decision, name="decision"),
    path("decisions/<int:decision_id>/edit", decisions.edit, name="decision-edit"),
    path("decisions/<int:decision_id>/approve", decisions.approve, name="decision-approve"),
    path("decisions/<int:decision_id>/archive", decisions.archive, name="decision-archive"),
    path("decisions/<int:decision_id>/supersede", decisions.supersede, name="decision-supersede"),
]

urlpatterns = [
    path("", home.home, name="home"),
    path("projects/<str:project>", home.project, name="project"),
    path("projects/<str:project>/", include(of_a_project)),
]
