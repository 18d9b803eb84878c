"""Addresses of the pages. Every view carries its policy (`governance.views.access`)."""

from django.urls import path

from governance.views import home

app_name = "governance"

urlpatterns = [
    path("", home.home, name="home"),
    path("projects/<str:project>", home.project, name="project"),
]
