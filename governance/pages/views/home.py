"""Home, and the front page of one project: what waits, what changed lately (SPEC 9)."""

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from governance.pages.charts import curve
from governance.pages.queues.counters import counters_of
from governance.pages.queues.home import changed_lately, my_projects
from governance.pages.queues.waiting import waiting_by_day
from governance.pages.views.access import Access, PageRequest, actor_of, project_page, signed_in_page
from governance.pages.views.replies import page
from governance.people.policies import Action

PROJECTS_PER_PAGE = 30


@require_safe
@signed_in_page
def home(request: PageRequest) -> HttpResponse:
    """My projects, longest waiting first."""
    projects = Paginator(my_projects(actor_of(request)), PROJECTS_PER_PAGE).get_page(request.GET.get("page"))
    context = {"projects": projects, "events": changed_lately(projects.object_list), "now": timezone.now()}
    return TemplateResponse(request, "governance/home.html", context)


@require_safe
@project_page(Action.READ)
def project(request: PageRequest, access: Access) -> HttpResponse:
    """One project: what waits in it and what changed lately."""
    counters = counters_of(access.project)
    days = waiting_by_day(access.project, counters.inbox, timezone.now())
    context = {
        "counters": counters,
        "days": days,
        "curve": curve([day.number for day in days]),
        "events": changed_lately([access.project]),
    }
    return page(request, access, "governance/project.html", context, section="project")
